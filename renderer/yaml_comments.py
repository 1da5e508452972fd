"""Finds the comments of a YAML file and the keys they stand beside, so that a rewrite can be held to them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from _ruamel_yaml import CParser
from ruamel.yaml.events import MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

Path = tuple[str | int, ...]
"""The keys, and indices in lists, that lead to a value."""

_MARK = re.compile(r"(?:(?<=\s)|^)#.*", re.MULTILINE)


class Comment(NamedTuple):
    """A comment's text, and the key or item before and after it; after one at the end of a line nothing is named.

    What stands inside brackets counts as the value it belongs to.
    """

    text: str
    before: Path | None
    after: Path | None
    full_line: bool


def comments(text: str) -> list[Comment]:
    """Return the comments of `text`, which the strict reader takes, in their order."""
    starts: list[int] = []
    paths: list[Path] = []
    spans: list[tuple[int, int]] = []
    for path, event in _nodes(CParser(text)):
        if path is not None:
            starts.append(event.start_mark.index)
            paths.append(path)
        if isinstance(event, ScalarEvent):
            spans.append(_span(text, event))
    spans.sort()
    return [_comment(text, match, starts, paths) for match in _MARK.finditer(text) if not _inside(spans, match.start())]


def _span(text: str, event: Any) -> tuple[int, int]:
    """Return where a scalar's text stands: a comment may follow the | of a block."""
    start, end = event.start_mark.index, event.end_mark.index
    return (max(text.find("\n", start), start) if event.style in {"|", ">"} else start, end)


def _inside(spans: list[tuple[int, int]], index: int) -> bool:
    rank = bisect_left(spans, (index + 1,)) - 1
    return rank >= 0 and spans[rank][0] <= index < spans[rank][1]


def _comment(text: str, match: re.Match[str], starts: list[int], paths: list[Path]) -> Comment:
    rank = bisect_left(starts, match.start())
    full_line = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
    before = paths[rank - 1] if rank else None
    after = paths[rank] if full_line and rank < len(paths) else None
    return Comment(match.group()[1:].strip(), before, after, full_line)


def _nodes(parser: CParser) -> Iterator[tuple[Path | None, Any]]:
    """Yield every event with the path of the key or item that starts with it, where it stands outside brackets."""
    stack: list[tuple[Path, bool, bool]] = []  # of each open collection: path, whether a mapping, whether in brackets
    where: Path = ()
    index: list[int] = []
    key = True
    while (event := parser.get_event()) is not None:
        if type(event) in {MappingEndEvent, SequenceEndEvent}:
            stack.pop()
            index.pop()
            key = True
            yield None, event
            continue
        if type(event) not in {ScalarEvent, MappingStartEvent, SequenceStartEvent}:
            yield None, event
            continue
        named: Path | None = None
        if stack:
            path, mapping, brackets = stack[-1]
            if mapping and key:
                where, key = (*path, str(event.value)), False
                yield (None if brackets else where), event
                continue
            if not mapping:
                where = (*path, index[-1])
                index[-1] += 1
                named = None if brackets else where
            key = True
        yield named, event
        if not isinstance(event, ScalarEvent):
            inside = bool(event.flow_style) or (bool(stack) and stack[-1][2])
            stack.append((where, isinstance(event, MappingStartEvent), inside))
            index.append(0)
            key = True
