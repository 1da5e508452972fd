"""Compares two normal forms; the only module that knows deepdiff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deepdiff import DeepDiff

from renderer.compare import ABSENT, text


@dataclass(frozen=True, slots=True)
class Difference:
    """One path whose value differs; ABSENT where a side lacks it."""

    path: str
    recorded: Any
    ours: Any

    @property
    def texts(self) -> tuple[str, str]:
        """Both values as one line each: text as it is, everything else as YAML."""
        return _text(self.recorded), _text(self.ours)


def differences(recorded: Mapping[str, Any], ours: Mapping[str, Any]) -> list[Difference]:
    """Return what differs between two flat mappings, by path. Types count: 8 is not 8.0, true is not 1.

    deepdiff takes mappings that share few keys for two unrelated values unless its threshold is 0, and reports
    places inside a value, which belong to the value's path here.
    """
    found = DeepDiff(dict(recorded), dict(ours), view="tree", threshold_to_diff_deeper=0)
    paths = {level.path(output_format="list")[0] for levels in found.values() for level in levels}
    return [Difference(path, recorded.get(path, ABSENT), ours.get(path, ABSENT)) for path in sorted(paths)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else text(value)
