"""The report as JSON: written, and read back from where nobody vouches for it. One schema, made from the records."""

from __future__ import annotations

import importlib
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, Union

from renderer.report.data import VERSION, Report

MAX_BYTES = 4 << 20
"""A larger artifact is refused, and none is written."""
MAX_TEXT = 4_000
MAX_ITEMS = 5_000
MAX_NUMBER = 2**62


class UnreadableError(ValueError):
    """The data is no report; the text says why."""


def encode(report: Report) -> str:
    """Return the report as JSON within the schema and MAX_BYTES: long lists are cut, and what is left out is said."""
    most = MAX_ITEMS
    text = _dump(cut(report, most))
    while len(text) > MAX_BYTES and most:  # all of it is ASCII
        most //= 2
        text = _dump(cut(report, most))
    return text


def _dump(report: Report) -> str:
    return json.dumps(_within(asdict(report)), indent=1, allow_nan=False) + "\n"


def _within(value: Any) -> Any:
    """Return the data within the schema's limits, of a long text the beginning.

    What is no character (a half of a surrogate pair, from the name of a file) is written out.
    """
    if isinstance(value, str):
        text = value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
        return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    if isinstance(value, dict):
        return {key: _within(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_within(item) for item in value[:MAX_ITEMS]]
    return value if value is None or 0 <= value <= MAX_NUMBER else min(max(0, value), MAX_NUMBER)


_CUT = ("rows", "deleted", "values", "derived", "notes", "limits", "pending", "waivers", "notices")


def cut(report: Report, most: int) -> Report:
    """Return the report with at most `most` items in each list, and with what that leaves out."""
    lists = {name: getattr(report, name) for name in _CUT}
    files = report.impact.files if report.impact else ()
    left_out = [
        f"{len(items) - most} of {len(items)} {name}"
        for name, items in (*lists.items(), ("edited files", files))
        if len(items) > most
    ]
    return replace(
        report,
        **{name: items[:most] for name, items in lists.items()},
        impact=replace(report.impact, files=files[:most]) if report.impact else None,
        left_out=(*report.left_out[: max(0, most - len(left_out))], *left_out),
    )


def decode(data: bytes) -> Report:
    """Return the report in `data`. Raises UnreadableError unless it is one, of a bounded size."""
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"is larger than {MAX_BYTES} bytes")
    try:
        read = json.loads(data, parse_constant=_not_a_number)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"is not JSON: {str(error)[:200]}") from error
    try:
        problem = next(iter(_validator().iter_errors(read)), None)
    except UnicodeError as error:
        raise UnreadableError("holds text that is not Unicode") from error
    if problem is not None:
        path = "/".join(map(str, problem.instance_path))[:200]
        raise UnreadableError(f"is not a report: {path or 'the file'}: {str(problem.message)[:200]}")
    report: Report = _build(Report, read)
    return report


def _not_a_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


@cache
def _validator() -> Any:
    # Imported late: only reading an artifact needs it, and most commands never do.
    return importlib.import_module("jsonschema_rs").Draft202012Validator(schema())


def _build(kind: Any, value: Any) -> Any:
    """Return validated data as the record, enum, tuple or plain value of `kind`."""
    if is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        return kind(**{name: _build(hints[name], item) for name, item in value.items()})  # type: ignore[operator]
    if typing.get_origin(kind) is tuple:
        return tuple(_build(typing.get_args(kind)[0], item) for item in value)
    if typing.get_origin(kind) in {Union, types.UnionType}:
        return None if value is None else _build(typing.get_args(kind)[0], value)
    return kind(value)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a report: closed, every text, list and number bounded."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The report of `renderer report --format json`",
        **_schema(Report),
    }


def _schema(kind: Any) -> dict[str, Any]:
    if is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        properties = {field.name: _schema(hints[field.name]) for field in fields(kind)}
        if kind is Report:
            properties["version"] = {"const": VERSION}
        return {
            "type": "object",
            "additionalProperties": False,
            "required": list(properties),
            "properties": properties,
        }
    if typing.get_origin(kind) is tuple:
        return {"type": "array", "maxItems": MAX_ITEMS, "items": _schema(typing.get_args(kind)[0])}
    if typing.get_origin(kind) in {Union, types.UnionType}:
        return {"anyOf": [_schema(typing.get_args(kind)[0]), {"type": "null"}]}
    if issubclass(kind, StrEnum):
        return {"enum": [str(item) for item in kind]}
    if kind is str:
        return {"type": "string", "maxLength": MAX_TEXT}
    return {"type": "integer" if kind is int else "number", "minimum": 0, "maximum": MAX_NUMBER}


def published() -> str:
    """Return the text of schemas/report.schema.json."""
    return json.dumps(schema(), indent=2) + "\n"
