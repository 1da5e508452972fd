"""What the target branch holds under rendered/, read from git once and compared with the disk by blob."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from renderer.git import Base, Git
from renderer.outputs import RUN_FILES

FOLDER = "rendered"


class Target:
    """The rendered files of the target branch. Where it is unknown, the files on disk stand for them."""

    def __init__(self, root: Path, base: Base, git: Git) -> None:
        self.base = base
        self._root = root
        self._tree = git.tree(base.commit, FOLDER) if base.commit else {}
        differing = {path: blob for path, blob in self._tree.items() if not _holds(root / path, blob)}
        blobs = git.blobs(differing.values())
        self._differing = {path: blobs[blob] for path, blob in differing.items()}

    @property
    def known(self) -> bool:
        """Whether git knows the target branch."""
        return self.base.commit is not None

    def run_files(self, folder: str) -> Mapping[str, bytes]:
        """Return the files of a run's folder by name; empty where the target has no such run."""
        found = {name: self.read(f"{folder}/{name}") for name in RUN_FILES}
        return {name: data for name, data in found.items() if data is not None}

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes on the target, nothing where it is not there."""
        if not self.known or path in self._tree:
            return self._differing[path] if path in self._differing else _disk(self._root / path)
        return None

    def folders(self) -> set[str]:
        """Return the folders of all runs on the target."""
        paths = self._tree if self.known else {path.relative_to(self._root).as_posix() for path in self._on_disk()}
        return {path.removesuffix("/jobset.yml") for path in paths if path.endswith("/jobset.yml")}

    def has_experiment(self, path: str) -> bool:
        """Return whether the experiment file is still in the tree being rendered."""
        return (self._root / path).is_file()

    def _on_disk(self) -> list[Path]:
        return list(self._root.glob(f"{FOLDER}/*/*/*/jobset.yml"))


def _disk(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _holds(path: Path, blob: str) -> bool:
    """Return whether the file's bytes are those of a git blob (SHA-1 or SHA-256, as the repository's)."""
    data = _disk(path)
    if data is None:
        return False
    algorithm = "sha1" if len(blob) == 40 else "sha256"
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == blob
