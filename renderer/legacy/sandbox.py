"""Runs one script where nothing real can be launched: its PATH holds stand-ins and named tools, its world is frozen.

It keeps launchers honest, not hostile code out: a script can still reach files and networks by other ways.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.legacy import stand_in
from renderer.location import Location
from renderer.problem import refuse

STAND_INS = (
    *(
        "kubectl",
        "xpk",
        "gcloud",
        "gsutil",
        "docker",
        "podman",
        "crane",
        "helm",
        "git",
        "python",
        "python3",
        "uv",
        "pip",
        "pip3",
    ),
    *("curl", "wget", "ssh", "scp", "rsync", "sudo", "apt-get", "apt", "sysctl", "conda", "ray", "nvidia-smi"),
    *("install_maxtext_tpu_github_deps", "install_tpu_pre_train_extra_deps"),
    *("date", "hostname", "whoami", "uname", "sleep", "mktemp", "envsubst"),
)
"""Commands that are noted instead of run (the frozen ones only answer)."""
SYSTEM_TOOLS = (
    *(
        "bash",
        "sh",
        "cat",
        "cp",
        "mv",
        "rm",
        "mkdir",
        "rmdir",
        "ln",
        "touch",
        "ls",
        "chmod",
        "head",
        "tail",
        "cut",
        "tr",
    ),
    *("sort", "uniq", "wc", "sed", "awk", "gawk", "mawk", "grep", "egrep", "fgrep", "xargs", "find", "tee", "basename"),
    *("dirname", "realpath", "readlink", "seq", "expr", "env", "printenv", "sha256sum", "sha1sum", "md5sum", "shasum"),
    *("base64", "od", "tac", "rev", "paste", "comm", "diff", "cmp", "jq", "yq", "bc", "getopt", "stat", "column", "nl"),
    *("true", "false", "test", "printf", "echo", "timeout", "nohup", "kill", "tar", "gzip"),
)
"""Real tools a launcher may use: they compute, and reach nothing."""
FROZEN = {"date": 1767225600, "user": "user", "host": "host", "branch": "main"}
"""2026-01-01 00:00:00 UTC, and what everyone and every machine is called."""

_MAX_OUTPUT = 16 << 20
# The hook tells which files bash executes; the function is called where a command is not found.
_BASH_ENV = """\
declare -A __recorder_seen=()
set -o functrace
trap '[[ -n "${{__recorder_seen[${{BASH_SOURCE[0]:-}}x]:-}}" ]] || {{
  __recorder_seen[${{BASH_SOURCE[0]:-}}x]=1; printf "%s\\0%s\\0" "$PWD" "${{BASH_SOURCE[0]:-}}" >>{sources}; }}' DEBUG
