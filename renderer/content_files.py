"""Which files under the root may be read and written: regular ones that lie inside it, so that all is reviewed."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from renderer.location import Location
from renderer.problem import Problem
from renderer.yaml_io import Node, empty, read_file

LINK = "is a symbolic link, of which git keeps only where it leads"
_OUTSIDE = "lies outside the repository: what is launched must be reviewed here"


def exists(path: Path) -> bool:
    """Return whether anything stands at `path`, be it a link to nothing; what cannot be looked at counts as there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def real(path: Path) -> Path:
    """Return `path` with its symbolic links followed, as far as they lead."""
    return Path(os.path.realpath(path))


def contains(root: Path, path: Path) -> bool:
    """Return whether `path`, its symbolic links followed, lies under `root`, a real path."""
    return real(path).is_relative_to(root)


def outside(file: str) -> Problem:
    """Return the problem of a file called `file` that lies outside the root."""
    return Problem("path-outside", Location(file), "", _OUTSIDE)


def read_inside(root: Path, file: str, problems: list[Problem]) -> Node:
    """Return the mapping in `root`/`file`; append what is wrong to `problems`.

    Also that it lies outside the root, is a link, or lies behind one: a commit does not hold what a link leads to.
    """
    path = root / file
    if not contains(real(root), path):
        problems.append(outside(file))
        return empty(file)
    if any(step.is_symlink() for step in takewhile(lambda step: step != root, (path, *path.parents))):
        problems.append(_unreadable(file, LINK))
        return empty(file)
    return read_file(path, file, problems)


def read_optional(root: Path, file: str, problems: list[Problem]) -> Node | None:
    """Return the mapping in `root`/`file` as `read_inside` does, nothing only where nothing stands there."""
    return read_inside(root, file, problems) if exists(root / file) else None


def read_bytes(path: Path, name: str, problems: list[Problem]) -> bytes | None:
    """Return the bytes of the file at `path`, called `name` in messages; nothing, and a problem, where it is none."""
    try:
        kind = path.stat().st_mode
        if stat.S_ISREG(kind):
            return path.read_bytes()
        reason = "is a folder" if stat.S_ISDIR(kind) else "is not a regular file"
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except ValueError as error:
        reason = f"cannot be read: {error}"
    problems.append(_unreadable(name, reason))
    return None


def _unreadable(name: str, reason: str) -> Problem:
    return Problem("file-unreadable", Location(name), "", reason)


def unwritable(root: Path, path: Path, name: str) -> Problem | None:
    """Return why no file can be written at `path`, called `name`, without leaving `root` or following a link."""
    try:
        if not path.is_relative_to(root) or ".." in path.parts:
            return outside(name)
        link = next((step for step in (path, *path.parents) if step != root and step.is_symlink()), None)
        if link and link.is_relative_to(root):
            return _closed(name, f"{link.relative_to(root).as_posix()} is a symbolic link: nothing is written through")
        nearest = next(step for step in (path, *path.parents) if exists(step))
        kind = nearest.stat().st_mode
    except OSError as error:
        return _closed(name, f"cannot be written: {error.strerror}")
    except ValueError as error:
        return _closed(name, f"cannot be written: {error}")
    if not (stat.S_ISREG(kind) if nearest == path else stat.S_ISDIR(kind)):
        what = "regular file" if nearest == path else "folder"
        return _closed(name, f"cannot be written: {nearest.relative_to(root).as_posix()} is not a {what}")
    if not os.access(nearest, os.W_OK):
        return _closed(name, "cannot be written: Permission denied")
    return None


def _closed(name: str, message: str) -> Problem:
    return Problem("file-unwritable", Location(name), "", message)


def create(files: Mapping[Path, bytes]) -> None:
    """Write new files: all of them or, where one exists or cannot be written (OSError), none."""
    written: list[Path] = []
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
    except OSError:
        for path in written:
            path.unlink(missing_ok=True)
        raise
