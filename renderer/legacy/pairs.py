"""Reads tests/legacy/checks.yml: which experiment stands for which recording, and what may differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from renderer.legacy.waivers import Waiver, parse
from renderer.location import Location
from renderer.problem import Problem, RefusedError
from renderer.yaml_io import Node, read_file

FOLDER = "tests/legacy"
FILE = f"{FOLDER}/checks.yml"

RECONSTRUCTION = "reconstruction/"
"""Recordings below this folder are of stand-ins for launchers that are not public."""

_TOP = ("waivers", "pairs", "refused")
_PAIR = ("recording", "version", "use", "waivers")


@dataclass(frozen=True, slots=True)
class Pair:
    """One experiment and its recording, relative to tests/legacy/. `version` reads a recording whose pin is unknown."""

    experiment: str
    recording: str
    version: str | None
    waivers: tuple[Waiver, ...]
    at: Location


@dataclass(frozen=True, slots=True)
class Pairs:
    """Everything checks.yml says.

    `sets` are the waivers that pairs share, by name; `refused` recordings of other programs, each with the reason.
    """

    pairs: tuple[Pair, ...]
    sets: Mapping[str, tuple[Waiver, ...]]
    refused: Mapping[str, str]
    unused_sets: tuple[Location, ...]


def read(root: Path) -> Pairs:
    """Return what tests/legacy/checks.yml says. Raises RefusedError with everything that is wrong in it."""
    problems: list[Problem] = []
    node = read_file(root / FILE, FILE, problems)
    found = _read(node, problems)
    if problems:
        raise RefusedError(problems)
    return found


def _read(node: Node, problems: list[Problem]) -> Pairs:
    for key, item in node.value.items():
        if key not in _TOP:
            problems.append(Problem("checks-key", item.key_at, key, "unknown key", f"known: {', '.join(_TOP)}"))
    sets = {name: _waivers(item, problems) for name, item in _children(node, "waivers", problems).items()}
    used: set[str] = set()
    pairs = [
        pair
        for name, item in _children(node, "pairs", problems).items()
        if (pair := _pair(name, item, sets, used, problems))
    ]
    refused = {name: str(item.value) for name, item in _children(node, "refused", problems).items()}
    named = _children(node, "waivers", problems)
    return Pairs(tuple(pairs), sets, refused, tuple(named[name].key_at for name in sorted(set(sets) - used)))


def _children(node: Node, key: str, problems: list[Problem]) -> dict[str, Node]:
    child = node.value.get(key) if isinstance(node.value, dict) else None
    if child is None or child.value is None:
        return {}
    if not isinstance(child.value, dict):
        problems.append(Problem("checks-form", child.at, key, "must be a mapping"))
        return {}
    return child.value


def _waivers(node: Node, problems: list[Problem]) -> tuple[Waiver, ...]:
    if not isinstance(node.value, dict):
        problems.append(Problem("checks-form", node.at, "waivers", "must be a mapping of names to waivers"))
        return ()
    found = (parse(name, item, problems) for name, item in node.value.items())
    return tuple(waiver for waiver in found if waiver)


def _pair(
    name: str, node: Node, sets: Mapping[str, tuple[Waiver, ...]], used: set[str], problems: list[Problem]
) -> Pair | None:
    before = len(problems)
    fields = node.value if isinstance(node.value, dict) else {}
    for key, item in fields.items():
        if key not in _PAIR:
            problems.append(
                Problem("checks-key", item.key_at, f"{name}.{key}", "unknown key", f"known: {', '.join(_PAIR)}")
            )
    texts = [key for key in ("recording", "version") if key in fields or key == "recording"]
    wrong = (key for key in texts if not isinstance(getattr(fields.get(key), "value", None), str))
    problems.extend(Problem("checks-form", node.key_at, f"{name}.{key}", "must be text") for key in wrong)
    chosen = fields["use"].value if "use" in fields else []
    for unknown in [item for item in chosen if item not in sets] if isinstance(chosen, list) else [str(chosen)]:
        known = ", ".join(sets) or "none"
        problems.append(
            Problem("checks-form", fields["use"].at, f"{name}.use", f"no waivers {unknown}", f"known: {known}")
        )
    own = _waivers(fields["waivers"], problems) if "waivers" in fields else ()
    if len(problems) > before:
        return None
    used.update(chosen)
    shared = tuple(waiver for item in chosen for waiver in sets[item])
    version = fields["version"].value if "version" in fields else None
    return Pair(name, fields["recording"].value, version, shared + own, node.key_at)
