"""The commits a report compares: the target, where the branch left it, the branch, and what the merge comes to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import batched

from renderer.committed import Reader, Tree, Unit, unit_of, units_of, wanted
from renderer.git import Git
from renderer.layers import ENVIRONMENTS, rendered_folder
from renderer.names import without_attempt
from renderer.run_text import NAME, value
from renderer.runs import Committed

_AT_ONCE = 2_000
"""So many files of a long history are held in memory at once."""

_NO_FORK = "git cannot tell where the branch left the target: the two are compared as they are"


@dataclass(frozen=True, slots=True)
class Trees:
    """`merged` is the target with the paths that the branch changed since it left it; `both` changed on either side."""

    base_commit: str
    head_commit: str
    base: Tree
    fork: Tree
    head: Tree
    merged: Tree
    both: tuple[str, ...]
    notices: tuple[str, ...] = ()

    @property
    def changed(self) -> list[str]:
        """The paths that the branch changes."""
        return _changed(self.fork, self.head)

    @property
    def moved(self) -> list[str]:
        """The paths that the target changed since the branch left it."""
        return _changed(self.fork, self.base)


def _changed(old: Tree, new: Tree) -> list[str]:
    return sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))


def merge(base: Tree, fork: Tree, head: Tree) -> tuple[Tree, tuple[str, ...]]:
    """Return `base` with what changed from `fork` to `head`, and the paths that both sides changed differently."""
    merged = dict(base)
    both = []
    for path in _changed(fork, head):
        if fork.get(path) != base.get(path) != head.get(path):
            both.append(path)
        if path in head:
            merged[path] = head[path]
        else:
            merged.pop(path, None)
    return merged, tuple(both)


@dataclass(frozen=True, slots=True)
class History:
    """The object names of runs that a branch ever held; `complete` unless the clone is shallow."""

    names: frozenset[str] = frozenset()
    complete: bool = True


class Log(Git):
    """Git with what only the report asks: where a branch left the target, and what the target once held."""

    def trees(self, base: str, head: str) -> Trees:
        """Return the trees of two commits, compared from where the branch left the target, where git can tell."""
        fork = self.fork(base, head) or ""
        notices = () if fork else (_NO_FORK,)
        old, new = self.tree(base, "."), self.tree(head, ".")
        left = old if fork in {"", base} else self.tree(fork, ".")
        merged, both = merge(old, left, new)
        return Trees(base, head, old, left, new, merged, both, notices)

    def launched(self, base: str, runs: Collection[Committed]) -> History:
        """Return which of these runs, and of their other attempts, the target ever held while they were not stopped.

        A run goes by its name, whatever file it came from: an experiment may be renamed, or be removed and come back.
        Only what the target itself went through counts: its first parents.
        """
        names = {run.whole_name for run in runs}
        models = sorted({unit[0] for run in runs if (unit := unit_of(run.file))})
        if not models:
            return History()
        scope = [folder for model in models for folder in _folders(model)]
        words = ("-z", "--format=tformat:>", "--raw", "--no-abbrev", "--no-renames", "-m", "--first-parent")
        out = self._run("log", *words, "--reverse", "--relative", base, "--", *scope)
        if out is None:
            return History(complete=False)
        states = self._holding(names, list(_states(out)))
        blobs = self.blobs({blob for tree, units in states for blob in wanted(tree, units)})
        found = frozenset(
            run.name
            for tree, units in states
            for run in Reader(tree, blobs).snapshot(units).runs
            if run.whole_name in names and not run.stopped
        )
        return History(found, not self.shallow())

    def _holding(self, names: Collection[str], states: Collection[Tree]) -> list[tuple[Tree, set[Unit]]]:
        """Return the experiments of each state whose rendered run has one of these names, whatever its attempt."""
        jobsets = {blob for tree in states for path, blob in tree.items() if path.endswith("/jobset.yml")}
        found = {
            blob
            for some in batched(jobsets, _AT_ONCE)
            for blob, data in self.blobs(some).items()
            if without_attempt(value(NAME, data)) in names
        }
        return [(tree, units_of(path for path, blob in tree.items() if blob in found)) for tree in states]


def _folders(model: str) -> list[str]:
    """Return the folders of all experiments of a model, and of their runs."""
    return [f"experiments/{model}", *(rendered_folder(environment, model, "") for environment in ENVIRONMENTS)]


def _states(out: bytes) -> Iterator[Tree]:
    """Yield, per commit of `git log -z --raw`, the files of the experiments it touched."""
    tree: dict[Unit, dict[str, str]] = {}
    for changes in _commits(out):
        touched = set()
        for path, blob in changes.items():
            if unit := unit_of(path):
                touched.add(unit)
                files = tree.setdefault(unit, {})
                files.pop(path, None)
                files.update({path: blob} if blob else {})
        yield {path: blob for unit in touched for path, blob in tree[unit].items()}


def _commits(out: bytes) -> Iterator[Mapping[str, str]]:
    """Yield the new blob of every path that a commit changed; an empty one where the file was removed."""
    changes: dict[str, str] = {}
    parts = iter(out.split(b"\0"))
    for part in parts:
        entry = part.strip(b"\n")
        if entry == b">":
            yield changes
            changes = {}
        elif entry.startswith(b":"):
            blob = entry.split()[3].decode()
            changes[next(parts, b"").decode("utf-8", "surrogateescape")] = blob if blob.strip("0") else ""
    yield changes
