"""The promises under `checks:` of an experiment whose run is frozen, held against the run as it was reviewed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from renderer.accelerators import slice_of_labels
from renderer.checks.launch import unknown_promises
from renderer.freeze import Frozen
from renderer.key_types import judge
from renderer.keys import CHECKS_KEYS
from renderer.layers import ExperimentFile
from renderer.problem import Problem
from renderer.run_text import ACCELERATOR, ACCUMULATION, PER_DEVICE_BATCH, TOPOLOGY, value


def check(experiment: ExperimentFile, run: Frozen) -> Iterator[Problem]:
    """Yield a problem per promise that is unknown, no number, or not what the frozen run does."""
    yield from unknown_promises(experiment.checks)
    promised = experiment.checks.get("global_batch")
    if promised is None:
        return
    wrong = list(judge(CHECKS_KEYS["global_batch"], promised, "checks.global_batch"))
    yield from wrong
    batch = global_batch(run.files)
    if not wrong and batch is not None and batch != promised.value:
        message = f"promised {promised.value}, but the global batch of the frozen run is {batch}"
        yield Problem("batch-promise", promised.at, "checks.global_batch", message)


def global_batch(files: Mapping[str, bytes]) -> int | None:
    """Return the sequences of one step by a run's files; nothing where they leave a factor to MaxText's defaults."""
    jobset, text = files["jobset.yml"], files["run.yml"]
    found = slice_of_labels(value(ACCELERATOR, jobset), value(TOPOLOGY, jobset))
    per_device = value(PER_DEVICE_BATCH, text)
    if not found or not per_device:
        return None
    return int(Fraction(per_device) * found.devices * int(value(ACCUMULATION, text) or "1"))
