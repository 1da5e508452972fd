"""Looks at a recording before it is trusted: a snapshot must not freeze a launcher that is broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from renderer import secrets
from renderer.legacy import manifest, shell_text
from renderer.legacy.record import Phase, Recording
from renderer.legacy.shell_text import SHELL_OWN, Script
from renderer.location import Location
from renderer.problem import Problem
from renderer.schema import Snapshot, known_elsewhere, nearest

CODES = {
    "invalid-json": "a variable or option that looks like JSON and is none",
    "unset-variable": "a variable or array is expanded that nothing sets",
    "swallowed-flag": "an option took the next option for its value",
    "unread-variable": "a variable is set and never read",
    "unknown-key": "MaxText has no such key",
    "repeated-argument": "a key is passed twice, and the first has no effect",
    "empty-argument": "key= without a value is null to MaxText",
    "personal-path": "a path of one person or machine",
    "clock": "something that differs at each run, and cannot be frozen",
}
"""Every thing the examination finds: code and meaning."""


def examine(recording: Recording, snapshot: Snapshot) -> list[Problem]:
    """Return what is wrong with the recorded launcher, each problem once, by code and place."""
    found = [problem for look in _LOOKS for problem in look(recording)]
    found += _unknown_keys(recording, snapshot)
    order = ["secret", *CODES]
    return sorted(dict.fromkeys(found), key=lambda problem: (order.index(problem.code), problem.location))


def _phases(recording: Recording) -> Iterator[Phase]:
    yield recording.launcher
    yield recording.pod


def _invalid_json(recording: Recording) -> Iterator[Problem]:
    data = recording.data
    texts = {f"env.{name}": text for name, text in data["pod"]["environment"].items()}
    for item in manifest.job_sets(data["objects"]):
        texts |= {f"env.{name}": text for name, text in manifest.environment(manifest.container(item, "")).items()}
    for command in [*data["commands"], *data["pod"]["commands_before_training"]]:
        texts |= {
            f"{command[0]} {word.partition('=')[0]}": word.partition("=")[2]
            for word in command
            if word.startswith("--")
        }
        texts |= {f"{command[0]} {option}": word for option, word in pairwise(command) if "json" in option}
    for name, text in texts.items():
        if re.match(r"\s*[{\[]", text) and not _is_json(text):
            yield Problem(
                "invalid-json", Location(data["launcher"]), name, f"is not valid JSON: {secrets.mask(text)[:120]}"
            )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _unset(recording: Recording) -> Iterator[Problem]:
    for phase in _phases(recording):
        known = SHELL_OWN | phase.environment | {use.name for script in phase.scripts for use in script.sets}
        for script in phase.scripts:
            for use in script.expands:
                if use.name not in known and not use.guarded:
                    message = f"{use.name} is expanded, and nothing sets it"
                    yield Problem("unset-variable", Location(script.file, use.line, 1), "", message)
        for note in phase.notes:
            for name, is_set in note.get("substituted", {}).items():
                if not is_set:
                    message = f"the template uses {name}, and nothing exports it"
                    yield Problem("unset-variable", Location(recording.data["launcher"]), "", message)


def _swallowed(recording: Recording) -> Iterator[Problem]:
    for phase in _phases(recording):
        valued = {flag for script in phase.scripts for flag in script.valued_flags}
        for note in phase.notes:
            argv = note["argv"]
            for index, word in enumerate(argv):
                following = argv[index + 1] if index + 1 < len(argv) else ""
                if word in valued and (not following or re.match(r"--?[A-Za-z]", following)):
                    taken = f"took {following} for it" if following else "ends the command"
                    message = f"{argv[0]} {word}: its value is empty, so it {taken}"
                    yield Problem("swallowed-flag", Location(recording.data["launcher"]), "", message)


def _unread(recording: Recording) -> Iterator[Problem]:
    """An exported variable of the launcher counts as read by a template or a script; in the pod, by the trainer."""
    for phase, exported_is_read in ((recording.launcher, False), (recording.pod, True)):
        used = {use.name for script in phase.scripts for use in script.expands}
        used |= {name for note in phase.notes for name in note.get("substituted", {})}
        used |= {name for note in phase.notes for name in note.get("environment", {})} if exported_is_read else set()
        for script in phase.scripts:
            for use in script.sets:
                if use.name not in used | SHELL_OWN and not (exported_is_read and use.name in script.exports):
                    message = f"{use.name} is set and never read"
                    yield Problem("unread-variable", Location(script.file, use.line, 1), "", message)


def _arguments(recording: Recording) -> list[str]:
    return [word for word in recording.data["pod"]["trainer"][1:] if "=" in word and not word.startswith("-")]


def _unknown_keys(recording: Recording, snapshot: Snapshot) -> Iterator[Problem]:
    for key in dict.fromkeys(word.partition("=")[0] for word in _arguments(recording)):
        if key not in snapshot.keys:
            elsewhere = known_elsewhere(snapshot, key)
            near = nearest(key, snapshot.keys)
            hint = elsewhere or (f"did you mean {' or '.join(near)}?" if near else "")
            message = f"MaxText {snapshot.version} has no such key"
            yield Problem("unknown-key", Location(recording.data["launcher"]), key, message, hint)


def _repeated(recording: Recording) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for word in _arguments(recording):
        key, _, text = word.partition("=")
        if key in seen:
            message = f"is passed twice: {seen[key]} has no effect, {text} has"
            yield Problem("repeated-argument", Location(recording.data["launcher"]), key, message)
        seen[key] = text
        if not text:
            yield Problem(
                "empty-argument", Location(recording.data["launcher"]), key, "has no value: MaxText reads null"
            )


_PERSONAL = re.compile(r"(?<![\w.])(?:/home/[\w.-]+|/Users/[\w.-]+|~/|<home>|<checkout>|<tmp>)[\w./-]*")


def _personal(recording: Recording) -> Iterator[Problem]:
    """What reaches the cluster: objects, launching commands, and the trainer's arguments and variables."""
    pod = recording.data["pod"]
    launching = [command for command in recording.data["commands"] if command[0] in {"kubectl", "xpk"}]
    shown = [recording.data["objects"], launching, pod["trainer"], pod["environment"]]
    for text in _texts(shown):
        match = _PERSONAL.search(text)
        if match:
            message = f"holds the path {match.group()}, which others do not have"
            around = secrets.mask(text)[:120]
            yield Problem("personal-path", Location(recording.data["launcher"]), "", message, around)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


