"""Commits in memory, for reports on very many of them: what git would answer, without git."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from renderer.committed import Tree
from renderer.git import Base
from renderer.report.build import build
from renderer.report.data import Report
from renderer.report.reading import Reading, read
from renderer.report.trees import History, Log, Trees, merge
from renderer.runs import Committed

Files = Mapping[str, bytes]


class MemoryLog(Log):
    """Three commits as files by path: the target, where the branch left it, and the branch."""

    def __init__(self, base: Files, fork: Files, head: Files, launched: Iterable[str] = ()) -> None:
        super().__init__(Path("/nowhere"))
        self._blobs: dict[str, bytes] = {}
        self._sides = [self._tree(files) for files in (base, fork, head)]
        self._launched = frozenset(launched)

    def _tree(self, files: Files) -> Tree:
        tree = {path: hashlib.sha1(data).hexdigest() for path, data in files.items()}
        self._blobs |= {tree[path]: data for path, data in files.items()}
        return tree

    def trees(self, base: str, head: str) -> Trees:
        old, left, new = self._sides
        merged, both = merge(old, left, new)
        return Trees(base, head, old, left, new, merged, both)

    def blobs(self, names: Iterable[str]) -> Mapping[str, bytes]:
        return {name: self._blobs[name] for name in names}

    def launched(self, base: str, runs: Collection[Committed]) -> History:  # noqa: ARG002
        return History(self._launched)

    def report(self) -> tuple[Reading, Report]:
        """Return the report on merging the branch."""
        base = Base("main", "b" * 40)
        reading = read(self, base, "c" * 40)
        return reading, build(self, reading, base)
