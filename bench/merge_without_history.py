"""The merge as it would be without provenance: the same rules and refusals, but a key holds only the node that won.

Kept only to measure what the history of renderer.merge costs.
"""

from __future__ import annotations

from typing import Union

from renderer.problem import Problem
from renderer.yaml_io import REMOVED, Node

Bare = dict[str, Union[Node, "Bare"]]


def merge(base: Bare, entries: dict[str, Node], problems: list[Problem], path: str) -> Bare:
    """Return `base` with the keys of one layer on top."""
    merged = dict(base)
    for key, node in entries.items():
        merged[key] = _merge_key(base.get(key), node, problems, f"{path}.{key}")
    return merged


def _merge_key(old: Node | Bare | None, node: Node, problems: list[Problem], path: str) -> Node | Bare:
    value = node.value
    if value is REMOVED:
        if old is None or (isinstance(old, Node) and old.value is REMOVED):
            problems.append(Problem("remove-nothing", node.at, path, "!remove, but no lower layer sets it"))
        return node
    if not isinstance(value, dict):
        if isinstance(old, dict):
            problems.append(Problem("merge-clash", node.at, path, "a single value here, but a mapping below"))
        return node
    if isinstance(old, Node):
        if old.value is not REMOVED and old.value != {}:
            problems.append(Problem("merge-clash", node.at, path, "a mapping here, but a single value below"))
        old = None
    if not value:
        return node if old is None else old
    return merge(old or {}, value, problems, path)
