"""Checks that the global batch is whole and is the one that was promised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from renderer.checks.topology import slice_of
from renderer.configure import Configuration
from renderer.key_types import judge
from renderer.keys import CHECKS_KEYS
from renderer.mesh import effective, global_batch
from renderer.problem import Problem, counted

_PATH = "maxtext.per_device_batch_size"


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for a global batch that is not whole (MaxText floors it silently) or breaks `checks:`."""
    promised = configuration.checks.get("global_batch")
    wrong = list(judge(CHECKS_KEYS["global_batch"], promised, "checks.global_batch")) if promised else []
    yield from wrong
    found = slice_of(configuration)
    per_device = effective(configuration, "per_device_batch_size")
    accumulation = effective(configuration, "gradient_accumulation_steps")
    if found is None or not _is_number(per_device) or not _is_number(accumulation) or accumulation < 1:
        return
    batch = global_batch(configuration, found.devices)
    if batch is None:
        return
    devices, steps = counted(found.devices, "device"), counted(accumulation, "accumulation step")
    made = f"{per_device} per device x {devices} x {steps}"
    yield from _whole(configuration, per_device, found.devices, made)
    if promised and not wrong and promised.value != batch:
        shown = batch if batch.denominator == 1 else float(batch)
        message = f"promised {promised.value}, but the global batch is {shown}"
        yield Problem("batch-promise", promised.at, "checks.global_batch", message, made)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(configuration: Configuration, per_device: float, devices: int, made: str) -> Iterator[Problem]:
    """One step's batch must be whole: MaxText's int(per_device_batch_size * devices)."""
    leaf = configuration.leaf("maxtext", "per_device_batch_size")
    place = leaf.at if leaf else configuration.start
    step = Fraction(str(per_device)) * devices
    if step.denominator != 1:
        message = f"{per_device} x {counted(devices, 'device')} = {float(step):g} sequences, which is not whole"
        near = [sequences / devices for sequences in (math.floor(step), math.ceil(step)) if sequences > 0]
        yield Problem("batch-not-whole", place, _PATH, message, f"write for example {' or '.join(map(str, near))}")
    elif step < 1:
        yield Problem("batch-not-whole", place, _PATH, f"{made} is not a batch: it must be at least 1")
