"""Starts processes and stops them by their id, waiting for the end of each."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 20
"""Seconds that a process has to end after SIGTERM, before SIGKILL."""


class StartError(RuntimeError):
    """A process ended, or did not get ready in time; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Processes:
    """The running processes, each with a log NAME.log in `folder`."""

    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _commands: dict[str, tuple[list[str], dict[str, str]]] = field(default_factory=dict)

    def start(self, name: str, program: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """Start a process that ends with us, however we end, where the system can see to that."""
        command = [str(program), *arguments]
        if setpriv := shutil.which("setpriv"):
            command = [setpriv, "--pdeathsig", "KILL", *command]
        self._commands[name] = (command, {**os.environ, **(environment or {})})
        self.start_again(name)

    def start_again(self, name: str) -> None:
        """Start a process that was stopped as it was started first."""
        command, environment = self._commands[name]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt at the terminal is for us alone: we end them in order
            )

    def stop(self, name: str) -> None:
        """End a process and wait until it has."""
        process = self.running.pop(name)
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self, name: str) -> None:
        """End a process as a crash does."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop_all(self) -> None:
        """End every process, the one that was first started last: the others end better while it lives."""
        for name in reversed([name for name in self._commands if name in self.running]):
            self.stop(name)

    def wait(self, what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until `ready`. Raises StartError if a process ends or `seconds` pass before."""
        end = time.monotonic() + seconds
        while not ready():
            for name, process in self.running.items():
                if process.poll() is not None:
                    raise StartError(f"{name} ended with {process.returncode}:\n{self.tail(name)}")
            if time.monotonic() > end:
                raise StartError(f"{what}: not ready after {seconds} s; the logs are in {self.folder}")
            time.sleep(0.05)

    def tail(self, name: str) -> str:
        """Return the last lines of a process's log."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]


@contextmanager
def processes(folder: Path) -> Iterator[Processes]:
    """Yield an empty set of processes; what was started in it has ended afterwards."""
    found = Processes(folder)
    try:
        yield found
    finally:
        found.stop_all()
