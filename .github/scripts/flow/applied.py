"""Comments on the pull requests of a push what applying it launched, queued and refused, a comment per environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from github.PullRequest import PullRequest
from github.Repository import Repository

from flow import comments, hub
from flow.git import Git
from flow.refusal import NothingToDoError, run
from flow.runner import event, run_page

MAX_COMMITS = 50
"""The commits of a push whose pull requests are told; a merge queue merges fewer at a time."""


def main() -> str:
    """Post applied-<environment>.md of the folder on the command line on every pull request that the push merged."""
    repo = hub.repository(os.environ["GITHUB_TOKEN"])
    pulls = list(_merged(repo, _commits(event(), os.environ["GITHUB_SHA"])))
    if not pulls:
        raise NothingToDoError("the push merged no pull request")
    files = sorted(Path(sys.argv[1]).glob("applied-*.md"))
    said = [_post(pull, file) for pull in pulls for file in files]
    return "; ".join(said)


def _post(pull: PullRequest, file: Path) -> str:
    environment = file.stem.removeprefix("applied-")
    text = file.read_text() or f"### Applying to `{environment}` failed\n\nWhy is in the log: {run_page()}\n"
    return comments.put(pull, f"<!-- renderer apply {environment} -->", text)


def _commits(event: dict[str, Any], head: str) -> list[str]:
    """Return the commits that the push added to the branch itself; only the last where it says no more."""
    before = str(event.get("before", ""))
    if not re.fullmatch("[0-9a-f]{40}", before) or not before.strip("0"):
        return [head]
    listed = Git().text("rev-list", "--first-parent", f"--max-count={MAX_COMMITS}", f"{before}..{head}")
    return listed.splitlines()


def _merged(repo: Repository, commits: Iterable[str]) -> Iterator[PullRequest]:
    seen = set()
    for commit in commits:
        for pull in repo.get_commit(commit).get_pulls():
            if pull.merged_at and pull.number not in seen:
                seen.add(pull.number)
                yield pull


if __name__ == "__main__":
    run(main)
