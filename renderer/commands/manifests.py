"""`renderer manifests`: everything a run consists of, for kubectl."""

from __future__ import annotations

import re
from collections.abc import Mapping

import click

from renderer import manifests
from renderer.cli import OK, App
from renderer.layers import ENVIRONMENTS, Repository
from renderer.location import Location
from renderer.outputs import RUN_FILES
from renderer.problem import refuse


@click.command("manifests")
@click.argument("experiment")
@click.pass_obj
def command(app: App, experiment: str) -> int:
    """Print the ConfigMaps and the JobSet of EXPERIMENT's rendered run, held, as one stream.

    The files under rendered/ are printed as they are: what was reviewed is what is applied. Use it as
    renderer manifests EXPERIMENT | kubectl apply --server-side -f -
    """
    repository = Repository(app.root)
    files = rendered_files(repository, experiment)
    try:
        click.echo(manifests.stream(files, pod_scripts(repository, files)), nl=False)
    except (ValueError, KeyError, TypeError) as error:
        refuse("rendered-edited", Location(experiment), f"its jobset.yml is not a rendered run's: {error}")
    return OK


def rendered_files(repository: Repository, experiment: str) -> dict[str, bytes]:
    """Return an experiment's files under rendered/ by name. Raises RefusedError if it is not rendered."""
    path = repository.find_experiment(experiment)
    for environment in ENVIRONMENTS:
        folder = repository.root / "rendered" / environment / path.parent.name / path.stem
        files = {name: (folder / name).read_bytes() for name in RUN_FILES if (folder / name).is_file()}
        if {"derive.json", "jobset.yml", "run.yml"} <= files.keys():
            return files
    return refuse("rendered-missing", Location(repository.label(path)), "is not rendered yet; run renderer render")


def pod_scripts(repository: Repository, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the pod scripts that a run was rendered with, by name. Raises RefusedError if they are missing."""
    pod = re.search(rb'name: "pod-([0-9a-f]{12})"', files["jobset.yml"])
    name = pod[1].decode() if pod else ""
    folder = repository.root / "rendered/_pod" / name
    if not name or not folder.is_dir():
        refuse("rendered-missing", Location(f"rendered/_pod/{name}"), "is missing; run renderer render")
    return {script.name: script.read_bytes() for script in sorted(folder.iterdir())}
