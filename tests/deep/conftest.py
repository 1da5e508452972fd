"""The real MaxText: its interpreter, and one long-lived process of it that resolves configurations."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("MAXTEXT_PYTHON", ROOT / ".cache/maxtext-0.2.5/bin/python"))


class LoaderProcess:
    """loader.py in MaxText's interpreter; see its docstring for the protocol."""

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("loader.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._answer() == {"ready": True}

    def load(self, argv: list[str], **environment: str) -> dict[str, Any]:
        """Return {"ok": True, "config": ...} or {"ok": False, "type": ..., "error": ...} for one run.yml."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"argv": argv, "environment": environment}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def config(self, argv: list[str]) -> dict[str, Any]:
        """Return every key's resolved value; fail with the loader's words if it refuses."""
        answer = self.load(argv)
        assert answer["ok"], answer
        return answer["config"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the loader ended with {self.process.wait()}"
        return json.loads(line)


@pytest.fixture(scope="session")
def maxtext_python() -> Path:
    """The interpreter of an environment with MaxText 0.2.5 (MAXTEXT_PYTHON, or .cache/maxtext-0.2.5)."""
    if not PYTHON.exists():
        pytest.skip(f"MaxText is not installed: {PYTHON} does not exist (make test-deep installs it)")
    return PYTHON


@pytest.fixture(scope="session")
def configs(maxtext_python: Path) -> Path:
    """The folder of the installed MaxText's base.yml and models/."""
    return next(maxtext_python.parents[1].glob("lib/python3*/site-packages/maxtext/configs"))


@pytest.fixture(scope="session")
def resolver(maxtext_python: Path) -> Iterator[LoaderProcess]:
    process = LoaderProcess(maxtext_python)
    yield process
    process.close()
