"""Reads the manifests that the renderer wrote as plain data, without places and without refusing any style."""

from __future__ import annotations

from typing import Any

from _ruamel_yaml import CParser
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from renderer.scalars import meaning
from renderer.yaml_io import MAX_DEPTH, words


def load(text: str) -> Any:
    """Return the data of a manifest that the renderer wrote: every string in it is quoted, so nothing is ambiguous.

    Raises ValueError if it is not one YAML document.
    """
    try:
        parser = CParser(text)
        parser.get_event()
        if not isinstance(parser.get_event(), DocumentStartEvent):
            return None
        value = _plain_value(parser, parser.get_event(), 0)
        parser.get_event()
        if not isinstance(parser.get_event(), StreamEndEvent):
            raise ValueError("holds more than one document")
    except YAMLError as error:
        raise ValueError(words(error)) from error
    return value


def _plain_value(parser: CParser, event: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
    kind = type(event)
    if kind is ScalarEvent:
        return event.value if event.style else meaning(event.value)
    get = parser.get_event
    if kind is MappingStartEvent:
        mapping = {}
        while type(key := get()) is not MappingEndEvent:
            mapping[_plain_value(parser, key, depth + 1)] = _plain_value(parser, get(), depth + 1)
        return mapping
    if kind is SequenceStartEvent:
        items = []
        while type(item := get()) is not SequenceEndEvent:
            items.append(_plain_value(parser, item, depth + 1))
        return items
    raise ValueError("holds an alias")
