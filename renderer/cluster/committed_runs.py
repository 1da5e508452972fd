"""The committed files of runs that were launched, from the commit that holds them as they were launched."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from renderer.cluster.ledger import Entry
from renderer.cluster.objects import Objects, objects
from renderer.committed import Reader, Tree, Unit, pod_scripts, units_of, wanted
from renderer.git import FOLDERS, Git
from renderer.location import COMMAND_LINE
from renderer.problem import RefusedError, refuse
from renderer.runs import Committed


class CommittedRuns:
    """The runs of HEAD, and of older commits those that HEAD holds no more. Raises RefusedError without a commit."""

    def __init__(self, git: Git) -> None:
        self._git = git
        head = git.commit("HEAD")
        if head is None:
            refuse("cluster-head", COMMAND_LINE, "there is no commit here to compare the cluster with")
        self.head = head
        self._commits = {head: _Commit(git, head)}

    def experiment(self, entry: Entry) -> Committed | None:
        """Return an entry's experiment at HEAD, nothing if it is not there any more."""
        return self._commits[self.head].by_experiment.get(entry.experiment)

    def objects(self, entry: Entry) -> Objects | str:
        """Return what a run was launched as, or why that is not known here."""
        if entry.name in self._commits[self.head].by_name:
            return self._commits[self.head].objects(entry.name)
        commit = self._git.commit(entry.commit) if entry.commit else None
        if commit is None:
            return f"HEAD does not hold it, and its commit {entry.commit or '(none is recorded)'} is not here"
        found = self._commits.setdefault(commit, _Commit(self._git, commit))
        return found.objects(entry.name)


class _Commit:
    """One commit's experiments, read when first asked for."""

    def __init__(self, git: Git, commit: str) -> None:
        self._git, self._commit = git, commit

    @cached_property
    def by_name(self) -> Mapping[str, Committed]:
        """The runs by object name."""
        return {run.name: run for run in self._runs if run.name}

    @cached_property
    def by_experiment(self) -> Mapping[str, Committed]:
        """The runs by <model>/<effective name>."""
        return {run.experiment: run for run in self._runs}

    def objects(self, name: str) -> Objects | str:
        """Return the objects of the run of this name, or why they are not known."""
        run = self.by_name.get(name)
        if run is None:
            return f"commit {self._commit[:8]} does not hold it"
        try:
            return objects(run, run.folder, self._reader.files(run), self._scripts)
        except RefusedError as error:
            return f"commit {self._commit[:8]} does not hold it as it was rendered: {error.problems[0]}"

    @cached_property
    def _runs(self) -> tuple[Committed, ...]:
        return self._reader.snapshot(self._units).runs

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self._tree, self._git.blobs(wanted(self._tree, self._units)))

    @cached_property
    def _scripts(self) -> Mapping[str, bytes]:
        return pod_scripts(self._git, self._tree)

    @cached_property
    def _units(self) -> set[Unit]:
        return units_of(self._tree)

    @cached_property
    def _tree(self) -> Tree:
        return self._git.tree(self._commit, *FOLDERS)
