"""Single mistakes in a JobSet, the kind that people and templates make, drawn from a seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]

REQUEST = (("apiVersion",), ("kind",), ("metadata", "namespace"))
"""What also stands in a request's address."""

VALUES: tuple[Any, ...] = (
    None,
    "",
    "text",
    "8",
    "true",
    True,
    0,
    1,
    -1,
    8,
    2**31,
    2**63,
    1.5,
    [],
    {},
    ["text"],
    {"key": "value"},
    [8],
)
"""What may stand where something else should."""


def mutations(jobset: dict[str, Any], seed: int, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield `count` changed copies of `jobset`, each with words for its one change."""
    draw = random.Random(seed)
    paths = [path for path in _paths(jobset) if path and path not in REQUEST]
    for _ in range(count):
        changed = copy.deepcopy(jobset)
        path = draw.choice(paths)
        *parents, last = path
        parent: Any = changed
        for step in parents:
            parent = parent[step]
        change = draw.choice(_CHANGES)
        yield f"{_dotted(path)}: {change(parent, last, draw)}", changed


def _paths(node: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in members:
        yield from _paths(child, (*path, key))


def _dotted(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _remove(parent: Any, last: Any, draw: random.Random) -> str:
    del parent[last]
    return "removed"


def _replace(parent: Any, last: Any, draw: random.Random) -> str:
    parent[last] = copy.deepcopy(draw.choice(VALUES))
    return f"set to {parent[last]!r}"


def _misspell(parent: Any, last: Any, draw: random.Random) -> str:
    if isinstance(parent, list) or len(last) < 2:
        return _replace(parent, last, draw)
    place = draw.randrange(len(last) - 1)
    wrong = draw.choice((last[:place] + last[place + 1 :], last.swapcase(), f"{last}s", f"{last[0]}{last}"))
    parent[wrong] = parent.pop(last)
    return f"renamed to {wrong}"


def _repeat(parent: Any, last: Any, draw: random.Random) -> str:
    if not isinstance(parent, list):
        return _replace(parent, last, draw)
    parent.append(copy.deepcopy(parent[last]))
    return "repeated"


def _add(parent: Any, last: Any, draw: random.Random) -> str:
    if not isinstance(parent[last], dict):
        return _replace(parent, last, draw)
    parent[last]["extra"] = copy.deepcopy(draw.choice(VALUES))
    return f"extra: {parent[last]['extra']!r}"


def _move_up(parent: Any, last: Any, draw: random.Random) -> str:
    """Put a field one level too high, as a wrong indentation does."""
    if not isinstance(parent, dict) or not isinstance(parent[last], dict) or not parent[last]:
        return _replace(parent, last, draw)
    key = draw.choice(sorted(parent[last]))
    parent[key] = parent[last].pop(key)
    return f"{key} moved up"


_CHANGES = (_remove, _replace, _replace, _misspell, _repeat, _add, _move_up)
