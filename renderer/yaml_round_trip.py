"""Hides ruamel.yaml's round-trip loader, which keeps comments and how numbers were written: loads, changes and dumps.

It hangs a comment on the key before it, even where it is about the next one, and it fails with IndexError,
NotImplementedError and others on some of what the strict reader takes: callers expect anything from it.
"""

from __future__ import annotations

import io
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.scalarstring import DoubleQuotedScalarString
from ruamel.yaml.tokens import CommentToken

from renderer.scalars import Value, is_text


def load(text: str) -> Any:
    """Return the tree of `text`, nothing where it holds no value."""
    return _loader().load(text)


def dump(tree: Any) -> str:
    """Return the text of a tree."""
    out = io.StringIO()
    _loader().dump(tree, out)
    return out.getvalue().removesuffix("...\n")


def _loader() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 16  # never fold a line: a folded value reads the same, but its diff does not
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.allow_duplicate_keys = True  # the strict reader has refused them
    return yaml


def reorder(tree: Any, order: tuple[str, ...]) -> None:
    """Bring the known keys to the front in `order`, where they are out of it."""
    known = [key for key in order if key in tree]
    if [key for key in tree if key in order] == known and list(tree)[: len(known)] == known:
        return
    for key in reversed(known):
        tree.move_to_end(key, last=False)


def put(root: CommentedMap, target: CommentedMap, key: str, value: Any) -> None:
    """Set a key; what stands below the last key of a mapping goes on standing above the key that follows it."""
    below = "" if key in target or target.fa.flow_style() or _ends(target, root) else _cut(*_last(target))
    target[safe(key)] = value
    if below:
        holder, last = _last(target)
        token = CommentToken(f"\n{below}", CommentMark(0), None)
        holder.ca.items[last] = [token, None] if isinstance(holder, CommentedSeq) else [None, None, token, None]


def _ends(tree: CommentedMap, root: CommentedMap) -> bool:
    """Return whether `tree` ends where `root` does: what stands below belongs to no key that follows."""
    return not tree or _last(tree)[0] is _last(root)[0]


def _cut(holder: CommentedMap | CommentedSeq, last: Any) -> str:
    """Take the comments below the last item away, not the one beside it, and return them."""
    slot = 0 if isinstance(holder, CommentedSeq) else 2
    tokens = holder.ca.items.get(last) or []
    if len(tokens) <= slot or tokens[slot] is None:
        return ""
    beside, _, below = tokens[slot].value.partition("\n")
    tokens[slot] = CommentToken(f"{beside}\n", tokens[slot].start_mark, None) if beside else None
    return str(below)


def _last(tree: CommentedMap) -> tuple[Any, Any]:
    """Return the innermost collection at the end of `tree`, which is not empty, and its last key or index."""
    holder: Any = tree
    while True:
        key = next(reversed(holder)) if isinstance(holder, CommentedMap) else len(holder) - 1
        inner = holder[key]
        if not isinstance(inner, CommentedMap | CommentedSeq) or not inner or inner.fa.flow_style():
            return holder, key
        holder = inner


_PLAIN = re.compile(r"[A-Za-z0-9/](?:[A-Za-z0-9_ ./:+-]*[A-Za-z0-9_./+-])?")


def safe(text: str) -> str:
    """Return `text`, in double quotes where not all readers would take it for text without."""
    return text if _PLAIN.fullmatch(text) and is_text(text) else DoubleQuotedScalarString(text)


def quoted(value: Value) -> Any:
    """Return `value` with every text in it written so that all readers take it for text, lists in lists on one line."""
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, dict):
        found = CommentedMap()
        found.update((safe(key), quoted(item)) for key, item in value.items())
        return found
    if not isinstance(value, list):
        return value
    items = CommentedSeq(quoted(item) for item in value)
    for item in items:
        if isinstance(item, CommentedSeq):
            item.fa.set_flow_style()
    return items
