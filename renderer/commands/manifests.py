"""`renderer manifests`: everything a run consists of, for kubectl."""

from __future__ import annotations

import sys
from io import TextIOWrapper

import click

from renderer import manifests
from renderer.cli import OK, App
from renderer.layers import Repository
from renderer.location import Location
from renderer.names import sealed
from renderer.outputs import DAMAGED
from renderer.problem import refuse
from renderer.rendered_run import damaged, pod_scripts, rendered_run


@click.command("manifests")
@click.argument("experiment")
@click.pass_obj
def command(app: App, experiment: str) -> int:
    """Print the ConfigMaps and the JobSet of EXPERIMENT's rendered run, held, as one stream.

    The files under rendered/ are printed as they are: what was reviewed is what is applied. Use it as
    renderer manifests EXPERIMENT | kubectl apply --server-side -f -
    The first lines, which kubectl passes over, say how to release the run.
    """
    repository = Repository(app.root)
    run = rendered_run(repository, experiment)
    if not sealed(run.files):
        refuse("rendered-edited", Location(f"{run.folder}/jobset.yml"), "was edited by hand; run renderer render")
    try:
        stream = manifests.stream(run.files, pod_scripts(repository, run.files))
    except DAMAGED as error:
        damaged(f"{run.folder}/jobset.yml", error)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    click.echo(stream, nl=False, color=True)  # color: click takes nothing out of the text
    return OK
