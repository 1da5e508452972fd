"""`renderer cleanup`: removes what ended runs left in the cluster."""

from __future__ import annotations

from collections.abc import Sequence

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.cluster.api import Api
from renderer.cluster.cleanup import Leftover, delete, find, unused_pools
from renderer.cluster.observe import View, look
from renderer.commands.on_cluster import agreed, cluster, environment_option, load_clusters, local, namespaces, warn
from renderer.commands.options import say
from renderer.layers import ENVIRONMENTS
from renderer.problem import counted


@click.command("cleanup")
@environment_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(app: App, environments: Sequence[str], yes: bool) -> int:
    """List and delete what finished and stopped runs left: JobSets, ConfigMaps, watchers. Asks first.

    The ledger stays, so no run starts again. Node pools are not touched: how to delete them is printed.
    """
    clusters = load_clusters(app.root)
    with cluster() as api:
        environments = local(api, clusters, environments)
        view = _look(api, app)
        warn(view.damaged)
        plan = find(api, view.runs, environments, unreadable=view.unreadable)
        if not plan.leftovers:
            say("nothing is left of ended runs")
            return OK
        say(*map(_line, plan.leftovers))
        if not agreed(f"Delete {counted(len(plan.leftovers), 'object')}?", yes=yes):
            return PROBLEMS
        there = _look(api, app)  # anew: a question may wait for hours
        now = plan.still(find(api, there.runs, environments, unreadable=there.unreadable))
        done = []
        for leftover in delete(api, now):
            done.append(leftover)
            say(f"deleted {leftover.kind} {leftover.name}")
    say(f"{counted(len(done), 'object')} deleted; the ledger keeps its entries")
    say(*_pools(unused_pools(clusters, now, there.runs)))
    return OK


def _look(api: Api, app: App) -> View:
    return look(api, ENVIRONMENTS, namespaces(app.root, ENVIRONMENTS))


def _line(leftover: Leftover) -> str:
    return f"{leftover.kind} {leftover.name} in {leftover.namespace}: {leftover.why}"


def _pools(lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    head = "# Node pools that no run of the renderer uses now; if nothing else does, delete them:"
    return ["", head, *"\n".join(lines).split("\n")]
