"""`renderer stop` while it waits for pods: Ctrl-C is answered at once, also while the API server is away or silent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.api import jobsets, wait_for
from tests.cluster.applied import Applied, applying
from tests.cluster.proxy import Fault, Request, proxy
from tests.cluster.sandbox import Sandbox

pytestmark = pytest.mark.cluster

PROGRAM = """
import sys
from renderer.cluster import ledger
from renderer.cli import main
ledger.CONTROL = sys.argv[1]
sys.exit(main(sys.argv[2:]))
"""
"""The command with the control namespace of a test."""


@pytest.fixture
def applied(control: str, sandbox: Sandbox, tmp_path: Path) -> Iterator[Applied]:
    with applying(sandbox, tmp_path / "content") as found:
        yield found


@dataclass
class Trouble:
    """A plan whose fault begins later."""

    fault: Fault | None = None

    def __call__(self, _: Request) -> Fault | None:
        return self.fault


@pytest.mark.parametrize("fault", [None, Fault.SILENT, Fault.REFUSED, Fault.THROTTLED], ids=str)
def test_an_interrupt_is_answered_and_the_next_stop_goes_on(
    fault: Fault | None, applied: Applied, control: str, tmp_path: Path
) -> None:
    applied.merge()
    applied.apply()
    run = applied.only().name
    path = jobsets(applied.sandbox.namespace, run)
    applied.api.merge(path, {"metadata": {"finalizers": ["example.com/keep"]}})
    command = [sys.executable, "-c", PROGRAM, control, "--root", str(applied.merges.content.root), "stop", run, "--yes"]
    trouble = Trouble()
    with proxy(applied.sandbox.plane.api, trouble, silence=60) as between:
        environment = {**os.environ, "KUBECONFIG": str(between.kubeconfig(tmp_path / "between"))}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for("its deletion", lambda: "deletionTimestamp" in (applied.api.get(path) or {})["metadata"])
        trouble.fault = fault
        time.sleep(2)  # pauses grow to 2 s
        interrupted = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert time.monotonic() - interrupted < 5
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == f"interrupted: {run} is not stopped yet; run this again to go on"
    assert applied.states() == ["launched"]
    applied.api.merge(path, {"metadata": {"finalizers": None}})
    again = applied.merges.content.run("stop", run, "--yes")
    assert (again.code, applied.states()) == (0, ["stopped"])
