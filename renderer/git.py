"""What git knows: which commit is the target branch, and which files it holds. Only reads."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from renderer.location import Location
from renderer.problem import refuse

_SETTINGS = ("-c", "log.showSignature=false", "-c", "log.showRoot=true")
"""What a person may have set otherwise, and what would change the answers."""

_FOREIGN = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_ICASE_PATHSPECS", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_PREFIX"}
)
"""What git tells a hook about the folder that it was called in, which need not be this one."""

FOLDERS = ("experiments", "rendered")
"""The folders with the files of experiments and runs."""


@dataclass(frozen=True, slots=True)
class Base:
    """The target branch: `commit` and what it was taken from, or why it is unknown."""

    name: str
    commit: str | None
    reason: str = ""


class Link(str):
    """The blob of a symbolic link, which holds only where it leads."""

    __slots__ = ()


class Git:
    """The repository around a folder; paths are relative to that folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def base(self, given: str | None) -> Base:
        """Return the target branch: the given one, else the pull request's in CI, else origin's default branch."""
        if given is not None:
            commit = self.commit(given)
            return Base(given, commit, "" if commit else f"{given or 'an empty name'} is not a commit here")
        problem = self._problem()
        if problem:
            return Base("", None, problem)
        name = self._default_base()
        if not name:
            return Base("", None, "origin has no default branch here; name the target with --base")
        commit = self.commit(f"refs/remotes/{name}")  # in full, or a tag of that name would win
        return Base(name, commit, "" if commit else f"{name} is not fetched; name the target with --base")

    def _problem(self) -> str:
        """Return why git cannot be asked here, empty if it can."""
        done = self._call("rev-parse", "--git-dir")
        if done is None:
            return "there is no git here"
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0].removeprefix("fatal: ")
        if done.returncode == 0:
            return ""
        return "this is not a git repository" if said.startswith("not a git repository") else f"git says: {said}"

    def _default_base(self) -> str:
        pull_request = os.environ.get("GITHUB_BASE_REF")
        if pull_request:
            return f"origin/{pull_request}"
        head = self._run("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD")
        return head.decode().strip().removeprefix("refs/remotes/") if head else ""

    def commit(self, ref: str) -> str | None:
        """Return the commit that `ref` names, nothing if there is none."""
        out = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        found = out.decode("ascii", "replace").strip() if out else ""
        return found if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", found) else None

    def is_ancestor(self, old: str, new: str) -> bool | None:
        """Return whether commit `old` is an ancestor of `new`; None if git cannot tell (a shallow clone)."""
        done = self._call("merge-base", "--is-ancestor", old, new)
        return None if done is None or done.returncode > 1 else done.returncode == 0

    def fork(self, base: str, head: str = "HEAD") -> str | None:
        """Return the commit where `head` left commit `base`; nothing where the history is too short."""
        out = self._run("merge-base", base, head)
        return out.decode().strip() if out else None

    def shallow(self) -> bool:
        """Return whether older commits are missing here, as after a clone of some depth."""
        return self._run("rev-parse", "--is-shallow-repository") == b"true\n"

    def tree(self, commit: str, *folders: str) -> dict[str, str]:
        """Return the blob of every file below `folders` at `commit`, by path. Raises RefusedError if git fails."""
        out = self._need("ls-tree", "-r", "-z", commit, "--", *folders)
        found = {}
        for entry in out.split(b"\0")[:-1]:
            about, _, path = entry.partition(b"\t")
            mode, kind, name = about.split()
            if kind == b"blob":  # not a submodule, whose commit lies elsewhere
                blob = name.decode()
                found[path.decode("utf-8", "surrogateescape")] = Link(blob) if mode == b"120000" else blob
        return found

    def blobs(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """Return the bytes of blobs by name, all in one call of git. Raises RefusedError if one is not here."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        out = self._need("cat-file", "--batch", data="\n".join(wanted).encode() + b"\n")
        found, start = {}, 0
        for name in wanted:
            end = out.index(b"\n", start)
            words = out[start:end].split()
            if len(words) != 3:
                refuse("git-failed", Location("git"), f"object {name} is missing here: fetch the whole history")
            size = int(words[2])
            found[name] = out[end + 1 : end + 1 + size]
            start = end + 2 + size
        return found

    def deleted(self) -> list[str]:
        """Return the files that the next commit deletes, relative to the folder."""
        words = ("--cached", "--name-only", "--no-renames", "--diff-filter=D", "--relative", "-z")
        return os.fsdecode(self._run("diff", *words) or b"").split("\0")[:-1]

    def untracked(self, *folders: Path) -> list[Path]:
        """Return the files below `folders` that the next commit leaves out because git does not know them."""
        out = self._run("ls-files", "--others", "-z", "--", *map(str, folders)) if folders else None
        return [self.folder / name for name in os.fsdecode(out or b"").split("\0")[:-1]]

    def left_out(self, folder: str) -> dict[str, str]:
        """Return the blob of every file below a folder that a sparse checkout leaves out, by path."""
        out = self._run("ls-files", "-t", "--stage", "-z", "--", folder) or b""
        entries = [entry.partition(b"\t") for entry in out.split(b"\0") if entry.startswith(b"S ")]
        return {os.fsdecode(path): about.split()[2].decode() for about, _, path in entries}

    def uncommitted(self, *folders: str) -> list[str]:
        """Return the files below `folders` that are on disk otherwise than in HEAD, relative to the checkout."""
        words = ("--porcelain", "-z", "--untracked-files=all", "--no-renames")
        out = self._run("status", *words, "--", *folders)
        return [line[3:] for line in os.fsdecode(out or b"").split("\0")[:-1]]

    def top(self) -> Path | None:
        """Return the folder of the checkout, nothing where there is none."""
        out = self._run("rev-parse", "--show-toplevel")
        return None if out is None else Path(os.fsdecode(out.strip()))

    def branch(self) -> str | None:
        """Return the branch that is checked out, nothing where none is."""
        out = self._run("rev-parse", "--abbrev-ref", "HEAD")
        return None if out is None or out.strip() == b"HEAD" else os.fsdecode(out.strip())

    @contextmanager
    def checked_out(self, tree: Mapping[str, str]) -> Iterator[Path]:
        """Put files, blobs by path, into a folder for the time of the block, so that they are read as committed.

        Left out is a path that leads out of it, or below a file, as two sides of a merge may have it. A link leads to
        its own text here.
        """
        blobs = self.blobs(tree.values())
        with tempfile.TemporaryDirectory(prefix="renderer-") as folder:
            for path, blob in tree.items():
                file = Path(folder, path)
                if ".." in file.parts or any(parent.as_posix() in tree for parent in PurePath(path).parents):
                    continue
                file.parent.mkdir(parents=True, exist_ok=True)
                held = Path(folder, f".{blob}") if isinstance(blob, Link) else file
                held.write_bytes(blobs[blob])
                if held != file:
                    file.symlink_to(held)
            yield Path(folder)

    def _need(self, *arguments: str, data: bytes = b"") -> bytes:
        done = self._call(*arguments, data=data)
        if done is None or done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip() if done else "it is not here"
            refuse("git-failed", Location("git"), f"{arguments[0]} failed: {said}")
        return done.stdout

    def _run(self, *arguments: str, data: bytes = b"") -> bytes | None:
        done = self._call(*arguments, data=data)
        return done.stdout if done is not None and done.returncode == 0 else None

    def _call(self, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes] | None:
        """Run git; nothing where there is no git. Its optional locks stay off: this only reads."""
        words = ["git", *_SETTINGS, "-C", str(self.folder), *arguments]
        environment = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
        environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        try:
            return subprocess.run(words, input=data, capture_output=True, check=False, env=environment)  # noqa: S603
        except OSError:
            return None
