"""Commits of rendered runs, for what apply reads of them without a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.cluster.history import History
from renderer.cluster.ledger import Entry, State
from renderer.committed import Reader, unit_of, wanted
from renderer.runs import Committed
from tests.content import make_content
from tests.repository import MODEL, Repo


@dataclass(frozen=True, slots=True)
class CommittedRepo(Repo):
    """A git repository with presets, and experiments as a test commits them."""

    @property
    def history(self) -> History:
        return History(self.content.root)

    def merge(self, name: str = "run", message: str = "change", **given: Any) -> str:
        """Write and render an experiment, and commit."""
        self.experiment(name, **given)
        return self.commit(message)

    def unmerge(self, name: str = "run") -> str:
        """Remove an experiment with its rendered files, and commit."""
        self.remove(name)
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
    repo.init()
    return repo
