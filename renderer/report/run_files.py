"""What a committed run takes, does and adds in the pod, read from its files: these bytes are what is launched."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pod.derivations import DerivationError, Override, Skipped, derive
from renderer.accelerators import Slice, slice_of_labels
from renderer.outputs import DAMAGED, Parsed
from renderer.report.data import Size
from renderer.run_text import ACCELERATOR, TOPOLOGY, value
from renderer.schema import Snapshot


class MaxText:
    """What a MaxText version sets by itself. `defaults` has every key it knows."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.defaults: Mapping[str, Any] = {key: snapshot.base_default(key) for key in snapshot.keys}
        self._models = snapshot.models

    def model_file(self, run: RunFiles) -> Mapping[str, Any] | None:
        """Return what the model file of a run sets, nothing for a fork's, which is not known here."""
        return self._models.get(str(run.derive.get("model")))


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A run's parsed run.yml and derive.json, and its slice."""

    maxtext: Mapping[str, Any]
    derive: Mapping[str, Any]
    slice: Slice | None

    @property
    def version(self) -> str:
        """The MaxText that the run was checked against."""
        return str(self.derive.get("maxtext_version"))

    def value(self, key: str, known: MaxText) -> Any:
        """Return what MaxText will use for `key`: run.yml's value, else the model file's, else the default."""
        for source in (self.maxtext, known.model_file(self) or {}):
            if key in source:
                return source[key]
        return known.defaults.get(key)


def run_files(data: Parsed, jobset: bytes) -> RunFiles:
    """Return what a report needs of a run's parsed files; `jobset` is the text of jobset.yml."""
    return RunFiles(data.run_data, data.derive, slice_of_labels(value(ACCELERATOR, jobset), value(TOPOLOGY, jobset)))


def size(run: RunFiles, chips: int, known: MaxText, results: Iterable[bytes]) -> Size:
    """Return what a run takes and does; `results` are those of earlier runs of the experiment, the latest last.

    Tokens of one optimizer step: global batch x max_target_length. -1 steps means learning_rate_schedule_steps
    (MaxText's rule).
    """
    per_device = run.value("per_device_batch_size", known)
    accumulation = run.value("gradient_accumulation_steps", known)
    length = run.value("max_target_length", known)
    steps = run.value("steps", known)
    steps = run.value("learning_rate_schedule_steps", known) if steps == -1 else steps
    devices = run.slice.devices if run.slice else None
    batch = _product(per_device, devices, accumulation)
    tokens = _product(batch, length)
    seconds = _step_seconds(results, chips)
    steps = _product(steps)
    hours = None if seconds is None or steps is None else seconds * steps * chips / 3600
    return Size(chips, devices, batch, tokens, steps, _product(tokens, steps), hours)


def _product(*factors: object) -> int | None:
    """Return the product of positive numbers, whole as MaxText makes it; nothing where one is no such number."""
    product = 1.0
    for factor in factors:
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < _LARGEST:
            return None
        product *= factor
    return int(product) if product < _LARGEST else None


_LARGEST = 2**60


def _step_seconds(results: Iterable[bytes], chips: int) -> float | None:
    """Return the seconds of a step in the latest result on as many chips: {"step_seconds": 4.2, "chips": 64}."""
    found = None
    for data in results:
        try:
            result = json.loads(data)
            seconds, on = float(result["step_seconds"]), result.get("chips", chips)
        except DAMAGED:
            continue
        found = seconds if 0 < seconds < 1e6 and on == chips else found
    return found


def overrides(run: RunFiles, known: MaxText) -> list[Override | Skipped]:
    """Return the arguments that the pod adds, and the rules that change nothing. Raises DerivationError."""
    config = {key: value for key, value in run.maxtext.items() if key != "base_config"}
    return derive(config, run.derive, model_file=known.model_file(run), defaults=known.defaults)


NO_OVERRIDES = (DerivationError, *DAMAGED)
"""What `overrides` raises for files that somebody edited by hand."""
