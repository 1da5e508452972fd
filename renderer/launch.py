"""What `launch:` says: which presets to take, who owns the run, and what to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from renderer.key_types import judge
from renderer.keys import LAUNCH_KEYS
from renderer.layers import Selection
from renderer.location import COMMAND_LINE, Location
from renderer.problem import Problem
from renderer.schema import nearest
from renderer.yaml_io import Node

REQUIRED = ("model", "chips", "context", "environment")


@dataclass(frozen=True, slots=True)
class Launch:
    """The selectors and the intent of one run, validated. `places` says where each was written."""

    model: str
    chips: int
    context: str
    environment: str
    owner: str | None
    image: str | None
    branch: str | None
    commit: str | None
    name: str | None
    resume: str | None
    attempt: int
    supersede: str | None
    state: str | None
    places: Mapping[str, Location]

    @property
    def selection(self) -> Selection:
        """What chooses the preset files."""
        return Selection(self.model, self.chips, self.context, self.environment)

    @property
    def mode(self) -> str:
        """`image` where an image is given, else `source`: the pod clones a branch."""
        return "source" if self.image is None and self.environment == "test" else "image"

    def place(self, key: str) -> Location:
        """Return where `key` was written, else where `launch:` begins."""
        return self.places.get(key) or next(iter(self.places.values()), COMMAND_LINE)


def parse(nodes: Mapping[str, Node], start: Location, problems: list[Problem]) -> Launch | None:
    """Return the launch that `nodes` describe, nothing if a selector is missing or any value is wrong."""
    before = len(problems)
    for key, node in nodes.items():
        problems.extend(_judge(key, node))
    for key in REQUIRED:
        if key not in nodes:
            message = f"missing: {LAUNCH_KEYS[key].description}"
            problems.append(Problem("launch-missing", start, f"launch.{key}", message))
    if len(problems) > before:
        return None
    read: dict[str, Any] = {key: nodes[key].value if key in nodes else None for key in LAUNCH_KEYS}
    read["attempt"] = read["attempt"] or 1
    return Launch(**read, places={key: node.at for key, node in nodes.items()})


def _judge(key: str, node: Node) -> list[Problem]:
    path = f"launch.{key}"
    if key not in LAUNCH_KEYS:
        near = nearest(key, LAUNCH_KEYS)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(LAUNCH_KEYS)}"
        return [Problem("unknown-launch-key", node.key_at, path, "unknown key", hint)]
    return list(judge(LAUNCH_KEYS[key], node, path))
