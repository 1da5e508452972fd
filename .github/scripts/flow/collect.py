"""In the untrusted job: writes what rendering changed to a file, and commits it here so that the report sees it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flow.changes import FOLDERS, Changes, encode, files_of
from flow.git import Git
from flow.refusal import NothingToDoError, run


def main() -> str:
    """Write the changes to the file named on the command line; nothing where there is none."""
    git, output = Git(), Path(sys.argv[1])
    head = git.text("rev-parse", "HEAD")
    folders = [folder for folder in FOLDERS if Path(folder).exists() or git.run("ls-tree", head, folder)]
    if not folders:  # without a path, git would add everything
        raise NothingToDoError("nothing is rendered here")
    git.run("add", "--all", "--force", "--", *folders)
    names = git.run("diff", "--cached", "--name-only", "--no-renames", "-z", head, "--", *folders).decode()
    files = {name: _content(Path(name)) for name in names.split("\0")[:-1]}
    if not files:
        raise NothingToDoError("rendered/ is up to date")
    output.write_text(encode(Changes(head, os.environ["GITHUB_BASE_REF"], files)))
    git.run("commit", "--quiet", "--no-verify", "--message", "Rendered for the report")
    return f"{files_of(len(files))} to commit"


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


if __name__ == "__main__":
    run(main)
