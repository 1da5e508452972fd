"""Checks of rendered files: whether the cluster can hold them and the API server would take them."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.configure import Configuration
from renderer.jobset_schema import jobset_problems
from renderer.location import Location
from renderer.merge import Leaf, leaves
from renderer.outputs import CONFIG_MAP_FILES, Rendered
from renderer.problem import Problem
from renderer.scalars import write

CONFIG_MAP_BYTES = 1 << 20
"""What a ConfigMap holds, all its entries together (Kubernetes' validation of ConfigMaps)."""


def check(configuration: Configuration, rendered: Rendered) -> Iterator[Problem]:
    """Yield a problem per field of the JobSet that its schema refuses, and for files too large for their ConfigMap."""
    yield from jobset_problems(rendered.jobset, Location(f"{rendered.folder}/jobset.yml"))
    yield from _config_map(configuration, rendered)


def _config_map(configuration: Configuration, rendered: Rendered) -> Iterator[Problem]:
    """run.yml and derive.json travel in one ConfigMap."""
    size = sum(len(rendered.files[name]) for name in CONFIG_MAP_FILES)
    if size <= CONFIG_MAP_BYTES:
        return
    path, leaf = max(leaves(configuration.maxtext), key=_size)
    message = f"run.yml and derive.json have {size} bytes, but a ConfigMap holds {CONFIG_MAP_BYTES}"
    hint = f"the largest value, {_size((path, leaf))} bytes; put it into a file in a bucket"
    yield Problem("config-map-size", leaf.at, f"maxtext.{path}", message, hint)


def _size(entry: tuple[str, Leaf]) -> int:
    return len(write(entry[1].node.value).encode("utf-8", "replace"))
