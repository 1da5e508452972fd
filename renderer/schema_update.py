"""Asks an interpreter that has MaxText for its schema, and writes the answer as a snapshot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from renderer import schema_script
from renderer.schema import FOLDER

TIMEOUT_SECONDS = 300
"""Importing MaxText takes up to half a minute, on a cold disk more."""

Data = dict[str, Any]


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class InterpreterError(RuntimeError):
    """The interpreter could not be asked; the text says why, with the end of what it printed."""


def snapshot_from(python: Path) -> Data:
    """Return what the MaxText installed for the interpreter `python` accepts, in the form of a snapshot file.

    Raises InterpreterError.
    """
    done = _run(python)
    begin, end = f"\n{schema_script.BEGIN}\n", f"\n{schema_script.END}\n"
    _, found, rest = done.stdout.partition(begin)
    answer, complete, _ = rest.partition(end)
    if done.returncode or not found or not complete:
        raise InterpreterError(
            f"{python} could not read its MaxText (exit {done.returncode}){_last_lines(done.stderr)}"
        )
    try:
        data: Data = json.loads(answer)
    except json.JSONDecodeError as error:
        raise InterpreterError(f"{python} answered with something else than JSON: {error}") from error
    return data


def _run(python: Path) -> subprocess.CompletedProcess[str]:
    """Run the script away from the current folder, whose modules could hide those it imports."""
    script = Path(schema_script.__file__).read_text("utf-8")
    environment = os.environ | {"DECOUPLE_GCLOUD": "TRUE", "JAX_PLATFORMS": "cpu", "TMPDIR": "/tmp"}  # noqa: S108
    command = [str(python.absolute()), "-c", script]
    try:
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(  # noqa: S603
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
    except subprocess.TimeoutExpired as error:
        raise InterpreterError(f"{python} did not answer within {TIMEOUT_SECONDS} s") from error
    except OSError as error:
        raise InterpreterError(f"{python} cannot be run: {error.strerror}") from error


def _last_lines(text: str, count: int = 5) -> str:
    lines = [line for line in text.splitlines() if line.strip()][-count:]
    return ":\n" + "\n".join(lines) if lines else ""


def write(data: Data, name: str, folder: Path = FOLDER) -> Path:
    """Write `data` as the snapshot `name` and return its path. Raises ValueError for a name that is no file name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a snapshot: letters, digits, dots, dashes and underscores")
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump({**data, "version": name}), "utf-8")
    return path


def dump(data: Data) -> str:
    """Return `data` as JSON with one key or model a line, so that a change of MaxText reads as a diff."""
    sections = [f"{json.dumps(name)}:{_section(value)}" for name, value in data.items()]
    return "{" + ",\n".join(sections) + "}\n"


def _section(value: Any) -> str:
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    return "{\n" + ",\n".join(f"{json.dumps(key)}:{json.dumps(item)}" for key, item in value.items()) + "}"
