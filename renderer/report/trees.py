"""The commits a report compares: the target, where the branch left it, the branch, and what the merge comes to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from renderer.committed import Reader, Tree, Unit, experiment_path, folders, unit_of, wanted
from renderer.git import FOLDERS, Git

MAX_PATHS = 500
"""More paths than these are not given to git one by one."""


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
    """The object names of the runs that a branch ever held; `complete` unless the clone is shallow."""

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

    def launched(self, base: str, units: Collection[Unit]) -> History:
        """Return the runs that the target ever held of these experiments while they were not stopped.

        Only what the target itself went through counts: its first parents.
        """
        if not units:
            return History()
        paths = [path for unit in units for path in (experiment_path(unit), *folders(unit))]
        scope = paths if len(paths) <= MAX_PATHS else list(FOLDERS)
        words = ("-z", "--format=tformat:>", "--raw", "--no-abbrev", "--no-renames", "-m", "--first-parent")
        out = self._run("log", *words, "--reverse", "--relative", base, "--", *scope)
        if out is None:
            return History(complete=False)
        states = list(_states(out, frozenset(units)))
        blobs = self.blobs({blob for tree, touched in states for blob in wanted(tree, touched)})
        names = frozenset(
            run.name
            for tree, touched in states
            for run in Reader(tree, blobs).snapshot(touched).runs
            if run.name and not run.stopped
        )
        return History(names, not self.shallow())


def _states(out: bytes, units: Collection[Unit]) -> Iterator[tuple[Tree, set[Unit]]]:
    """Yield, per commit of `git log -z --raw`, the files of the experiments it touched, and which these are."""
    tree: dict[Unit, dict[str, str]] = {unit: {} for unit in units}
    for changes in _commits(out):
        touched = {unit for unit in map(unit_of, changes) if unit in tree}
        for path, blob in changes.items():
            unit = unit_of(path)
            if unit in tree:
                tree[unit].pop(path, None)
                tree[unit].update({path: blob} if blob else {})
        yield {path: blob for unit in touched for path, blob in tree[unit].items()}, touched


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
