"""Processes are ended by their id, and waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster.processes import StartError, processes

SHELL = Path("/bin/sh")


def test_what_was_started_has_ended_afterwards(tmp_path: Path) -> None:
    with processes(tmp_path) as running:
        running.start("sleeper", Path("/bin/sleep"), "60")
        pid = running.running["sleeper"].pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_one_that_ignores_the_signal_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cluster.processes.PATIENCE", 0.2)
    with processes(tmp_path) as running:
        running.start("stubborn", SHELL, "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
        running.wait("stubborn", lambda: "ready" in running.tail("stubborn"))
        process = running.running["stubborn"]
    assert process.returncode == -9


def test_one_that_ends_early_is_reported_with_its_log(tmp_path: Path) -> None:
    with processes(tmp_path) as running:
        running.start("broken", SHELL, "-c", "echo no such flag; exit 3")
        with pytest.raises(StartError, match=r"^broken ended with 3:\nno such flag\n$"):
            running.wait("broken", lambda: False)


def test_one_that_does_not_get_ready_is_reported(tmp_path: Path) -> None:
    with processes(tmp_path) as running:
        running.start("slow", Path("/bin/sleep"), "60")
        with pytest.raises(StartError, match=r"^slow: not ready after 0\.2 s; the logs are in /"):
            running.wait("slow", lambda: False, 0.2)


def test_one_can_be_started_again(tmp_path: Path) -> None:
    with processes(tmp_path) as running:
        running.start("twice", SHELL, "-c", 'echo "run $WHO"; sleep 60', environment={"WHO": "me"})
        running.wait("twice", lambda: "run me" in running.tail("twice"))
        running.stop("twice")
        running.start_again("twice")
        running.wait("twice", lambda: running.tail("twice").count("run me") == 2)
