"""Groups what is alike in many experiments, in the order in which it was met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pod.derivations import Override
from renderer.origins import Assignment
from renderer.report.data import Derived, Role, Site, Value
from renderer.report.values import masked

MAX_SITES = 50
"""Of a value that is alike in more experiments, the report names so many."""


@dataclass(frozen=True, slots=True)
class Group:
    """What experiments have in common, and where it stands in this one."""

    path: str
    old: str
    new: str
    layer: str
    beat: tuple[str, ...]
    place: str

    @classmethod
    def of(cls, path: str, old: str, new: str, assigned: Sequence[Assignment]) -> Group:
        """Return the group of a value that `assigned` tells the origin of, the winner first."""
        winner = assigned[0] if assigned else None
        beat = (f"{masked(path, item.value)} ({item.layer}, {item.place.in_line})" for item in assigned[1:])
        place = winner.place.in_line if winner else ""
        return cls(path, old, new, winner.layer if winner else "", tuple(beat), place)


class Groups:
    """Values of one role, grouped over experiments."""

    def __init__(self, role: Role) -> None:
        self._role = role
        self._sites: dict[Group, list[Site]] = {}
        self._counts: dict[Group, int] = {}

    def add(self, group: Group, experiment: str) -> None:
        """Record that an experiment has this value: alike are those whose value stands in one file, or in their own."""
        key = replace(group, place="") if group.layer == "experiment" else group
        self._counts[key] = self._counts.get(key, 0) + 1
        sites = self._sites.setdefault(key, [])
        if len(sites) < MAX_SITES:
            sites.append(Site(experiment, group.place))

    def values(self) -> list[Value]:
        """Return the groups, those of most experiments first, then by key."""
        ordered = sorted(self._sites, key=lambda group: (-self._counts[group], group.path))
        return [self._value(group) for group in ordered]

    def _value(self, group: Group) -> Value:
        sites, count = tuple(self._sites[group]), self._counts[group]
        return Value(self._role, group.path, group.old, group.new, group.layer, group.beat, sites, count)


class Arguments:
    """The arguments that the pod derives, grouped over experiments."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str, str], list[str]] = {}

    def add(self, override: Override, value: str, experiment: str) -> None:
        """Record that an experiment gets this argument; `value` is its text."""
        key = (override.rule, override.key, value, masked(override.key, override.reason))
        self._found.setdefault(key, []).append(experiment)

    def derived(self) -> list[Derived]:
        """Return the groups by rule and key."""
        return [Derived(*key, tuple(names[:MAX_SITES]), len(names)) for key, names in sorted(self._found.items())]