command_not_found_handle() {{ {python} -IS {stand_in} {config} command-not-found "$1"; return 127; }}
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What one script did: its exit code, error text, noted calls in order, and the files that bash executed.

    `background` are the calls of loops that still waited when the script ended: their place in the order is chance.
    """

    code: int
    error: str
    notes: tuple[dict[str, Any], ...]
    background: tuple[dict[str, Any], ...]
    files: tuple[str, ...]
    read_input: bool


class Sandbox:
    """A scratch folder with its stand-ins; `checkout` is a copy of the launchers' own checkout."""

    def __init__(self, folder: Path, checkout: Path, tools: Sequence[str] = (), stand_ins: Sequence[str] = ()) -> None:
        self.folder = folder.resolve()
        self.checkout = self.folder / "checkout"
        self._bin = self.folder / "bin"
        for name in ("bin", "home", "tmp"):
            (self.folder / name).mkdir(parents=True)
        ignored = shutil.ignore_patterns(".git", ".cache", "__pycache__")
        shutil.copytree(checkout, self.checkout, ignore=ignored, symlinks=True)
        self._runs = 0
        for name in (*SYSTEM_TOOLS, *tools):
            found = shutil.which(name)
            if found:
                (self._bin / name).symlink_to(found)
        self._stand_ins = (*STAND_INS, *stand_ins)

    def run(self, argv: Sequence[str], cwd: Path, variables: Mapping[str, str], seconds: float, name: str) -> Ran:
        """Run `argv` (a shell and what it runs) and return what it did.

        Raises RefusedError, with the reason, for a script that does not end, lacks a tool, or never stops writing.
        """
        notes = self.folder / f"notes-{self._runs}"
        self._runs += 1
        notes.mkdir()
        sources = notes / "sources"
        sources.touch()
        self._answer(notes)
        reader, writer = os.pipe()
        os.write(writer, b"\n")
        os.close(writer)
        with (notes / "out").open("wb") as out, (notes / "err").open("wb") as err:
            process = subprocess.Popen(  # noqa: S603
                argv, cwd=cwd, env=self._environment(notes, variables), stdin=reader, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip
            (notes / "main").write_text(str(process.pid), encoding="utf-8")
            try:
                self._wait(process, notes, seconds, name)
            finally:
                _end(process)
        found = list(_notes(notes))
        waiting = {note["parent"] for note in found if note.get("waits")} - {process.pid}
        ran = Ran(
            code=process.returncode,
            error=(notes / "err").read_text(encoding="utf-8", errors="replace"),
            notes=tuple(note for note in found if note["parent"] not in waiting),
            background=tuple(note for note in found if note["parent"] in waiting),
            files=tuple(dict.fromkeys(_executed(sources.read_text(encoding="utf-8")))),
            read_input=_unread(reader) == 0,
        )
        os.close(reader)
        return ran

    def _answer(self, notes: Path) -> None:
        """Write the stand-ins for one run: each knows where its notes go."""
        config = {
            **{name: str(item) for name, item in FROZEN.items()},
            "notes": str(notes),
            "main": str(notes / "main"),
            "checkout": str(self.checkout),
        }
        (notes / "config").write_text(json.dumps(config), encoding="utf-8")
        places = {"python": sys.executable, "stand_in": stand_in.__file__, "config": notes / "config"}
        for tool in self._stand_ins:
            script = self._bin / tool
            script.unlink(missing_ok=True)
            call = "exec '{python}' -IS '{stand_in}' '{config}'".format(**places)
            script.write_text(f'#!/bin/sh\n{call} {tool} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        quoted = {key: f"'{place}'" for key, place in places.items()}
        text = _BASH_ENV.format(sources=notes / "sources", **quoted)
        (notes / "bash_env").write_text(text, encoding="utf-8")

    def _environment(self, notes: Path, variables: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": str(self._bin),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "USER": str(FROZEN["user"]),
            "LOGNAME": str(FROZEN["user"]),
            "HOSTNAME": str(FROZEN["host"]),
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "dumb",
            "BASH_ENV": str(notes / "bash_env"),
            **variables,
        }

    def _wait(self, process: subprocess.Popen[bytes], notes: Path, seconds: float, name: str) -> None:
        end = time.monotonic() + seconds
        while process.poll() is None:
            if time.monotonic() > end:
                refuse("record-time", Location(name), f"did not end within {seconds:g} s: {_last(notes)}")
            if (notes / "too-many").exists():
                message = (
                    f"called more than {stand_in.LIMIT} commands, so it is taken for an endless loop: {_last(notes)}"
                )
                refuse("record-time", Location(name), message)
            if (notes / "out").stat().st_size > _MAX_OUTPUT:
                refuse("record-output", Location(name), f"wrote more than {_MAX_OUTPUT >> 20} MiB: {_last(notes)}")
            time.sleep(0.01)
        self._settle(process, notes)

    def _settle(self, process: subprocess.Popen[bytes], notes: Path) -> None:
        """Let what the script left in the background reach its sleep, so that two recordings see the same."""
        end, quiet, seen = time.monotonic() + 2, 0, -1
        while time.monotonic() < end and quiet < 6 and _alive(process.pid):
            count = len(list(notes.glob("[0-9]*.json")))
            quiet, seen = (quiet + 1 if count == seen else 0), count
            time.sleep(0.05)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last(notes: Path) -> str:
    """Return what the script did last, to see what it hangs on."""
    found = [note for note in _notes(notes) if not note.get("quiet")]
    if not found:
        return "it called no command that is noted (an endless loop?)"
    words = " ".join(found[-1]["argv"])
    return f"its last noted command, number {len(found)}, was {words[:200]}"


def _notes(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("[0-9]*.json")):
        with contextlib.suppress(ValueError):  # a killed stand-in leaves half a note
            yield json.loads(path.read_text(encoding="utf-8"))


def _executed(pairs: str) -> Iterator[str]:
    """Yield the absolute path of every file in the hook's pairs of folder and file."""
    parts = pairs.split("\0")
    for folder, file in zip(parts[::2], parts[1::2], strict=False):
        if file:
            yield os.path.normpath(Path(folder) / file)


def _unread(descriptor: int) -> int:
    """Return how many bytes wait in a pipe: the one line given as input is still there if nobody read it."""
    count = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]


def interpreter(text: str) -> str:
    """Return the shell that the first line of a script asks for: bash or sh."""
    first = text.partition("\n")[0]
    found = re.match(r"#!.*?\b(bash|sh)\b", first)
    return found.group(1) if found else "bash"
