"""Which launchers to record, and the acceptance of a recording: examined first, written only then."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from renderer.extensions import Schemas
from renderer.layers import Repository
from renderer.legacy import recording
from renderer.legacy.examine import CODES, examine
from renderer.legacy.pairs import FILE
from renderer.legacy.record import Options, Recording, record
from renderer.legacy.versions import newest_that_knows, snapshot_of
from renderer.location import COMMAND_LINE, Location
from renderer.problem import Problem, RefusedError, refuse
from renderer.schema import Snapshot


def launchers(path: Path, pattern: str, expected: int) -> list[Path]:
    """Return the launchers at `path`: itself, or the files of a folder that match `pattern`.

    Raises RefusedError for fewer than `expected`: a pattern that finds nothing must not pass for a proof.
    """
    if path.is_file():
        return [path]
    found = sorted(item for item in path.glob(pattern) if item.is_file()) if path.is_dir() else []
    if len(found) < max(expected, 1):
        match = "launcher matches" if len(found) == 1 else "launchers match"
        message = f"{len(found)} {match} {pattern}; expected are at least {max(expected, 1)}"
        refuse("record-expected", Location(str(path)), message)
    return found


def accepted(launcher: Path, options: Options, repository: Repository, allowed: Sequence[str]) -> Recording:
    """Return the recording of `launcher`, examined. Raises RefusedError with what was found and is not `allowed`."""
    for code in allowed:
        if code not in CODES:
            refuse(
                "record-accept",
                COMMAND_LINE,
                f"{code} is nothing the examination finds",
                hint=f"known: {', '.join(CODES)}",
            )
    made = record(launcher, options)
    found = examine(made, _snapshot(made, options, repository))
    blocking = [problem for problem in found if problem.code not in allowed]
    if blocking:
        hint = "fix the launcher first and record it again; to keep one of them, --accept " + " --accept ".join(
            dict.fromkeys(problem.code for problem in blocking)
        )
        raise RefusedError([*blocking, Problem("record-refused", Location(str(launcher)), "", "is not accepted", hint)])
    kept = sorted({problem.code for problem in found})
    return replace(made, data={**made.data, "accepted": kept})


def _snapshot(made: Recording, options: Options, repository: Repository) -> Snapshot:
    """Return the schema of the recorded MaxText, with the keys of the model's fork where it has presets."""
    texts = dict(word.split("=", 1) for word in made.data["pod"]["trainer"] if "=" in word)
    version = options.maxtext_version or newest_that_knows(frozenset(texts), made.data["pod"]["trainer"][2])
    problems: list[Problem] = []
    model = texts.get("model_name", "")
    extended = Schemas(repository).snapshot(model, version, COMMAND_LINE, problems) if model else None
    if problems:
        raise RefusedError(problems)
    return snapshot_of(version, made.data["launcher"], extended)


def write(made: Recording, launcher: Path, folder: Path) -> Path:
    """Write the snapshot of a recording into `folder` and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{launcher.stem}.json"
    path.write_text(recording.dump(made.data), encoding="utf-8")
    return path


def pair(root: Path, experiment: str, name: str) -> None:
    """Make the recording `name` (relative to tests/legacy/) the one that `experiment` is compared with.

    Raises RefusedError if checks.yml has no such pair.
    """
    path = root / FILE
    text = path.read_text(encoding="utf-8")
    line = re.compile(rf"(^  {re.escape(experiment)}:[^\n]*\n(?:    .*\n)*?    recording: )[^\n]*", re.MULTILINE)
    changed, count = line.subn(lambda match: match.group(1) + name, text)
    if not count:
        refuse("legacy-pair", Location(FILE), f"no pair {experiment} whose recording could be replaced")
    path.write_text(changed, encoding="utf-8")
