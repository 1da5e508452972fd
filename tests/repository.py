"""A real git repository with experiments, for tests of what a merge does."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.content import Content, Ran, make_content

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}
"""Variables for git: who commits and when, and no configuration of the person who runs the tests."""

MODEL = "qwen3-0.6b"

PROD = {"environment": "prod", "image": "main-abc1234-20260609", "branch": None}
"""What makes the experiment of `Content.experiment` one of prod."""


@dataclass(frozen=True, slots=True)
class Repo:
    """The content of a repository, and its git."""

    content: Content

    def git(self, *arguments: str) -> str:
        """Run git and return what it prints, without the end of the line."""
        words = ["git", "-C", str(self.content.root), *arguments]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **IDENTITY})
        return done.stdout.strip()

    def init(self, message: str = "change") -> None:
        """Make the content a repository, whose first commit on main holds it."""
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit(message)

    def commit(self, message: str = "change") -> str:
        """Commit everything and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, start: str = "main") -> None:
        """Start a branch and stand on it."""
        self.git("checkout", "--quiet", "-b", name, start)

    def experiment(self, name: str = "run", **given: Any) -> Path:
        """Write an experiment (see Content.experiment) and render it; `launch` is laid over one of test."""
        path = self.content.experiment(name, model=MODEL, **given)
        ran = self.content.run("render", str(path))
        assert ran.code == 0, ran.err
        return path

    def remove(self, name: str = "run") -> None:
        """Remove an experiment and its rendered files."""
        self.git("rm", "--quiet", "-r", f"experiments/{MODEL}/{name}.yml")
        for environment in ("prod", "test"):
            self.git("rm", "--quiet", "-r", "--ignore-unmatch", f"rendered/{environment}/{MODEL}/{name}")

    def report(self, *arguments: str) -> Ran:
        """Run `renderer report --base main`."""
        return self.content.run("report", "--base", "main", *arguments)

    def data(self, *arguments: str) -> Any:
        """Return the report as data."""
        ran = self.report("--format", "json", *arguments)
        found = json.loads(ran.out)
        assert ran.code == (1 if found["totals"]["refused"] else 0), ran.err
        return found

    def effects(self, *arguments: str) -> list[tuple[str, str, str]]:
        """Return (effect, experiment's name, reason) of every action; digests are left out."""
        rows = self.data(*arguments)["rows"]
        return [(row["effect"], row["experiment"].partition("/")[2], plain(row["reason"])) for row in rows]


def plain(text: str) -> str:
    """Return a text with the digests of run names left out."""
    return re.sub(r"(-[0-9]+c)-[0-9a-f]{8}\b", r"\1", text)


def make_repo(root: Path) -> Repo:
    """Return a repository at `root` that holds the shipped presets and datasets on main."""
    repo = Repo(make_content(root))
    repo.init("presets")
    return repo
