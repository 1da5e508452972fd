"""Two runs compared by value: what their files mean, not how they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from renderer.manifest_yaml import load
from renderer.outputs import without_derived
from renderer.scalars import write

ABSENT = object()
"""The value of a key on the side that lacks it."""


def flatten(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return every value of a run's files by dotted path; list items go by their name.

    Left out are the names and digests that follow from the content. Raises ValueError, KeyError, TypeError or
    AttributeError if the files are not a run's.
    """
    derive = json.loads(files["derive.json"])
    run = load(files["run.yml"].decode())
    if not derive["run_name_explicit"]:
        run = {key: value for key, value in run.items() if key != "run_name"}
    values = {f"maxtext.{key}": value for key, value in run.items()}
    values |= {f"derive.{key}": value for key, value in derive.items() if key != "set_by_person"}
    for name in ("jobset.yml", "watcher.yml"):
        if name in files:
            manifest = load(files[name].decode())
            if not isinstance(manifest, dict):
                raise ValueError(f"{name} is no manifest")
            kept = without_derived(manifest, not derive["run_name_explicit"])
            values |= dict(_leaves(kept, name.removesuffix(".yml")))
    return values


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{item.get('mountPath') or item.get('name') or index}]")
    else:
        yield path, value


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, old value, new value) of what differs, by path; ABSENT where a side lacks it."""
    for path in sorted({*old, *new}):
        before, after = old.get(path, ABSENT), new.get(path, ABSENT)
        if text(before) != text(after):  # not by ==, to which 1 and true are equal
            yield path, before, after


def text(value: Any) -> str:
    """Return a value as one line."""
    return "(absent)" if value is ABSENT else write(value)
