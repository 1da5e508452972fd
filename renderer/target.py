"""What the target branch holds of experiments and runs, read from git once and compared with the disk by blob."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from renderer.committed import Tree, experiment_path, folders, unit_of
from renderer.git import FOLDERS, Base, Git
from renderer.layers import Repository
from renderer.outputs import RUN_FILES
from renderer.run_text import EXPERIMENT, EXPERIMENT_DIGEST, value

Files = Mapping[str, bytes]
"""A run's files by name."""


@dataclass(frozen=True, slots=True)
class Side:
    """One commit's files. `differing` holds the bytes of those that are other on disk."""

    tree: Tree
    differing: Mapping[str, bytes]


class Target:
    """The target branch, and where this branch left it: files that a branch did not touch are the target's affair.

    Where the target is not known, there are no sides, and what is on disk stands for it.
    """

    def __init__(self, root: Path, base: Base, git: Git, files: Iterable[str]) -> None:
        """Read what the target has of the experiments in `files`; of others it is read when asked for, one by one."""
        self.base = base
        self._root, self._git = root, git
        self._disk = cache(self._read)
        self._blob = cache(self._hash)
        commits = [base.commit, git.fork(base.commit)] if base.commit else []
        trees = [git.tree(commit, *FOLDERS) for commit in dict.fromkeys(filter(None, commits))]
        units = filter(None, map(unit_of, files))
        paths = [f"{folder}/{name}" for unit in units for folder in folders(unit) for name in RUN_FILES]
        missing = [
            {path: tree[path] for path in paths if path in tree and self._blob(path) != tree[path]} for tree in trees
        ]
        blobs = git.blobs({blob for found in missing for blob in found.values()})
        self._sides = tuple(
            Side(tree, {path: blobs[blob] for path, blob in found.items()})
            for tree, found in zip(trees, missing, strict=True)
        )

    @property
    def known(self) -> bool:
        """Whether git knows the target branch."""
        return self.base.commit is not None

    def versions(self, folder: str) -> Iterator[Files]:
        """Yield a run's files as the target has them, then as the fork has them; on disk where neither is known."""
        if not self.known:
            yield self.disk(folder)
        for side in self._sides:
            paths = {name: f"{folder}/{name}" for name in RUN_FILES}
            yield {name: self._at(side, path) for name, path in paths.items() if path in side.tree}

    def disk(self, folder: str) -> Files:
        """Return a run's files on disk."""
        found = {name: self._disk(f"{folder}/{name}") for name in RUN_FILES}
        return {name: data for name, data in found.items() if data is not None}

    def left(self, siblings: str, experiment: str, own: str) -> Iterator[str]:
        """Yield the folders below `siblings` with a run that an experiment may have left behind.

        `experiment` and `own` are what its jobset.yml says: the label of its name, and the digest of its own data.
        """
        for folder in self._left.get((experiment, own), {}):
            if folder.startswith(siblings):
                yield folder

    @cached_property
    def _left(self) -> Mapping[tuple[str, str], dict[str, None]]:
        """The rendered folders of experiments whose files are other here or gone, by what their jobset.yml says."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        for side in self._sides:
            paths = [path for path in side.tree if path.endswith("/jobset.yml") and self._is_left(side, path)]
            for path, jobset in zip(paths, self._all_at(side, paths), strict=True):
                key = value(EXPERIMENT, jobset), value(EXPERIMENT_DIGEST, jobset)
                found.setdefault(key, {})[path.removesuffix("/jobset.yml")] = None
        return found

    def _is_left(self, side: Side, path: str) -> bool:
        unit = unit_of(path)
        experiment = experiment_path(unit) if unit else ""
        return experiment in side.tree and self._blob(experiment) != side.tree[experiment]

    def has(self, path: str) -> bool:
        """Return whether the target branch has a file of this path."""
        return any(path in side.tree for side in self._sides)

    def scripts(self, folder: str) -> Mapping[str, bytes]:
        """Return the files of a folder of pod scripts by path."""
        for side in self._sides:
            found = {path: self._at(side, path) for path in side.tree if path.startswith(f"{folder}/")}
            if found:
                return found
        present = sorted((self._root / folder).glob("*"))
        return {f"{folder}/{path.name}": path.read_bytes() for path in present if path.is_file()}

    def _at(self, side: Side, path: str) -> bytes:
        return next(self._all_at(side, [path]))

    def _all_at(self, side: Side, paths: Iterable[str]) -> Iterator[bytes]:
        """Yield the bytes of files as a side has them, what must come from git in one call."""
        paths = list(paths)
        missing = [path for path in paths if path not in side.differing and self._blob(path) != side.tree[path]]
        blobs = self._git.blobs(side.tree[path] for path in missing)
        for path in paths:
            data = side.differing.get(path, blobs.get(side.tree[path]))
            yield (self._disk(path) or b"") if data is None else data

    def _read(self, path: str) -> bytes | None:
        file = self._root / path
        try:
            return file.read_bytes() if file.is_file() and not file.is_symlink() else None
        except FileNotFoundError:  # another render put its tree in place
            return None

    def _hash(self, path: str) -> str | None:
        """Return the name that git gives to a file's bytes, nothing where there is no file."""
        data = self._disk(path)
        if data is None:
            return None
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def find(repository: Repository, paths: Iterable[Path], given: str | None = None) -> Target:
    """Return the target branch of the repository, for the experiments at `paths`; `given` names it."""
    git = Git(repository.root)
    return Target(repository.root, git.base(given), git, map(repository.label, paths))
