"""Rewrites YAML files and keeps their comments: the stable form of `format`, and the edits of `new`.

Only here ruamel.yaml's round-trip loader is used: it keeps comments and how numbers were written, and is slow.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from renderer.problem import Problem, RefusedError
from renderer.scalars import Value
from renderer.yaml_io import plain, read

SECTIONS = ("launch", "deploy", "maxtext", "checks")
_LAUNCH: tuple[str, ...] = ("model", "chips", "context", "environment", "owner", "image", "branch", "commit", "name")
_LAUNCH += ("resume", "attempt", "supersede", "state")


def formatted(data: bytes, name: str) -> bytes:
    """Return the stable form of a file: sections and selectors in order, two spaces, no trailing blanks, LF.

    Comments and values stay; formatting twice changes nothing. Raises RefusedError for what the strict reader refuses.
    """
    before = _strict(data, name)
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    tree = _loader().load(text)
    if tree is None:
        return _tidy(text)
    _reorder(tree, SECTIONS)
    if isinstance(tree.get("launch"), CommentedMap):
        _reorder(tree["launch"], _LAUNCH)
    return _checked(tree, before, text, name)


def edited(data: bytes, name: str, changes: Mapping[str, Mapping[str, Value]]) -> bytes:
    """Return the file with `changes` (section to key to value) made in it; a dotted key reaches into a mapping."""
    _strict(data, name)
    tree = _loader().load(data.decode("utf-8-sig")) or CommentedMap()
    for section, values in changes.items():
        for path, value in values.items():
            *parents, key = [section, *path.split(".")]
            target = tree
            for parent in parents:
                if not isinstance(target.get(parent), CommentedMap):
                    target[parent] = CommentedMap()
                target = target[parent]
            target[key] = value
    return formatted(_dump(tree).encode(), name)


def _strict(data: bytes, name: str) -> Value:
    problems: list[Problem] = []
    node = read(data, name, problems)
    if problems:
        raise RefusedError(problems)
    return plain(node)


def _loader() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 16  # never fold a line: a folded value reads the same, but its diff does not
    yaml.indent(mapping=2, sequence=4, offset=2)
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
    return out.getvalue()


def _checked(tree: Any, before: Value, text: str, name: str) -> bytes:
    """Return the dumped tree; the file as it was where the round trip would change a value or lose a comment."""
    out = _tidy(_dump(tree))
    problems: list[Problem] = []
    same = plain(read(out, name, problems)) == before and not problems
    return out if same and _comments(out.decode()) == _comments(text) else _tidy(text)


def _comments(text: str) -> list[str]:
    return sorted(line.partition("#")[2].strip() for line in text.splitlines() if "#" in line)


def _tidy(text: str) -> bytes:
    """Return `text` with one line end at its end."""
    return (text.rstrip("\n") + "\n").encode() if text.strip() else b""
