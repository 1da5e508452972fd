"""What of a live object differs from its manifest, by who owns each field; defaults of the server are no difference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from renderer.cluster.api import FIELD_MANAGER, Object
from renderer.names import QUEUE_LABEL

Path = tuple[str, ...]
"""Names of fields; an item of a list is named by its key, as [trainer]."""


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()
"""What stands for a field that is not there."""

_CONTROLLERS = frozenset({"jobset", "kube-controller-manager", "kube-scheduler", "kueue", "manager"})
"""Field managers whose work is no drift: JobSet's and Kueue's controllers call themselves manager in their images."""
_KEYS = ("mountPath", "containerPort", "name")
_CHANGED_BY_LAUNCHING: tuple[Path, ...] = (
    ("status",),
    ("spec", "suspend"),
    ("metadata", "labels", QUEUE_LABEL),
    ("metadata", "finalizers"),
    ("metadata", "labels", "renderer/owner"),
    ("metadata", "annotations", "renderer/files-digest"),
    ("metadata", "annotations", "renderer/experiment-digest"),
)
"""Fields that apply, Kueue or a deletion sets, and those that a later commit may change without a new launch."""
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """A field whose live value is not the committed one; ABSENT where one of them has none. `by`: who set it, when."""

    path: str
    committed: Any
    live: Any
    by: str = ""

    def __str__(self) -> str:
        who = f" (by {self.by})" if self.by else ""
        return f"{self.path}: {_short(self.committed)} in git, {_short(self.live)} in the cluster{who}"


def differences(committed: Object, live: Object) -> list[Difference]:
    """Return what differs, by path: committed fields first, then fields that someone else added."""
    owners = dict(_owners(live))
    found = {path: (mine, theirs) for path, mine, theirs in _compare(committed, live, ())}
    for path, (manager, _) in owners.items():
        theirs, mine = _at(live, path), _at(committed, path)
        if manager != FIELD_MANAGER and theirs is not ABSENT and not _same(mine, theirs):
            found.setdefault(path, (mine, theirs))
    kept = {path: values for path, values in found.items() if not _expected(path, owners)}
    return [_difference(path, values, owners) for path, values in _outermost(kept).items()]


def _expected(path: Path, owners: Mapping[Path, tuple[str, str]]) -> bool:
    if any(path[: len(known)] == known for known in _CHANGED_BY_LAUNCHING):
        return True
    return _owner(path, owners)[0] in _CONTROLLERS


def _outermost(found: Mapping[Path, tuple[Any, Any]]) -> dict[Path, tuple[Any, Any]]:
    """Return the differences without those inside another."""
    return {
        path: values for path, values in found.items() if not any(path[:end] in found for end in range(1, len(path)))
    }


def _difference(path: Path, values: tuple[Any, Any], owners: Mapping[Path, tuple[str, str]]) -> Difference:
    manager, time = _owner(path, owners)
    by = "" if manager in {"", FIELD_MANAGER} else f"{manager}, {time}"
    return Difference(_shown(path), *values, by)


def _owner(path: Path, owners: Mapping[Path, tuple[str, str]]) -> tuple[str, str]:
    """Return who set a field, or the nearest one around it, and when."""
    return next((owners[path[:end]] for end in range(len(path), 0, -1) if path[:end] in owners), ("", ""))


def _compare(mine: Any, theirs: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Yield where `theirs` does not have what `mine` has; what it has besides is passed over."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key, value in mine.items():
            yield from _compare(value, theirs.get(key, ABSENT), (*path, key))
    elif isinstance(mine, list) and isinstance(theirs, list) and mine and isinstance(mine[0], dict):
        yield from _compare_items(mine, theirs, path)
    elif not _same(mine, theirs):
        yield path, mine, theirs


def _compare_items(mine: list[Any], theirs: list[Any], path: Path) -> Iterator[tuple[Path, Any, Any]]:
    key = _key(mine)
    if key:
        by_key = {str(item.get(key)): item for item in theirs}
        for item in mine:
            yield from _compare(item, by_key.get(str(item[key]), ABSENT), (*path, f"[{item[key]}]"))
        return
    for index, item in enumerate(mine):
        if not any(not list(_compare(item, other, ())) for other in theirs):
            yield from _compare(item, theirs[index] if index < len(theirs) else ABSENT, (*path, f"[{index}]"))


def _key(items: list[Any]) -> str:
    """Return the field that tells a list's items apart, nothing if there is none."""
    for key in _KEYS:
        if len({str(item.get(key)) for item in items if key in item}) == len(items):
            return key
    return ""


def _same(mine: Any, theirs: Any) -> bool:
    """Return whether two values are equal; a quantity may be a number in one and text in the other.

    Controllers leave out what is empty when they write an object back, and mean the same.
    """
    if theirs is ABSENT:
        return not mine
    if isinstance(mine, bool) or isinstance(theirs, bool):
        return mine is theirs
    if isinstance(mine, int | float | str) and isinstance(theirs, int | float | str):
        return str(mine) == str(theirs)
    return bool(mine == theirs)


def _owners(live: Object) -> Iterator[tuple[Path, tuple[str, str]]]:
    """Yield the innermost fields that anyone set, with who and when; the latest of several comes last."""
    managers = [item for item in live["metadata"].get("managedFields") or () if item.get("subresource") != "status"]
    for item in sorted(managers, key=lambda item: str(item.get("time", ""))):
        for path in _leaves(item.get("fieldsV1") or {}, ()):
            yield path, (str(item.get("manager", "")), str(item.get("time", "")))


def _leaves(fields: Mapping[str, Any], path: Path) -> Iterator[Path]:
    """Yield the paths of a managedFields tree: f:NAME, k:{keys of an item}, v:VALUE, and . for the field itself."""
    inner = {name: value for name, value in fields.items() if name != "."}
    if not inner and path:
        yield path
    for name, value in inner.items():
        yield from _leaves(value, (*path, _step(name)))


def _step(name: str) -> str:
    kind, _, text = name.partition(":")
    if kind != "k":
        return text if kind == "f" else f"[{text}]"
    keys = json.loads(text)
    return f"[{next((keys[key] for key in _KEYS if key in keys), text)}]"


def _at(value: Any, path: Path) -> Any:
    """Return what is at a path, ABSENT where nothing is."""
    for step in path:
        if isinstance(value, list):
            value = next(
                (item for item in value if isinstance(item, dict) and step in map(_bracket, _ids(item))), ABSENT
            )
        else:
            value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
    return value


def _ids(item: Mapping[str, Any]) -> list[Any]:
    return [item[key] for key in _KEYS if key in item][:1]


def _bracket(value: Any) -> str:
    return f"[{value}]"


def _shown(path: Path) -> str:
    return ".".join(path).replace(".[", "[")


def _short(value: Any) -> str:
    text = repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
