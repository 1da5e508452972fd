"""`renderer apply`: does to the cluster what the merged commits ask for, once."""

from __future__ import annotations

import os

import click
from rich.console import Console
from rich.progress import Progress

from renderer.cli import OK, PROBLEMS, App
from renderer.cluster import apply_words
from renderer.cluster.apply import ADOPT, LAUNCH_ALL, Request, Result, apply
from renderer.cluster.history import History
from renderer.commands.on_cluster import cluster
from renderer.commands.options import format_option, say, say_json, say_uncommitted
from renderer.layers import ENVIRONMENTS


@click.command("apply")
@click.option("--environment", type=click.Choice(ENVIRONMENTS), required=True, help="The environment to apply to.")
@click.option("--dry-run", is_flag=True, help="Plan and check everything, write nothing.")
@click.option("--adopt", is_flag=True, help="First apply: record HEAD's runs as launched, create nothing.")
@click.option("--launch-all", is_flag=True, help="First apply: launch every run of HEAD.")
@format_option("text", "json", "md")
@click.pass_obj
def command(app: App, environment: str, dry_run: bool, adopt: bool, launch_all: bool, form: str) -> int:
    """Launch and stop what the commits since the last apply ask for, each run exactly once.

    Committed files of HEAD are applied as they were reviewed: nothing is rendered, the working tree does not count.
    The cluster is that of kubeconfig's current context; presets/clusters.yml says which one it must be.
    """
    if adopt and launch_all:
        raise click.UsageError("choose one of --adopt and --launch-all")
    first = ADOPT if adopt else LAUNCH_ALL if launch_all else ""
    request = Request(environment, os.environ.get("GITHUB_ACTOR") or "unknown", dry_run, first)
    with cluster() as api, _bar() as bar:
        task = bar.add_task(f"applying to {environment}", total=None)
        git = History(app.root)
        say_uncommitted(git)
        result = apply(api, git, request, lambda done, total: bar.update(task, completed=done, total=total))
    _tell(result, form)
    return OK if result.good else PROBLEMS


def _bar() -> Progress:
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


def _tell(result: Result, form: str) -> None:
    if form == "json":
        say_json(apply_words.data(result))
    elif form == "md":
        click.echo(apply_words.markdown(result), nl=False)
    else:
        say(*apply_words.text(result))
