"""The device mesh and the batch a configuration asks for: pure arithmetic over merged values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from renderer.configure import Configuration
from renderer.schema import Snapshot


def effective(configuration: Configuration, key: str) -> Any:
    """Return what MaxText will use for `key`: the written value, else the model file's, else MaxText's default.

    A written value wins over the model file because the pod passes it as an override (D6).
    """
    leaf = configuration.leaf("maxtext", key)
    if leaf:
        return leaf.node.value
    snapshot = configuration.snapshot
    model = snapshot.models.get(maxtext_model(configuration), {})
    if key in model:
        return model[key]
    return snapshot.base_default(key) if key in snapshot.keys else None


def maxtext_model(configuration: Configuration) -> str:
    """Return MaxText's model_name: deploy.MAXTEXT_MODEL where the preset's name is another."""
    leaf = configuration.leaf("deploy", "MAXTEXT_MODEL")
    return str(leaf.node.value) if leaf else configuration.launch.model


_AXES: dict[tuple[int, str], tuple[Mapping[str, object], tuple[str, ...]]] = {}


def axis_keys(snapshot: Snapshot, prefix: str) -> tuple[str, ...]:
    """Return the mesh axes of this MaxText; `prefix` is ici_ (inside a slice) or dcn_ (between slices)."""
    key = (id(snapshot.keys), prefix)
    if key not in _AXES:  # kept with the mapping itself, so that its id is not used again
        suffix, whole = "_parallelism", f"{prefix}parallelism"
        found = tuple(
            name for name in snapshot.keys if name.startswith(prefix) and name.endswith(suffix) and name != whole
        )
        _AXES[key] = snapshot.keys, found
    return _AXES[key][1]


@dataclass(frozen=True, slots=True)
class Mesh:
    """The ici axes as written (-1 is what remains of the devices), and as resolved where that is possible."""

    written: Mapping[str, int]
    resolved: Mapping[str, int] | None

    def __str__(self) -> str:
        axes = [(key, size) for key, size in (self.resolved or self.written).items() if size != 1]
        short = ((key.removeprefix("ici_").removesuffix("_parallelism"), size) for key, size in axes)
        return " ".join(f"{name}={size}" for name, size in short) or "1"


def mesh(configuration: Configuration, devices: int) -> Mesh:
    """Return the mesh over `devices`: the rule of MaxText's max_utils.fill_unspecified_mesh_axes."""
    written = dict(_written_axes(configuration))
    unspecified = [key for key, size in written.items() if size == -1]
    product = math.prod(size for size in written.values() if size != -1)
    if any(size == 0 or size < -1 for size in written.values()) or len(unspecified) > 1 or not product:
        return Mesh(written, None)
    if not unspecified:
        return Mesh(written, written if product == devices else None)
    if devices % product:
        return Mesh(written, None)
    return Mesh(written, {**written, unspecified[0]: devices // product})


def _written_axes(configuration: Configuration) -> Iterator[tuple[str, int]]:
    for key in axis_keys(configuration.snapshot, "ici_"):
        value = effective(configuration, key)
        if isinstance(value, int) and not isinstance(value, bool):
            yield key, value


def global_batch(configuration: Configuration, devices: int) -> Fraction | None:
    """Return the sequences of one optimizer step, exactly: MaxText floors what is not whole, silently.

    per_device_batch_size x devices x gradient_accumulation_steps (MaxText's global_batch_size_to_train_on);
    nothing where a value is not a positive number.
    """
    per_device = effective(configuration, "per_device_batch_size")
    accumulation = effective(configuration, "gradient_accumulation_steps")
    if not isinstance(per_device, int | float) or not isinstance(accumulation, int):
        return None
    if isinstance(per_device, bool) or isinstance(accumulation, bool) or accumulation < 1:
        return None
    return Fraction(str(per_device)) * devices * accumulation
