"""Runs git without a work tree of the commits it builds: no file, hook or attribute of a branch takes part."""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from flow.changes import Changes
from flow.refusal import RefusedError

EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"
"""The address of the author and committer of every commit made here."""

_IDENTITY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (
        ("NAME", "github-actions[bot]"),
        ("EMAIL", EMAIL),
    )
}


class Git:
    """The clone in the current folder; `token` opens its remote, and appears in no argument, file or output."""

    def __init__(self, token: str = "", server: str = "") -> None:
        self._environment = {**os.environ, **_IDENTITY, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        if token:
            basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            self._environment |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{server}/.extraheader",
                "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {basic}",
            }

    def run(self, *arguments: str, data: bytes = b"", more: Mapping[str, str] | None = None) -> bytes:
        """Return what git prints; refuses with its last line where it fails."""
        environment = {**self._environment, **(more or {})}
        done = subprocess.run(["git", *arguments], input=data, capture_output=True, check=False, env=environment)  # noqa: S603, S607
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["it failed"]
            raise RefusedError(f"git {arguments[0]}: {said[-1]}")
        return done.stdout

    def text(self, *arguments: str, data: bytes = b"", more: Mapping[str, str] | None = None) -> str:
        """Return what git prints, without the end of the line."""
        return self.run(*arguments, data=data, more=more).decode(errors="replace").strip()

    def fetch(self, commit: str) -> None:
        """Fetch one commit and its files as objects; nothing is checked out."""
        self.run("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "origin", commit)

    def commit(self, changes: Changes, message: str) -> str | None:
        """Return a new commit on top of `changes.head`, or None if its files are what they should be already."""
        tree = self._tree(changes)
        if tree == self.text("rev-parse", f"{changes.head}^{{tree}}"):
            return None
        return self.text("commit-tree", tree, "-p", changes.head, data=message.encode())

    def _tree(self, changes: Changes) -> str:
        blobs = self._blobs({path: data for path, data in changes.files.items() if data is not None})
        none = "0" * 40
        lines = [
            f"100644 {blobs[path]}\t{path}" if path in blobs else f"0 {none}\t{path}" for path in sorted(changes.files)
        ]
        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": f"{folder}/index"}
            self.run("read-tree", changes.head, more=index)
            self.run(
                "update-index", "-z", "--index-info", data="".join(f"{line}\0" for line in lines).encode(), more=index
            )
            return self.text("write-tree", more=index)

    def _blobs(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Store contents and return their names, with one git for all of them."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, data in enumerate(files.values()):
                path = Path(folder, str(number))
                path.write_bytes(data)
                paths.append(f"{path}\n")
            names = self.text("hash-object", "-w", "--no-filters", "--stdin-paths", data="".join(paths).encode())
        return dict(zip(files, names.split(), strict=True))

    def push(self, commit: str, branch: str) -> None:
        """Move the branch to the commit, unless it has moved on: nothing is ever forced."""
        self.run("push", "--quiet", "origin", f"{commit}:refs/heads/{branch}")
