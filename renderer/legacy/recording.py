"""The snapshot of a recorded launcher: how it is written for review, and what it resolves to."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from renderer.accelerators import find_slice
from renderer.legacy import manifest
from renderer.legacy.recipe import xpk_job
from renderer.legacy.resolved import (
    JOBSET_FIELDS,
    OWN_ENVIRONMENT,
    XPK_FIELDS,
    Resolved,
    arguments,
    flags,
    program,
    trainer,
)
from renderer.legacy.versions import newest_that_knows, snapshot_of
from renderer.location import Location
from renderer.problem import refuse
from renderer.schema import Snapshot

_ELSEWHERE = {"--cluster", "--project", "--zone", "--command"}
"""Options of xpk that say where to, not what: clusters.yml's business. The command is recorded by itself."""
_WIDTH = 110
_CLONE = re.compile(r"(?:https://)?(?:[^@/\s]*@)?(?P<repository>[\w.-]+(?::\d+)?/\S+)")


def is_recording(data: object) -> bool:
    """Return whether parsed JSON claims to be a recording of ours."""
    return isinstance(data, dict) and "launcher" in data and "pod" in data


def dump(data: Mapping[str, Any]) -> str:
    """Return a recording as JSON for review: text of several lines is written line by line."""
    return "".join(_written(_split(data), "")) + "\n"


def _written(value: Any, indent: str) -> Iterator[str]:
    """Yield JSON in which what fits stands on one line: a command is read as one."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (len(indent) + len(flat) <= _WIDTH and not _deep(value)):
        yield flat
        return
    inner = f"{indent} "
    items = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    yield "{\n" if isinstance(value, dict) else "[\n"
    for number, (key, item) in enumerate(items):
        yield (",\n" if number else "") + inner + ("" if key is None else f"{json.dumps(key, ensure_ascii=False)}: ")
        yield from _written(item, inner)
    yield f"\n{indent}" + ("}" if isinstance(value, dict) else "]")


def _deep(value: Any) -> bool:
    """Return whether a list or mapping holds others that hold something."""
    items = value.values() if isinstance(value, dict) else value
    return any(isinstance(item, dict | list) and item for item in items)


def load(text: str) -> Any:
    """Return what dump wrote. Raises ValueError for text that is not JSON."""
    return _join(json.loads(text))


def _split(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _split(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_split(item) for item in value]
    return {"lines": value.split("\n")} if isinstance(value, str) and "\n" in value else value


def _join(value: Any) -> Any:
    if isinstance(value, dict):
        if list(value) == ["lines"] and all(isinstance(item, str) for item in value["lines"]):
            return "\n".join(value["lines"])
        return {key: _join(item) for key, item in value.items()}
    return [_join(item) for item in value] if isinstance(value, list) else value


def resolve(
    data: Mapping[str, Any], source: str, version: str | None = None, extended: Snapshot | None = None
) -> Resolved:
    """Return what a recorded launcher launches. Raises RefusedError for another program, or another form."""
    try:
        return _resolve(data, source, version, extended)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        refuse("legacy-form", Location(source), f"is not a recording: {type(error).__name__} {error}")


def _resolve(data: Mapping[str, Any], source: str, version: str | None, extended: Snapshot | None) -> Resolved:
    pod = data["pod"]
    module, config, texts = program(pod["trainer"][1:], source)
    keys = frozenset(text.partition("=")[0] for text in texts)
    pin = version or data["maxtext_version"] or newest_that_knows(keys, trainer(module))
    environment = dict(pod["environment"])
    job, states = _job(data, source)
    secret = [name for name, text in environment.items() if text.startswith("<secretKeyRef ")]
    return Resolved(
        source=source,
        version=pin,
        module=module,
        config=config,
        maxtext=arguments(texts, snapshot_of(pin, source, extended), source),
        flags=flags(environment.pop("LIBTPU_INIT_ARGS", ""), source),
        env={name: text for name, text in environment.items() if name not in OWN_ENVIRONMENT and name not in secret},
        job={**job, **{field: environment.get(name) for name, field in OWN_ENVIRONMENT.items()}},
        states=states,
    )


def reads(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the variables that the recorded pod script read."""
    return frozenset((data.get("variables_read") or {}).get("pod") or ())


def _job(data: Mapping[str, Any], source: str) -> tuple[dict[str, Any], frozenset[str]]:
    pod = data["pod"]
    before = [command for command in pod["commands_before_training"] if not _is_clone(command)]
    around = {
        "before": " && ".join(map(shlex.join, before)),
        "after": " && ".join(map(shlex.join, [*pod["background_commands"], *pod["commands_after_training"]])),
        **_checkout(pod["commands_before_training"]),
    }
    job_sets = manifest.job_sets(data["objects"])
    if job_sets:
        return {**manifest.job(job_sets[0], source), **manifest.watcher(data["objects"]), **around}, JOBSET_FIELDS
    return {**_xpk(data["commands"], source), **around}, XPK_FIELDS


def _is_clone(command: Sequence[str]) -> bool:
    return list(command[:1]) == ["git"]


def _checkout(commands: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return which repository and branch the pod clones."""
    for command in commands:
        if command[:2] != ["git", "clone"]:
            continue
        words = list(command[2:])
        branch = next((w.partition("=")[2] for w in words if w.startswith("--branch=")), "")
        for option in ("--branch", "-b"):
            if option in words[:-1]:
                branch = words[words.index(option) + 1]
        for word in words:
            match = _CLONE.fullmatch(word)
            if match and not word.startswith("-"):
                return {"repository": match["repository"], "branch": branch}
    return {}


def _xpk(commands: Sequence[Sequence[str]], source: str) -> dict[str, Any]:
    argv = next(command for command in commands if list(command[:3]) == ["xpk", "workload", "create"])
    options = {name: text for name, text in _options(argv[3:]) if name not in _ELSEWHERE}
    job = xpk_job(options, source)
    accelerator, _, topology = str(job.pop("device_type", "")).partition("-")
    found = find_slice(accelerator, topology)
    return {**job, "accelerator": accelerator, "topology": topology, "completions": found.hosts if found else None}


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (option, value) of --name=value, --name value and --name."""
    index = 0
    while index < len(words):
        name, equals, text = words[index].partition("=")
        if not equals and index + 1 < len(words) and not words[index + 1].startswith("--"):
            index += 1
            text = words[index]
        yield name, text
        index += 1
