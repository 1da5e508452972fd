"""Reads a mapping of a reviewed file against a closed table of keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from renderer.key_types import Key, judge
from renderer.problem import Problem
from renderer.schema import nearest
from renderer.yaml_io import Node


def mapping(node: Node, path: str, code: str, problems: list[Problem]) -> dict[str, Node]:
    """Return the entries of `node`; an empty one has none, anything else is a problem."""
    if isinstance(node.value, dict):
        return node.value
    if node.value is not None:
        problems.append(Problem(code, node.at, path, "must be a mapping of keys"))
    return {}


def known(entries: Mapping[str, Node], names: Iterable[str], path: str, code: str, problems: list[Problem]) -> None:
    """Append a problem per entry whose key is not one of `names`."""
    names = tuple(names)
    for name, node in entries.items():
        if name not in names:
            hint = f"known: {', '.join(nearest(name, names) or names)}"
            problems.append(Problem(code, node.key_at, f"{path}.{name}".lstrip("."), "unknown key", hint))


def read(
    node: Node, keys: Iterable[Key], path: str, code: str, problems: list[Problem], *, required: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the value of every one of `keys`, its default where it is absent or wrong (then a problem says so)."""
    table = {key.name: key for key in keys}
    entries = mapping(node, path, code, problems)
    known(entries, table, path, code, problems)
    values = {name: key.default for name, key in table.items()}
    for name in table.keys() & entries.keys():
        found = list(judge(table[name], entries[name], f"{path}.{name}"))
        problems.extend(found)
        if not found:
            values[name] = entries[name].value
    for name in (name for name in required if name not in entries):
        problems += [Problem(code, node.key_at, f"{path}.{name}", f"missing: {table[name].description}")]
    return values
