"""The rows of a table of runs: of rendered ones by their configuration, of frozen ones by their files."""

from __future__ import annotations

import math
from typing import NamedTuple

from renderer.accelerators import Slice, slice_of_labels
from renderer.freeze import Frozen
from renderer.layers import rendered_from
from renderer.mesh import effective
from renderer.pipeline import Result, figures
from renderer.promises import global_batch
from renderer.run_text import (
    ACCELERATOR,
    CHIPS,
    ICI_AXIS,
    NAME,
    STEPS,
    TOPOLOGY,
    value,
)


class Row(NamedTuple):
    """A run's rendered folder, and its cells: experiment, chips, topology, mesh, global batch, steps, run."""

    folder: str
    cells: tuple[str, ...]


def fresh(result: Result) -> Row:
    """Return the row of a run that was rendered now."""
    run, numbers = result.rendered.run, figures(result.configuration)
    cells = (
        f"{run.model}/{result.configuration.name}",
        run.chips,
        numbers.slice.topology,
        numbers.mesh,
        numbers.global_batch,
        effective(result.configuration, "steps"),
        result.rendered.names.object,
    )
    return Row(result.rendered.folder, tuple(map(str, cells)))


def frozen(run: Frozen) -> Row:
    """Return the row of a frozen run; what its files leave to MaxText's defaults is empty."""
    jobset, text = run.files["jobset.yml"], run.files["run.yml"]
    found = slice_of_labels(value(ACCELERATOR, jobset), value(TOPOLOGY, jobset))
    batch = global_batch(run.files)
    cells = (
        "/".join(rendered_from(run.folder)[1:]),
        value(CHIPS, jobset),
        value(TOPOLOGY, jobset),
        _mesh(text, found),
        "" if batch is None else str(batch),
        value(STEPS, text),
        value(NAME, jobset),
    )
    return Row(run.folder, cells)


def _mesh(text: bytes, found: Slice | None) -> str:
    """Return the axes above 1, one of them what the others leave of the devices (MaxText's rule for -1)."""
    axes = {axis.decode(): int(size) for axis, size in ICI_AXIS.findall(text)}
    product = math.prod(size for size in axes.values() if size > 0)
    rest = found.devices // product if found and product else 0
    sizes = {axis: rest if size == -1 else size for axis, size in axes.items()}
    return " ".join(f"{axis}={size}" for axis, size in sizes.items() if size > 1) or "1"
