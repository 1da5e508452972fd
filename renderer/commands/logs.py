"""`renderer logs`: the log of one pod of a run."""

from __future__ import annotations

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.cluster import logs
from renderer.cluster.logs import End, Line, Target
from renderer.cluster.named import latest
from renderer.cluster.observe import Seen, look
from renderer.commands.on_cluster import FEW, cluster, namespaces, warn, warn_of_a_strange_cluster
from renderer.commands.options import say
from renderer.layers import ENVIRONMENTS
from renderer.location import COMMAND_LINE
from renderer.problem import refuse


@click.command("logs")
@click.argument("name", metavar="RUN|EXPERIMENT")
@click.option("--index", type=click.IntRange(min=0), default=0, show_default=True, help="The pod's completion index.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended, over restarts and lost connections.")
@click.pass_obj
def command(app: App, name: str, index: int, follow: bool) -> int:
    """Print the log of one pod of a run, standard output and error as the container wrote them.

    Of an EXPERIMENT, its latest run. Exit code 1 if the run that was followed has failed.
    """
    with cluster(retries=FEW) as api:
        view = look(api, ENVIRONMENTS, namespaces(app.root, ENVIRONMENTS))
        warn(view.damaged)
        if not view.runs:
            warn_of_a_strange_cluster(api, app.root)
        run = latest(view, name, app.root)
        target = Target(run.namespace, run.name, _uid(run), index)
        code = OK
        for event in logs.follow(api, target) if follow else logs.read(api, target):
            if isinstance(event, Line):
                say(event.text)
            else:
                say(f"renderer: {event.text}", err=True)
            if isinstance(event, End):
                code = PROBLEMS if event.failed or not follow else OK
    return code


def _uid(run: Seen) -> str:
    """Return the JobSet's uid. Raises RefusedError where there is none any more."""
    if run.jobset is None:
        state = run.entry.state if run.entry else ""
        reason = run.entry.reason if run.entry and run.entry.reason else "there is no JobSet of it"
        refuse("run-gone", COMMAND_LINE, f"{run.name} ({state}) has no log in the cluster: {reason}")
    return str(run.jobset["metadata"]["uid"])
