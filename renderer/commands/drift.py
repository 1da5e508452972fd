"""`renderer drift`: what in the cluster is not as it was applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.cluster.api import Api
from renderer.cluster.committed_runs import CommittedRuns
from renderer.cluster.damage import Damaged, UnreadableError
from renderer.cluster.drift import Drift, Result, find
from renderer.cluster.ledger import Store
from renderer.cluster.observe import look
from renderer.commands.on_cluster import cluster, environment_option, load_clusters, local, namespaces, warn
from renderer.commands.options import format_option, say, say_json
from renderer.git import Git
from renderer.problem import counted


@click.command("drift")
@environment_option
@format_option("text", "json")
@click.pass_obj
def command(app: App, environments: Sequence[str], form: str) -> int:
    """Compare what lives in the cluster with the committed files it was launched from; change nothing.

    What the API server fills in and what controllers own is no drift, nor is a run that finished and was removed.
    Exit code 1 if there is drift.
    """
    committed, clusters = CommittedRuns(Git(app.root)), load_clusters(app.root)
    with cluster() as api:
        environments = local(api, clusters, environments)
        view = look(api, environments, namespaces(app.root, environments))
        result = find(api, view.runs, committed)
        damaged = list(view.damaged)
        behind = list(_behind(api, environments, committed.head, damaged))
    warn(damaged)
    if form == "json":
        found = {"drift": _data(result.found), "unknown": _data(result.unknown), "notes": behind}
        say_json({**found, "warnings": [item.data for item in damaged]})
    else:
        _print(result, behind)
    return PROBLEMS if result.found else OK


def _behind(api: Api, environments: Iterable[str], head: str, damaged: list[Damaged]) -> Iterable[str]:
    """Yield what tells that an environment's last applied commit is another; one that cannot be read is `damaged`."""
    for environment in environments:
        try:
            marker = Store(api, environment).read_marker()
        except UnreadableError as error:
            damaged += error.damaged
            continue
        if marker and marker != head:
            applied = f"{environment} was applied up to {marker[:8]}, HEAD is {head[:8]}"
            yield f"{applied}: what the next apply changes counts as drift until then"


def _data(found: Iterable[Drift]) -> list[dict[str, str]]:
    return [asdict(drift) for drift in found]


def _print(result: Result, notes: Iterable[str]) -> None:
    say(*(f"note: {note}" for note in notes))
    say(*(f"{drift.run}: {drift.about}: {drift.text}" for drift in result.found))
    say(*(f"not known: {drift.run}: {drift.text}" for drift in result.unknown))
    drifted = len({drift.run for drift in result.found})
    compared = f"{counted(result.compared, 'living run')} compared"
    differs = f"{counted(drifted, 'run')} with drift" if drifted else "no drift"
    say(f"{compared}, {differs}")
