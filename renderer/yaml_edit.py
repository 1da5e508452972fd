"""Rewrites YAML files and keeps their comments: the stable form of `format`, and the edits of `new`.

Whatever the round trip returns is compared with what went in: it may lose or move what it does not understand.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import NoReturn

from ruamel.yaml.comments import CommentedMap

from renderer.keys import LAUNCH_KEYS
from renderer.location import Location
from renderer.problem import Problem, RefusedError, refuse
from renderer.scalars import Value
from renderer.yaml_comments import Comment, Path, comments
from renderer.yaml_io import plain, read
from renderer.yaml_round_trip import dump, load, put, quoted, reorder, safe

SECTIONS = ("launch", "deploy", "maxtext", "checks")
Keys = tuple[str, ...]
"""The keys that lead to a value: text between dots would not say whether a.b is one key or two."""


def formatted(data: bytes, name: str) -> bytes:
    """Return the stable form of a file: sections and selectors in order, two spaces, LF, one line end at its end.

    Comments and values stay, each comment beside its key: where one would leave it, the order stays too. Formatting
    twice changes nothing. Raises RefusedError for what the strict reader refuses.
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


def edited(data: bytes, name: str, changes: Mapping[Keys, Value]) -> bytes:
    """Return the file with `changes` made in it, missing mappings on the way included; a mapping joins one there.

    Raises RefusedError for what the strict reader refuses, for a change of a mapping into a single value or back, and
    for a file in which ruamel.yaml cannot change a value and leave the others and all comments as they are.
    """
    leaves = dict(leaf for keys, value in changes.items() for leaf in _leaves(keys, value))
    expected = _changed(_strict(data, name), name, leaves)
    before = _text(data)
    try:
        text = _edit(before, leaves)
    except Exception as error:  # ruamel.yaml fails with IndexError, NotImplementedError and others
        raise _uneditable(name) from error
    if _meaning(text) != _json(expected) or not _kept(comments(before), comments(text), leaves):
        raise _uneditable(name)
    return formatted(text.encode(), name)


def _leaves(keys: Keys, value: Value) -> Iterator[tuple[Keys, Value]]:
    """Yield the keys and value of everything in `value` that is no mapping, or an empty one."""
    if not isinstance(value, dict) or not value:
        yield keys, value
        return
    for key, item in value.items():
        yield from _leaves((*keys, key), item)


def _uneditable(name: str) -> RefusedError:
    message = "is written in a way that no edit keeps whole: simplify it, or copy it and change the copy by hand"
    return RefusedError([Problem("yaml-edit", Location(name), "", message)])


def _changed(tree: Value, name: str, leaves: Mapping[Keys, Value]) -> Value:
    """Return the data that a file with `tree` holds after the changes."""
    for keys, value in leaves.items():
        target = tree
        for depth, key in enumerate(keys, 1):
            assert isinstance(target, dict)
            old, new = target.get(key), {} if depth < len(keys) else value
            if old is not None and isinstance(old, dict) != isinstance(new, dict):
                _clash(name, keys[:depth], there=isinstance(old, dict))
            target[key] = old if isinstance(old, dict) else new
            target = target[key]
    return tree


def _clash(name: str, keys: Keys, *, there: bool) -> NoReturn:
    shapes = ("a mapping", "a single value") if there else ("a single value", "a mapping")
    message = f"is {shapes[0]} in this file, but {shapes[1]} is given: write the same shape in both"
    refuse("merge-clash", Location(name), message, path=".".join(keys))


def _edit(text: str, leaves: Mapping[Keys, Value]) -> str:
    """Return `text` with the changes made by ruamel.yaml; a file of comments only gets them below."""
    tree = load(text)
    above = "" if tree is not None else _tidy(text)
    root = CommentedMap() if tree is None else tree
    # The innermost first: what is put below a comment at the end of the file must not come between it and its key.
    for keys, value in sorted(leaves.items(), key=lambda leaf: -len(_way(root, leaf[0]))):
        *way, target = root, *_way(root, keys)
        first, *rest = keys[len(way) :]
        if value == {} and isinstance(target.get(first), CommentedMap):
            continue
        new = quoted(value)
        for key in reversed(rest):
            new = CommentedMap({safe(key): new})
        put(root, target, first, new)
    return above + dump(root)


def _way(tree: CommentedMap, keys: Keys) -> list[CommentedMap]:
    """Return the mappings that hold something and that `keys` lead through, the root and the last key left out."""
    found = []
    for key in keys[:-1]:
        tree = tree.get(key)
        if not isinstance(tree, CommentedMap) or not tree:
            break
        found.append(tree)
    return found


def _kept(old: list[Comment], new: list[Comment], leaves: Mapping[Keys, Value]) -> bool:
    """Return whether every comment still stands above its key or, with none below, after the one before it.

    Those inside a value that is replaced go with it.
    """
    old, new = ([item for item in found if not _within(item.after or item.before, leaves)] for found in (old, new))
    return len(old) == len(new) and all(map(_still, old, new))


def _still(old: Comment, new: Comment) -> bool:
    if old.text != new.text:
        return False
    return new.after == old.after if old.after else old.before is None or new.before == old.before


def _within(path: Path | None, leaves: Mapping[Keys, Value]) -> bool:
    return any(path and len(path) > len(keys) and path[: len(keys)] == keys for keys in leaves)


def _strict(data: bytes, name: str) -> Value:
    problems: list[Problem] = []
    found = plain(read(data, name, problems))
    if problems:
        raise RefusedError(problems)
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _step(text: str) -> str:
    """Return the round trip of `text`, in the best order in which no value changes and no comment leaves its key."""
    meaning, beside = _meaning(text), _beside(text)
    for top, launch in itertools.product((True, False), repeat=2):
        candidate = _round_trip(text, top=top, launch=launch)
        if candidate is None:
            break
        if _meaning(candidate) == meaning and _beside(candidate) == beside:
            return candidate
    candidate = _tidy(text)
    return candidate if _meaning(candidate) == meaning and _beside(candidate) == beside else text


def _beside(text: str) -> list[Comment]:
    """Return the comments by the keys they stand beside: those of one key stay in their order."""
    return sorted(comments(text), key=lambda comment: repr((comment.before, comment.after)))


def _round_trip(text: str, *, top: bool, launch: bool) -> str | None:
    """Return what ruamel.yaml makes of `text`, with the keys in order where asked for; nothing where it fails."""
    try:
        tree = load(text)
        if tree is None:
            return None
        if top:
            reorder(tree, SECTIONS)
        if launch and isinstance(tree.get("launch"), CommentedMap):
            reorder(tree["launch"], tuple(LAUNCH_KEYS))
        return _tidy(dump(tree))
    except Exception:  # it fails with IndexError, NotImplementedError and others
        return None


def _meaning(text: str) -> str | None:
    """Return what the strict reader sees in `text`, nothing where it refuses it; 1, 1.0 and true are not the same."""
    problems: list[Problem] = []
    values = plain(read(text.encode(), "", problems))
    return None if problems else _json(values)


def _json(values: Value) -> str:
    return json.dumps(values, sort_keys=True, default=lambda _: {"!remove": None})


def _tidy(text: str) -> str:
    """Return `text` with one line end at its end."""
    return text.rstrip("\n") + "\n" if text.strip() else ""
