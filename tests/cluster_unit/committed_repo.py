"""Commits of rendered runs, for what apply reads of them without a cluster."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from content import Content, make_content

from renderer.cluster.history import History
from renderer.cluster.ledger import Entry, State
from renderer.committed import Reader, unit_of, wanted
from renderer.runs import Committed

MODEL = "qwen3-0.6b"
_GIT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


@dataclass(frozen=True, slots=True)
class CommittedRepo:
    """A git repository with presets, and experiments as a test commits them."""

    content: Content

    @property
    def history(self) -> History:
        return History(self.content.root)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.content.root), *arguments]
        return subprocess.run(command, env={**os.environ, **_GIT}, capture_output=True, text=True, check=True).stdout

    def commit(self, message: str = "change") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def merge(self, name: str = "run", message: str = "change", **given: Any) -> str:
        """Write and render an experiment, and commit."""
        self.write(name, **given)
        return self.commit(message)

    def write(self, name: str = "run", **given: Any) -> None:
        path = self.content.experiment(name, model=MODEL, **given)
        ran = self.content.run("render", str(path))
        assert ran.code == 0, ran.err

    def remove(self, name: str = "run") -> str:
        self.git("rm", "--quiet", "-r", f"experiments/{MODEL}/{name}.yml", f"rendered/test/{MODEL}/{name}")
        return self.commit()

    def reader(self, commit: str) -> Reader:
        """Return the reader of all of a commit."""
        tree = self.history.tree(commit, ".")
        return Reader(tree, self.history.blobs(wanted(tree, filter(None, map(unit_of, tree)))))

    def run(self, commit: str, name: str = "run") -> Committed:
        """Return an experiment's run as a commit has it."""
        (found,) = self.reader(commit).snapshot([(MODEL, name)]).runs
        return found

    def entry(self, commit: str, state: State, name: str = "run", **fields: Any) -> Entry:
        """Return the ledger's entry of a run that was recorded from a commit."""
        run = self.run(commit, name)
        given = {"digest": run.content, "uid": "u" if state in {State.HELD, State.LAUNCHED} else "", "version": "1"}
        about = {"experiment": run.experiment, "file": run.file, "environment": run.environment, "name": run.name}
        return Entry(**about, namespace="default", state=state, commit=commit, **(given | fields))


def make_committed_repo(root: Path) -> CommittedRepo:
    repo = CommittedRepo(make_content(root))
    repo.git("init", "--quiet", "--initial-branch=main")
    repo.commit()
    return repo
