"""Intended differences: named kinds, each with both values, a reason and an expiry date."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from renderer.compare import ABSENT
from renderer.legacy.difference import Difference
from renderer.location import Location
from renderer.problem import Problem
from renderer.schema import Snapshot, nearest
from renderer.yaml_io import Node

KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "image": ("the image is a variable of the launch", ("job.image", "job.image_is_base")),
    "bootstrap": ("one bootstrap script instead of shell text in the manifest", ("job.before", "program.module")),
    "env-block": ("a variable that only handed a value on to the pod script, which read it", ("env.*",)),
    "mounted-run": ("run.yml and the pod's scripts are mounted", ("job.volumes.*",)),
    "optional-secret": ("the secret may be missing", ("job.secret", "job.secret_optional")),
    "log-upload": ("the bootstrap keeps the log for every run", ("job.after",)),
    "commands-before": ("commands before training that the image holds already", ("job.before", "program.module")),
    "launcher": (
        "the launcher's own names, folder, priority and debugging",
        (
            "job.name",
            "job.run_name",
            "maxtext.run_name",
            "maxtext.base_output_directory",
            "job.priority",
            "job.debug_logs",
        ),
    ),
    "placeholder": ("a placeholder of the recording", ("maxtext.*", "env.*", "job.*")),
    "dead-key": ("a key that no MaxText of this version has", ("maxtext.*",)),
    "forced": ("an import was forced over it: to be explained or removed", ("*",)),
    "default": ("a key that one side leaves to MaxText, with MaxText's own default", ("maxtext.*",)),
}
"""Every kind of intended difference: what it means, and the paths it may waive."""

FIELDS = ("kind", "paths", "recorded", "ours", "reason", "expires")
_OPTIONAL = {"recorded", "ours"}


@dataclass(frozen=True, slots=True)
class Waiver:
    """One intended difference.

    `recorded` and `ours` are texts in which * stands for anything and {field} is filled in.
    """

    name: str
    kind: str
    paths: tuple[str, ...]
    recorded: str
    ours: str
    reason: str
    expires: datetime.date
    at: Location


def parse(name: str, node: Node, problems: list[Problem]) -> Waiver | None:
    """Return the waiver in `node`; nothing, and problems, where a field is missing, unknown or malformed."""
    before = len(problems)
    fields = node.value if isinstance(node.value, dict) else {}
    for key, item in fields.items():
        if key not in FIELDS:
            problems.append(Problem("waiver", item.key_at, key, "unknown field", f"known: {', '.join(FIELDS)}"))
    missing = (key for key in FIELDS if key not in fields and key not in _OPTIONAL)
    problems.extend(Problem("waiver", node.key_at, f"{name}.{key}", "missing: a waiver states it") for key in missing)
    if len(problems) > before:
        return None
    read = {key: item.value for key, item in fields.items()}
    problems.extend(_wrong(name, read, fields))
    if len(problems) > before:
        return None
    return Waiver(
        name=name,
        kind=read["kind"],
        paths=tuple(read["paths"]),
        recorded=read.get("recorded", "*"),
        ours=read.get("ours", "*"),
        reason=read["reason"],
        expires=datetime.date.fromisoformat(read["expires"]),
        at=node.key_at,
    )


def _wrong(name: str, read: Mapping[str, Any], fields: Mapping[str, Node]) -> Iterator[Problem]:
    for key in ("kind", "recorded", "ours", "reason", "expires"):
        if key in read and (not isinstance(read[key], str) or not read[key].strip()):
            yield Problem("waiver", fields[key].at, f"{name}.{key}", "must be text, and not empty")
            return
    if read["kind"] not in KINDS:
        near = nearest(read["kind"], KINDS) or list(KINDS)
        yield Problem("waiver", fields["kind"].at, f"{name}.kind", "unknown kind", f"known: {', '.join(near)}")
        return
    paths = read["paths"]
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        yield Problem("waiver", fields["paths"].at, f"{name}.paths", "must be a list of paths")
        return
    allowed = KINDS[read["kind"]][1]
    for path in paths:
        if not any(matches(pattern, path) for pattern in allowed):
            message = f"{read['kind']} waives {', '.join(allowed)} only, not {path}"
            yield Problem("waiver", fields["paths"].at, f"{name}.paths", message)
    try:
        datetime.date.fromisoformat(read["expires"])
    except ValueError:
        yield Problem("waiver", fields["expires"].at, f"{name}.expires", 'must be a date such as "2027-12-31"')


def matches(pattern: str, text: str) -> bool:
    """Return whether `text` is `pattern`, in which * stands for anything, nothing included."""
    first, *others = map(re.escape, pattern.split("*"))
    between = "".join(f"(?>.*?{part})" for part in others[:-1])  # its first place is as good as any later one
    return re.fullmatch(first + between + "".join(f".*{part}" for part in others[-1:]), text, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Context:
    """What a waiver may refer to: {field} texts, MaxText's defaults, and what the recorded script read and allowed."""

    fields: Mapping[str, str]
    snapshot: Snapshot
    model: str
    reads: frozenset[str]
    overrides: bool


def covers(waiver: Waiver, found: Difference, context: Context) -> bool:
    """Return whether the waiver is about this very difference: path, both values, and what its kind demands."""
    if not any(matches(path, found.path) for path in waiver.paths):
        return False
    patterns = (_filled(waiver.recorded, context.fields), _filled(waiver.ours, context.fields))
    if not all(matches(pattern, text) for pattern, text in zip(patterns, found.texts, strict=True)):
        return False
    demand = _DEMANDS.get(waiver.kind)
    return demand is None or demand(found, context)


def _filled(text: str, fields: Mapping[str, str]) -> str:
    for name, value in fields.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def is_default(found: Difference, context: Context) -> bool:
    """Return whether one side leaves a key to MaxText, and the other writes what MaxText would take.

    An argument that contradicts the model file is an error in MaxText, so a default was in force on both sides.

    That holds for a key that only the recording writes, unless it asks for override_model_config. For a key that only
    we write the model file must be known, and is compared too.
    """
    key = found.path.removeprefix("maxtext.")
    if key not in context.snapshot.keys or (found.recorded is not ABSENT and found.ours is not ABSENT):
        return False
    model = context.snapshot.models.get(context.model)
    if model is None and (found.recorded is ABSENT or context.overrides):
        return False
    default = (model or {}).get(key, context.snapshot.base_default(key))
    written = found.ours if found.recorded is ABSENT else found.recorded
    return bool(written == default and isinstance(written, bool) == isinstance(default, bool))


def _is_dead(found: Difference, context: Context) -> bool:
    return found.ours is ABSENT and found.path.removeprefix("maxtext.") not in context.snapshot.keys


def _was_read(found: Difference, context: Context) -> bool:
    return found.ours is ABSENT and found.path.removeprefix("env.") in context.reads


_DEMANDS = {"default": is_default, "dead-key": _is_dead, "env-block": _was_read}
"""What must be true of a difference besides the waiver's own words."""