_FILLED_IN = re.compile(r"<(?:secretKeyRef|fieldRef|configMapKeyRef|resourceFieldRef) [^>]*>")
"""What stands in a recording for a value that the pod gets from the cluster."""


def _secrets(recording: Recording) -> Iterator[Problem]:
    """A recording is committed, so a credential in it must never be accepted; its text is in no message."""
    for path, text in _named_texts(recording.data, ""):
        for found in secrets.find(path.rpartition(".")[2], _FILLED_IN.sub("", text)):
            message = f"looks like a secret ({found.kind}, {len(found.value)} characters, not shown): never commit one"
            hint = "read it from a Kubernetes Secret, or set it to a placeholder while recording"
            yield Problem("secret", Location(recording.data["launcher"]), path, message, hint)


def _named_texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _named_texts(item, f"{path}.{key}" if path else str(key))


def _clocks(recording: Recording) -> Iterator[Problem]:
    scripts: list[Script] = [script for phase in _phases(recording) for script in phase.scripts]
    for script in scripts:
        found = shell_text.clock(script.text)
        if found:
            line, text = found
            message = f"{text} differs at each run: use date, or a name that does not change"
            yield Problem("clock", Location(script.file, line, 1), "", message)


_LOOKS: tuple[Callable[[Recording], Iterator[Problem]], ...] = (
    *(_secrets, _invalid_json, _unset, _swallowed, _unread, _repeated, _personal, _clocks),
)
