"""What git tells apply about the commits it moves between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from renderer.committed import Unit, unit_of
from renderer.git import Git
from renderer.names import sealed
from renderer.outputs import RUN_FILES

_PULL_REQUEST = re.compile(r"Merge pull request #([0-9]+) |.* \(#([0-9]+)\)$")
_SEARCHED = 50


class History(Git):
    """Git with what only apply asks."""

    def commits(self, head: str, base: str | None = None) -> list[str]:
        """Return `head` and its ancestors, the newest first, without `base` and its ancestors."""
        out = self._run("rev-list", "--topo-order", head, *([f"^{base}"] if base else []))
        return out.decode().split() if out else []

    def pull_requests(self, head: str, base: str | None) -> dict[Unit, str]:
        """Return the number of the pull request that last brought each experiment's files, where a message names one.

        Looked for between two commits of the target, in the messages of GitHub's merges: "Merge pull request #12 from"
        and "Title (#12)". Empty: the last commit names none.
        """
        found: dict[Unit, str] = {}
        for _, subject, paths in self._merged(head, base):
            match = _PULL_REQUEST.match(subject)
            number = (match[1] or match[2]) if match else ""
            for path in paths:
                if unit := unit_of(path):
                    found.setdefault(unit, number)
        return found

    def between(self, head: str, base: str) -> set[str]:
        """Return the paths that the target's commits after `base` and before `head` changed, each on its own."""
        return {path for commit, _, paths in self._merged(head, base) if commit != head for path in paths}

    def _merged(self, head: str, base: str | None) -> Iterator[tuple[str, str, list[str]]]:
        """Yield the commits of the target itself, the newest first: name, subject and changed paths."""
        words = ("--first-parent", "-m", "--no-renames", "--name-only", "--relative", "-z", "--format=%x01%H %s")
        out = self._run("log", *words, head, *([f"^{base}"] if base else [])) or b""
        for commit in out.split(b"\x01")[1:]:
            about, *paths = commit.decode("utf-8", "replace").split("\0")
            name, _, subject = about.partition(" ")
            yield name, subject, [path.strip("\n") for path in paths if path.strip("\n")]

    def edited(self, commit: str, folder: str, files: Mapping[str, bytes]) -> list[str]:
        """Return the paths of a run that are not as rendered: what differs from the last commit that was whole.

        All of its files where no commit is known in which its files digest was right.
        """
        out = self._run("log", f"--max-count={_SEARCHED}", "--format=%H", commit, "--", folder) or b""
        for earlier in out.decode().split():
            tree = self.tree(earlier, folder)
            blobs = self.blobs(tree.values())
            paths = {name: f"{folder}/{name}" for name in RUN_FILES}
            whole = {name: blobs[tree[path]] for name, path in paths.items() if path in tree}
            if sealed(whole):
                differing = {name for name in {*whole, *files} if whole.get(name) != files.get(name)}
                return [paths[name] for name in sorted(differing)]
        return [f"{folder}/{name}" for name in sorted(files)]
