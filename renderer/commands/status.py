"""`renderer status`: what every run is doing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from renderer.cli import OK, App
from renderer.cluster.api import Api, ApiError
from renderer.cluster.named import every
from renderer.cluster.observe import View, observe
from renderer.cluster.status import Row, exported, rows
from renderer.commands.on_cluster import FEW, cluster, environment_option, namespaces
from renderer.commands.options import format_option, say, say_json
from renderer.problem import shown

_SECONDS = 5
_HEAD = ("RUN", "ENV", "STATUS", "PODS", "RESTARTS", "STEP", "AGE", "WHY")
_GAP = "   "


@click.command("status")
@click.argument("names", metavar="[RUN|EXPERIMENT]...", nargs=-1)
@environment_option
@click.option("--watch", is_flag=True, help=f"Look again every {_SECONDS} seconds, until Ctrl-C.")
@format_option("text", "json")
@click.pass_obj
def command(app: App, names: tuple[str, ...], environments: Sequence[str], watch: bool, form: str) -> int:
    """Show a row per run: its pods, restarts, last training step, and why it is not running.

    Shown are the runs of the ledger, and JobSets with the renderer's labels that are in no ledger. Without names, all
    of them. The JSON is also what renderer report --ledger reads.
    """
    if watch and form == "json":
        raise click.UsageError("--watch redraws text: leave out --format json")
    with cluster(retries=FEW) as api:
        if watch:
            _watch(api, app, names, environments)
        found = _look(api, app, names, environments)
    if form == "json":
        say_json(exported(found))
    else:
        say(*table(found, datetime.now(UTC)))
    return OK


def _look(api: Api, app: App, names: Sequence[str], environments: Sequence[str]) -> list[Row]:
    view = observe(api, environments, namespaces(app.root, environments))
    if names:
        view = View(tuple(every(view.runs, names, app.root)), view.workloads)
    return rows(api, view)


def _watch(api: Api, app: App, names: Sequence[str], environments: Sequence[str]) -> None:
    """Redraw until interrupted; a lost connection leaves the last answer standing, and says so."""
    console = Console()
    live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
    lines: list[str] = []
    with live if console.is_terminal else nullcontext():
        while True:
            now = datetime.now(UTC)
            try:
                lines = [f"at {now:%H:%M:%S} UTC", *table(_look(api, app, names, environments), now)]
                trouble = []
            except ApiError as error:
                if not error.passing:
                    raise
                trouble = [f"{error}; trying again"]
            if console.is_terminal:
                live.update(Text("\n".join(map(shown, [*trouble, *lines]))), refresh=True)
            else:
                say(*trouble, *lines, "")
            time.sleep(_SECONDS)


def table(found: Iterable[Row], now: datetime) -> list[str]:
    """Return the rows as lines, each column as wide as it must be, the reason last."""
    cells = [_HEAD, *(_cells(row, now) for row in found)]
    if len(cells) == 1:
        return ["no runs"]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD))]
    return [_GAP.join(map(str.ljust, row, widths)).rstrip() for row in cells]


def _cells(row: Row, now: datetime) -> tuple[str, ...]:
    seen = row.seen
    why = ": ".join(filter(None, (str(row.place) if row.place else "", row.why)))
    step = "" if row.step is None else str(row.step)
    return seen.name, seen.environment, row.status, _pods(row), _restarts(row), step, age(seen.created, now), why


def _pods(row: Row) -> str:
    if not row.expected or not row.pods:
        return ""
    if list(row.pods) == ["Running"]:
        return f"{row.pods['Running']}/{row.expected} Running"
    return ", ".join(f"{count} {phase}" for phase, count in row.pods.items())


def _restarts(row: Row) -> str:
    restarts, counted, most = row.restarts
    if row.seen.jobset is None:
        return ""
    free = restarts - counted
    return f"{counted}/{most}" + (f" +{free} free" if free else "")


def age(since: str, now: datetime) -> str:
    """Return the time since an RFC 3339 time as kubectl shortens it; nothing for a time that cannot be read."""
    try:
        seconds = max(0, int((now - datetime.fromisoformat(since)).total_seconds()))
    except (ValueError, TypeError):
        return ""
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours = seconds // 60, seconds // 3600
    if hours < 3:
        return f"{minutes}m"
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"
