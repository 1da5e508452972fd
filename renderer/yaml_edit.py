"""Rewrites YAML files and keeps their comments: the stable form of `format`, and the edits of `new`.

Only here ruamel.yaml's round-trip loader is used: it keeps comments and how numbers were written, and is slow.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from renderer.problem import Problem, RefusedError
from renderer.scalars import Value, is_text
from renderer.yaml_io import plain, read

SECTIONS = ("launch", "deploy", "maxtext", "checks")
_LAUNCH: tuple[str, ...] = ("model", "chips", "context", "environment", "owner", "image", "branch", "commit", "name")
_LAUNCH += ("resume", "attempt", "supersede", "state")


def formatted(data: bytes, name: str) -> bytes:
    """Return the stable form of a file: sections and selectors in order, two spaces, LF, one line end at its end.

    Comments and values stay; formatting twice changes nothing. Raises RefusedError for what the strict reader refuses.
    """
    _strict(data, name)
    original = _text(data)
    text = original
    for _ in range(_ROUNDS):
        better = _step(text)
        if better == text:
            return text.encode()
        text = better
    return original.encode()  # it would go on changing


_ROUNDS = 4
"""How often the round trip may change a file before it is left as it is; most are stable after one."""


def edited(data: bytes, name: str, changes: Mapping[str, Mapping[str, Value]]) -> bytes:
    """Return the file with `changes` (section to key to value) made in it; a dotted key reaches into a mapping."""
    _strict(data, name)
    tree = _loader().load(_text(data)) or CommentedMap()
    for section, values in changes.items():
        for path, value in values.items():
            *parents, key = [section, *path.split(".")]
            target = tree
            for parent in parents:
                if not isinstance(target.get(parent), CommentedMap):
                    target[parent] = CommentedMap()
                target = target[parent]
            target[key] = _quoted(value)
    return formatted(_dump(tree).encode(), name)


_PLAIN = re.compile(r"[A-Za-z0-9/](?:[A-Za-z0-9_ ./:+-]*[A-Za-z0-9_./+-])?")


def _quoted(value: Value) -> Any:
    """Return `value` with every text in double quotes that not all readers would take for text without."""
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and is_text(value) else DoubleQuotedScalarString(value)
    if isinstance(value, list):
        return [_quoted(item) for item in value]
    if isinstance(value, dict):
        return {key: _quoted(item) for key, item in value.items()}
    return value


def _strict(data: bytes, name: str) -> None:
    problems: list[Problem] = []
    read(data, name, problems)
    if problems:
        raise RefusedError(problems)


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _step(text: str) -> str:
    """Return the round trip of `text`; less where that would change a value, lose a comment or fail."""
    for candidate in (_round_trip(text), _tidy(text)):
        if _meaning(candidate) == _meaning(text) and _comments(candidate) == _comments(text):
            return candidate
    return text


def _round_trip(text: str) -> str:
    try:
        tree = _loader().load(text)
        if tree is None:
            return _tidy(text)
        _reorder(tree, SECTIONS)
        if isinstance(tree.get("launch"), CommentedMap):
            _reorder(tree["launch"], _LAUNCH)
        return _tidy(_dump(tree))
    except (YAMLError, ValueError, AttributeError, TypeError, NotImplementedError, RecursionError):
        return text  # ruamel.yaml stumbles over some of what the strict reader takes


def _meaning(text: str) -> str | None:
    """Return what the strict reader sees in `text`, nothing where it refuses it; 1, 1.0 and true are not the same."""
    problems: list[Problem] = []
    values = plain(read(text.encode(), "", problems))
    return None if problems else json.dumps(values, sort_keys=True, default=repr)


def _loader() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 16  # never fold a line: a folded value reads the same, but its diff does not
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.allow_duplicate_keys = True  # the strict reader has refused them
    return yaml


def _reorder(tree: Any, order: tuple[str, ...]) -> None:
    """Bring the known keys to the front in `order`, where they are out of it: comments hang on their neighbours."""
    known = [key for key in order if key in tree]
    if [key for key in tree if key in order] == known and list(tree)[: len(known)] == known:
        return
    for key in reversed(known):
        tree.move_to_end(key, last=False)


def _dump(tree: Any) -> str:
    out = io.StringIO()
    _loader().dump(tree, out)
    return out.getvalue().removesuffix("...\n")


def _comments(text: str) -> list[str]:
    return sorted(line.partition("#")[2].strip() for line in text.splitlines() if "#" in line)


def _tidy(text: str) -> str:
    """Return `text` with one line end at its end."""
    return text.rstrip("\n") + "\n" if text.strip() else ""
