"""The table of all runs, and the progress while they render. Hides rich, which loads longer than one run takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.progress import track
from rich.table import Table

from renderer.run_rows import Row

MAX_ROWS = 200
"""A longer table is cut: nobody reads it, and laying it out would take longer than rendering."""

_COLUMNS = ("experiment", "chips", "topology", "mesh", "global batch", "steps", "run", "state")
_NUMBERS = frozenset({"chips", "global batch", "steps"})
_STILL = frozenset({"unchanged", "frozen"})


def progress[T](items: Sequence[T]) -> Iterable[T]:
    """Return `items`, with a bar on the error stream where a person waits for many of them."""
    console = Console(stderr=True)
    quick = len(items) < 100 or not console.is_terminal
    return track(items, "rendering", console=console, transient=True, disable=quick)


def show(rows: Iterable[Row], states: Mapping[str, str]) -> None:
    """Print the rows with the state of each by folder; of too many, those that changed come first."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column in _NUMBERS else "left", no_wrap=True)
    found = sorted(rows, key=lambda row: row.cells)
    shown = found if len(found) <= MAX_ROWS else sorted(found, key=lambda row: states[row.folder] in _STILL)[:MAX_ROWS]
    for row in shown:
        table.add_row(*row.cells, states[row.folder])
    console = Console()
    console = console if console.is_terminal else Console(width=200)
    console.print(table)
    if len(shown) < len(found):
        console.print(f"and {len(found) - len(shown)} more")
