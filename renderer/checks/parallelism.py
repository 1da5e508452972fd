"""Checks that the mesh fills the slice exactly: MaxText itself only finds out once the TPUs are held."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from renderer.checks.topology import slice_of
from renderer.configure import Configuration
from renderer.merge import ORDER, Leaf
from renderer.mesh import axis_keys, mesh
from renderer.problem import Problem, counted


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for every axis that cannot be, for a product that is not the devices, for more than one slice."""
    unwritten = list(_unwritten(configuration))
    yield from unwritten
    sizes = list(_sizes(configuration))
    yield from sizes
    yield from _between_slices(configuration)
    found = slice_of(configuration)
    if found is None or unwritten or sizes:
        return
    axes = mesh(configuration, found.devices)
    if axes.resolved is None:
        yield _product(configuration, axes.written, found.devices)


def _unwritten(configuration: Configuration) -> Iterator[Problem]:
    """An axis whose default is -1 takes whatever remains, so a forgotten one would fit silently."""
    for key in axis_keys(configuration.snapshot, "ici_"):
        if configuration.snapshot.base_default(key) == -1 and configuration.leaf("maxtext", key) is None:
            message = "missing: its default -1 would silently take what the other axes leave"
            yield Problem("parallelism-missing", configuration.start, f"maxtext.{key}", message)


def _sizes(configuration: Configuration) -> Iterator[Problem]:
    """Axis sizes are positive, or -1 for at most one: MaxText's max_utils.fill_unspecified_mesh_axes."""
    open_axes = []
    for key, leaf in _axes(configuration, "ici_"):
        if leaf.node.value == 0 or leaf.node.value < -1:
            message = f"{leaf.node.value} devices: write at least 1, or -1 for what remains"
            yield Problem("parallelism-size", leaf.at, f"maxtext.{key}", message)
        elif leaf.node.value == -1:
            open_axes.append((key, leaf))
    for key, leaf in open_axes[1:]:
        first, other = open_axes[0]
        message = f"-1, and {first} is -1 too ({other.node.key_at.in_line}): only one axis can take what remains"
        yield Problem("parallelism-open", leaf.at, f"maxtext.{key}", message)


def _axes(configuration: Configuration, prefix: str) -> Iterator[tuple[str, Leaf]]:
    for key in axis_keys(configuration.snapshot, prefix):
        leaf = configuration.leaf("maxtext", key)
        if leaf and isinstance(leaf.node.value, int) and not isinstance(leaf.node.value, bool):
            yield key, leaf


def _between_slices(configuration: Configuration) -> Iterator[Problem]:
    """A run has one slice, so the dcn axes multiply to 1; -1 is 1 then."""
    open_axes = 0
    for key, leaf in _axes(configuration, "dcn_"):
        size = leaf.node.value
        open_axes += size == -1
        if size not in {1, -1}:
            message = f"{size} slices: a run has one slice, so write 1"
            yield Problem("parallelism-slices", leaf.at, f"maxtext.{key}", message)
        elif size == -1 and open_axes > 1:
            yield Problem("parallelism-open", leaf.at, f"maxtext.{key}", "a second -1 among the dcn axes: write 1")


def _product(configuration: Configuration, written: Mapping[str, int], devices: int) -> Problem:
    factors = {key: size for key, size in written.items() if size != 1 or configuration.leaf("maxtext", key)}
    known = math.prod(size for size in factors.values() if size != -1)
    product = " x ".join(str(size) for size in factors.values() if size != -1)
    open_axis = next((key for key, size in factors.items() if size == -1), None)
    if open_axis:
        whole = f"so nothing whole remains for {open_axis}"
        message = f"{product} = {known} does not divide the {counted(devices, 'device')}, {whole}"
    else:
        message = f"the ici axes multiply to {product} = {known}, but the slice has {counted(devices, 'device')}"
    lines = [_factor(configuration, key, size) for key, size in factors.items()]
    splits = [_changes(factors, split) for split in _nearest(factors, devices)]
    if splits:
        lines.append("fits with " + ", or with ".join(splits))
    leaf = _highest(configuration, factors)
    path = "maxtext." + next((key for key in factors if configuration.leaf("maxtext", key) is leaf), "ici_*")
    return Problem("parallelism-product", leaf.at if leaf else configuration.start, path, message, "\n".join(lines))


def _changes(factors: Mapping[str, int], split: Mapping[str, int]) -> str:
    return " and ".join(f"{key}: {size}" for key, size in split.items() if size != factors[key])


def _factor(configuration: Configuration, key: str, size: int) -> str:
    leaf = configuration.leaf("maxtext", key)
    return (
        f"{key}: {size}  ({leaf.layer.name}, {leaf.node.key_at.in_line})"
        if leaf
        else f"{key}: {size}  (MaxText's default)"
    )


def _highest(configuration: Configuration, factors: Mapping[str, int]) -> Leaf | None:
    """Return the axis that the highest layer set: most likely the one to correct."""
    found = [leaf for key in factors if (leaf := configuration.leaf("maxtext", key))]
    return max(found, key=lambda leaf: ORDER[leaf.layer.name], default=None)


def _nearest(factors: Mapping[str, int], devices: int, most: int = 3) -> list[dict[str, int]]:
    """Return the splits over the same axes that fill `devices` and change the least, one or two axes at a time."""
    keys = list(factors)
    found: dict[tuple[int, ...], float] = {}
    for first in keys:
        for second in keys:
            rest = math.prod(abs(size) for key, size in factors.items() if key not in {first, second})
            if not rest or devices % rest:
                continue
            for size in _divisors(devices // rest):
                split = {**factors, first: size, second: devices // rest // size}
                if math.prod(split.values()) == devices:
                    found[tuple(split.values())] = _distance(factors, split)
    best = sorted(found, key=lambda sizes: (found[sizes], sizes))[:most]
    return [dict(zip(keys, sizes, strict=True)) for sizes in best]


def _distance(old: Mapping[str, int], new: Mapping[str, int]) -> float:
    """Count changed axes first, then how far they moved; an axis of 1 that is used now counts as a larger change."""
    changed = [key for key in old if new[key] != old[key]]
    steps = [abs(math.log2(new[key] / abs(old[key]))) + (old[key] == 1) for key in changed]
    return len(steps) * 100 + sum(steps)


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]
