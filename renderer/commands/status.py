"""`renderer status`: what every run is doing."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
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
from renderer.commands.on_cluster import (
    FEW,
    cluster,
    environment_option,
    namespaces,
    warn,
    warn_of_a_strange_cluster,
    warning,
)
from renderer.commands.options import format_option, say, say_json
from renderer.problem import shown

_SECONDS = 5
_HEAD = ("RUN", "ENV", "STATUS", "PODS", "RESTARTS", "STEP", "AGE", "WHY")
_WHY = _HEAD.index("WHY")
_LEAST = tuple(map(_HEAD.index, ("AGE", "RESTARTS", "ENV", "STEP", "PODS")))
"""Which columns a narrow terminal does without, the first one first; the name and the status always stay."""
_GAP, _NARROW_GAP = "   ", "  "


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
        view = observe(api, environments, namespaces(app.root, environments))
        warn(view.damaged)
        if not view.runs:
            warn_of_a_strange_cluster(api, app.root)
        found = rows(api, _named(view, names, app))
    if form == "json":
        say_json(exported(found, view.damaged))
    else:
        say(*table(found, datetime.now(UTC), _width()))
    return OK


def _named(view: View, names: Sequence[str], app: App) -> View:
    return replace(view, runs=tuple(every(view, names, app.root))) if names else view


def _look(api: Api, app: App, names: Sequence[str], environments: Sequence[str], now: datetime) -> list[str]:
    """Return what there is to see, as lines."""
    view = observe(api, environments, namespaces(app.root, environments))
    found = rows(api, _named(view, names, app))
    return [f"at {now:%H:%M:%S} UTC", *map(warning, view.damaged), *table(found, now, _width())]


def _watch(api: Api, app: App, names: Sequence[str], environments: Sequence[str]) -> None:
    """Redraw until interrupted; a lost connection leaves the last answer standing, and says so."""
    console = Console()
    live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
    lines: list[str] = []
    with live if console.is_terminal else nullcontext():
        while True:
            now = datetime.now(UTC)
            try:
                lines = _look(api, app, names, environments, now)
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


def _width() -> int | None:
    """Return how wide the terminal is, nothing where a file or a program reads."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(found: Iterable[Row], now: datetime, width: int | None = None) -> list[str]:
    """Return the rows as lines, each column as wide as it must be, the reason last; `narrow` where that is too wide."""
    cells = [_cells(row, now) for row in found]
    if not cells:
        return ["no runs"]
    lines = _aligned([_HEAD, *cells], range(len(_HEAD)))
    return list(narrow(cells, width)) if width and max(map(len, lines)) > width else lines


def narrow(cells: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines with each reason below its row, and without empty columns and as many others as must be left out.

    No name is cut, nor folded: where one is too long for the terminal, so is its line.
    """
    columns = [column for column in range(_WHY) if any(row[column] for row in cells)]
    left_out = []
    for column in [column for column in _LEAST if column in columns]:
        if max(map(len, _aligned([_HEAD, *cells], columns, _NARROW_GAP))) <= width:
            break
        columns.remove(column)
        left_out.append(_HEAD[column])
    head, *lines = _aligned([_HEAD, *cells], columns, _NARROW_GAP)
    yield head
    for line, row in zip(lines, cells, strict=True):
        yield line
        yield from _folded(shown(row[_WHY]), width)
    if left_out:
        yield f"no room for {', '.join(left_out)}"


def _folded(why: str, width: int) -> list[str]:
    """Return a reason as lines, which breaks between words only; what is to be masked in it is masked by now."""
    indent = "  "
    return textwrap.wrap(
        why,
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _aligned(rows: Sequence[Sequence[str]], columns: Sequence[int], gap: str = _GAP) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in columns]
    return [
        gap.join(row[column].ljust(width) for column, width in zip(columns, widths, strict=True)).rstrip()
        for row in rows
    ]


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
