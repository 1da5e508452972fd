"""What the runner tells a job, and what a job tells the runner."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def event() -> dict[str, Any]:
    """Return what started the workflow, as GitHub wrote it."""
    data: dict[str, Any] = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text())
    return data


def output(name: str, value: str) -> None:
    """Give the workflow an output of this step; the value is one line."""
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as file:
        file.write(f"{name}={value}\n")


def run_page() -> str:
    """Return the address of this very run."""
    server, name, number = (os.environ[f"GITHUB_{key}"] for key in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"{server}/{name}/actions/runs/{number}"
