"""Writes experiment, preset and checks text for an import, in the house's form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from renderer.scalars import AmbiguousError, meaning, quote, write
from renderer.yaml_io import REMOVED

_SAFE = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*(?: [A-Za-z0-9_./:@+-]+)*")
EXAMPLE = "registry.example.com/maxtext/maxtext-runner"
"""The image repository of presets that nobody has filled in yet."""


def value(item: Any) -> str:
    """Return a value as YAML: text without quotes where every reader takes it for text."""
    if item is REMOVED:
        return "!remove"
    if not isinstance(item, str) or not _SAFE.fullmatch(item) or item.endswith(":") or ": " in item:
        return write(item)
    try:
        return item if meaning(item) == item else quote(item)
    except AmbiguousError:
        return quote(item)


def section(name: str, entries: Mapping[str, Any], comments: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of one section; a mapping under a key is written in block form, sorted as given."""
    if not entries:
        return
    yield f"{name}:"
    for key, item in entries.items():
        if isinstance(item, dict):
            yield f"  {key}:"
            for entry, text in item.items():
                yield f"    {entry}: {_quoted(text)}{_comment(comments, f'{key}.{entry}')}"
        else:
            yield f"  {key}: {value(item)}{_comment(comments, key)}"


def _quoted(text: Any) -> str:
    """Flags and variables are texts, so what looks like a number or boolean is quoted."""
    return value(text)


def _comment(comments: Mapping[str, str], key: str) -> str:
    return f"  # {comments[key]}" if key in comments else ""


def file(head: str, sections: Mapping[str, Mapping[str, Any]], comments: Mapping[str, str]) -> bytes:
    """Return a layer or experiment file: a comment, then its sections."""
    lines = [f"# {head}"]
    for name, entries in sections.items():
        lines.extend(section(name, entries, comments))
    return ("\n".join(lines) + "\n").encode()
