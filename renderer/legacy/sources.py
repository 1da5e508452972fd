"""Reads a recording of any form: a recipe, a snapshot of ours, an argv, or a JobSet manifest."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from renderer.content_files import read_bytes
from renderer.legacy import manifest, recipe, recording, rendered_manifest
from renderer.legacy.manifest_run import record_job_set
from renderer.legacy.resolved import Resolved, arguments, flags, program, trainer
from renderer.legacy.versions import newest_that_knows, snapshot_of
from renderer.location import Location
from renderer.problem import Problem, RefusedError, refuse
from renderer.schema import Snapshot


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording in the normal form. `reads` are the environment variables that its pod script read."""

    resolved: Resolved
    reads: frozenset[str]


def read(path: Path, source: str, version: str | None = None, extended: Snapshot | None = None) -> Recorded:
    """Return what the recording at `path`, called `source` in messages, launches.

    `version` is the MaxText to read it with where it names none we know; `extended` a fork's snapshot. Raises
    RefusedError for a file of no known form, and for one that does not start MaxText.
    """
    try:
        return _read(path, _text(path, source), source, version, extended)
    except RecursionError:
        return refuse("legacy-form", Location(source), "is nested too deep")
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        return refuse("legacy-form", Location(source), f"is damaged: {error}")


def _text(path: Path, source: str) -> str:
    problems: list[Problem] = []
    content = read_bytes(path, source, problems)
    if content is None:
        raise RefusedError(replace(problem, code="legacy-form") for problem in problems)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse("legacy-form", Location(source), f"cannot be read: {error}")


def _read(path: Path, text: str, source: str, version: str | None, extended: Snapshot | None) -> Recorded:
    if path.suffix in {".yml", ".yaml"}:
        objects = manifest.documents(text, source)
        rendered = rendered_manifest.run_of(objects)
        if rendered:
            return Recorded(rendered_manifest.resolve(objects, rendered, source, extended), frozenset())
        data = record_job_set(objects, source)
    elif path.suffix == ".json" or text.lstrip().startswith(("{", "[")):
        data = _json(text, source)
    else:
        return Recorded(_argv(_words(text, source), source, version, extended), frozenset())
    return from_data(data, source, version, extended)


def from_data(data: Any, source: str, version: str | None = None, extended: Snapshot | None = None) -> Recorded:
    """Return what parsed JSON of one of the known forms launches."""
    if recipe.is_recipe(data):
        return Recorded(recipe.resolve(data, source, version, extended), frozenset())
    if recording.is_recording(data):
        return Recorded(recording.resolve(data, source, version, extended), recording.reads(data))
    if isinstance(data, list) and all(isinstance(item, str) for item in data):
        return Recorded(_argv(data, source, version, extended), frozenset())
    forms = "a recorded recipe, a recording of `renderer legacy record`, or an argv (a list of texts)"
    return refuse("legacy-form", Location(source), "is of no known form", hint=f"known: {forms}")


def _json(text: str, source: str) -> Any:
    try:
        return recording.load(text)
    except ValueError as error:
        refuse("legacy-form", Location(source), f"is not JSON: {error}")


def _words(text: str, source: str) -> list[str]:
    try:
        return shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        refuse("legacy-form", Location(source), f"is not a command line: {error}")


def _argv(words: list[str], source: str, version: str | None, extended: Snapshot | None) -> Resolved:
    """Return the normal form of a command line: NAME=value before the program are its environment."""
    start = next((index for index, word in enumerate(words) if Path(word).name.startswith("python")), len(words))
    environment = dict(word.split("=", 1) for word in words[:start] if "=" in word)
    module, config, texts = program(words[start + 1 :], source)
    pin = version or newest_that_knows(frozenset(text.partition("=")[0] for text in texts), trainer(module))
    return Resolved(
        source=source,
        version=pin,
        module=module,
        config=config,
        maxtext=arguments(texts, snapshot_of(pin, source, extended), source),
        flags=flags(environment.pop("LIBTPU_INIT_ARGS", ""), source),
        env=environment,
        job={},
        states=frozenset(),
    )
