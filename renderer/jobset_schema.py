"""Judges a rendered JobSet as the API server's strict decoding would. The only module that knows jsonschema-rs."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from renderer.location import Location
from renderer.problem import Problem

SCHEMA = Path(__file__).parent / "schemas" / "kubernetes" / "jobset-v1alpha2.json"
"""Made by tools/jobset_schema.py from JobSet's CRD. The CRD's CEL rules are not in it: the API server judges those."""


def jobset_problems(data: Any, location: Location) -> list[Problem]:
    """Return a problem per unknown, missing or mistyped field of the JobSet manifest `data`, in the order of the paths.

    `location` is the manifest's file. It costs about 0.02 ms; the first call also compiles the schema (30 ms).
    """
    validator = _validator()
    if validator.is_valid(data):
        return []
    found = [
        Problem("jobset-schema", location, _dotted(error.instance_path), _words(error))
        for error in validator.iter_errors(data)
    ]
    return sorted(found, key=lambda problem: (problem.path, problem.message))


@cache
def _validator() -> Any:
    # Imported late: most commands render nothing, and the import costs as much as rendering twenty runs.
    library = importlib.import_module("jsonschema_rs")
    schema = json.loads(SCHEMA.read_bytes())
    return library.Draft202012Validator(schema, keywords={"uniqueBy": _UniqueBy})


class _UniqueBy:
    """The CRD's list maps: no two items agree in all keys, an absent key counting as its default."""

    def __init__(self, parent: object, value: Mapping[str, Any], path: object) -> None:  # noqa: ARG002
        self.defaults = tuple(value.items())

    def validate(self, instance: object) -> None:
        """Raise ValueError for an item that occurs twice."""
        seen = set()
        for item in instance if isinstance(instance, list) else ():
            if isinstance(item, dict):
                key = tuple(str(item.get(name, default)) for name, default in self.defaults)
                if key in seen:
                    what = ", ".join(f"{name} {value}" for (name, _), value in zip(self.defaults, key, strict=True))
                    raise ValueError(f"two items with {what}")
                seen.add(key)


def _dotted(path: Iterable[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _words(error: Any) -> str:
    kind = error.kind.name
    if kind == "additionalProperties":
        unknown = ", ".join(error.kind.unexpected)
        return f"unknown field {unknown}"
    if kind == "required":
        return f"missing: {error.kind.property}"
    if kind == "type":
        return f"must be of type {' or '.join(error.kind.types)}"
    if kind == "enum":
        return f"must be one of {', '.join(map(str, error.kind.options))}"
    return str(error.message)
