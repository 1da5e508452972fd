"""TPU generations: devices, hosts, node labels, the topologies that exist, and what a chip can hold and do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TOPOLOGIES = Path(__file__).with_name("topologies.json")

ALIASES = {("tpu7x", "16x8x16"): "8x16x16"}
"""Labels in use that MaxText's table knows in another order of dimensions. Not verified on GKE."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One TPU generation.

    `devices_per_chip` is what jax counts; `gke_label` the value of cloud.google.com/gke-tpu-accelerator;
    `compile_units` what MaxText's compile_topology counts per chip; memory in GiB and peak dense compute in
    TFLOP/s, both per chip.
    """

    name: str
    gke_label: str
    devices_per_chip: int
    chips_per_host: int
    compile_units: int
    hbm_gib: int
    peak_bf16: int
    peak_fp8: int | None


# Devices and chips per host: MaxText 0.2.5, utils/accelerator_to_spec_map.py. Labels: GKE, "Plan TPUs in GKE".
# Memory and peak: Cloud TPU's page of each generation (v5e has no fp8 figure; v6e and v5p run fp8 at bf16 rate).
ACCELERATORS = {
    accelerator.name: accelerator
    for accelerator in (
        Accelerator("tpu7x", "tpu7x", 2, 4, 2, 192, 2307, 4614),
        Accelerator("v6e", "tpu-v6e-slice", 1, 4, 1, 32, 918, 918),
        Accelerator("v5p", "tpu-v5p-slice", 1, 4, 2, 95, 459, 459),
        Accelerator("v5e", "tpu-v5-lite-podslice", 1, 4, 1, 16, 197, None),
    )
}


@dataclass(frozen=True, slots=True)
class Slice:
    """A topology of an accelerator: its chips, the jax devices on them, the hosts that hold them."""

    accelerator: Accelerator
    topology: str
    chips: int

    @property
    def devices(self) -> int:
        """How many devices jax sees."""
        return self.chips * self.accelerator.devices_per_chip

    @property
    def hosts(self) -> int:
        """How many hosts the slice has: one pod each."""
        return max(1, self.chips // self.accelerator.chips_per_host)

    @property
    def chips_per_pod(self) -> int:
        """How many chips each pod asks for."""
        return min(self.chips, self.accelerator.chips_per_host)

    @property
    def compile_topology(self) -> str:
        """What MaxText's compile_topology calls it, such as tpu7x-128."""
        return f"{self.accelerator.name}-{self.chips * self.accelerator.compile_units}"


@cache
def _tables() -> Mapping[str, list[str]]:
    tables: Mapping[str, list[str]] = json.loads(_TOPOLOGIES.read_bytes())
    return tables


def topologies(accelerator: str) -> list[str]:
    """Return the topologies of `accelerator` that MaxText knows and that fill whole hosts, by size."""
    return _tables()[accelerator]


def chips_of(topology: str) -> int | None:
    """Return the product of a topology's dimensions, nothing if it is not written as numbers joined by x."""
    if not re.fullmatch(r"[1-9][0-9]{0,3}(?:x[1-9][0-9]{0,3})+", topology):
        return None
    return math.prod(int(side) for side in topology.split("x"))


def find_slice(accelerator: str, topology: str) -> Slice | None:
    """Return the slice that `topology` describes, nothing if this accelerator has no such topology."""
    known = ALIASES.get((accelerator, topology), topology)
    chips = chips_of(topology)
    if accelerator not in ACCELERATORS or chips is None or known not in topologies(accelerator):
        return None
    return Slice(ACCELERATORS[accelerator], topology, chips)


def slice_of_labels(accelerator: str, topology: str) -> Slice | None:
    """Return the slice that a node's two GKE labels describe, nothing if there is no such one."""
    names = (known.name for known in ACCELERATORS.values() if known.gke_label == accelerator)
    return find_slice(next(names, ""), topology)
