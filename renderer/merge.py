"""The merge: maps deep, scalars and lists replace, null is a value, !remove deletes; leaves keep their history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from renderer.layers import Layer
from renderer.location import Location
from renderer.problem import Problem
from renderer.scalars import Value
from renderer.yaml_io import REMOVED, Node


class Leaf:
    """The value that won, which layer set it, and what it replaced. Never changed once made."""

    __slots__ = ("layer", "node", "previous")

    def __init__(self, node: Node, layer: Layer, previous: Leaf | Tree | None = None) -> None:
        self.node = node
        self.layer = layer
        self.previous = previous

    @property
    def removed(self) -> bool:
        """Whether the key was taken out."""
        return self.node.value is REMOVED

    @property
    def at(self) -> Location:
        """Where the value stands."""
        return self.node.at


Tree = dict[str, Union["Leaf", "Tree"]]
"""Merged keys. Trees share their parts: merging copies only what it changes."""


def merge(base: Tree, entries: dict[str, Node], layer: Layer, problems: list[Problem], path: str) -> Tree:
    """Return `base` with the keys of one layer on top; `path` is the namespace in messages."""
    merged = dict(base)
    for key, node in entries.items():
        merged[key] = _merge_key(base.get(key), node, layer, problems, f"{path}.{key}")
    return merged


def _merge_key(old: Leaf | Tree | None, node: Node, layer: Layer, problems: list[Problem], path: str) -> Leaf | Tree:
    value = node.value
    if value is REMOVED:
        if old is None or (isinstance(old, Leaf) and old.removed):
            problems.append(
                Problem("remove-nothing", node.at, path, "!remove, but no lower layer sets it: delete this line")
            )
        return Leaf(node, layer, old)
    if not isinstance(value, dict):
        if isinstance(old, dict):
            problems.append(_clash(node, path, "a single value", "a mapping", first_place(old)))
        return Leaf(node, layer, old)
    if isinstance(old, Leaf):
        if not old.removed and old.node.value != {}:
            problems.append(_clash(node, path, "a mapping", "a single value", old.at))
        old = _taken_out(old)
    if not value:
        return old or Leaf(node, layer)
    return merge(old or {}, value, layer, problems, path)


def _taken_out(leaf: Leaf) -> Tree:
    """Return what `!remove` took out of a mapping, key by key, so that a mapping on top of it keeps their history."""
    if not leaf.removed or not isinstance(leaf.previous, dict):
        return {}
    return {key: Leaf(leaf.node, leaf.layer, item) for key, item in leaf.previous.items()}


def _clash(node: Node, path: str, here: str, there: str, place: Location) -> Problem:
    return Problem("merge-clash", node.at, path, f"{here} here, but {there} at {place}: write the same shape in both")


def first_place(tree: Leaf | Tree) -> Location:
    """Return where the first leaf of `tree` was written."""
    while isinstance(tree, dict):
        tree = next(iter(tree.values()))
    return tree.at


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Yield (dotted path, leaf) of everything in `tree` that was not removed."""
    for key, item in tree.items():
        child = f"{path}.{key}" if path else key
        if isinstance(item, dict):
            yield from leaves(item, child)
        elif not item.removed:
            yield child, item


def values(tree: Tree) -> dict[str, Value]:
    """Return the values of `tree` without their history."""
    found: dict[str, Value] = {}
    for key, item in tree.items():
        if isinstance(item, dict):
            found[key] = values(item)
        elif not item.removed:
            found[key] = item.node.value
    return found


def winner(item: Leaf | Tree) -> Leaf | None:
    """Return the leaf that decides: of a mapping the one from the highest layer, nothing for an empty one."""
    if isinstance(item, Leaf):
        return item
    found = None
    for _, leaf in leaves(item):
        if found is None or ORDER[leaf.layer.name] > ORDER[found.layer.name]:
            found = leaf
    return found


ORDER = {
    name: rank
    for rank, name in enumerate(("model", "topology", "dataset", "environment", "experiment", "command line"))
}
"""The layers' names from lowest to highest."""


def history(item: Leaf | Tree) -> Iterator[Leaf]:
    """Yield every assignment of one key, the winning one first."""
    while isinstance(item, Leaf):
        yield item
        if item.previous is None:
            return
        item = item.previous
    for _, leaf in leaves(item):
        yield from history(leaf)
