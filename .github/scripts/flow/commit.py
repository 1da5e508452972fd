"""In a trusted job: commits what the followed run rendered to the branch of its pull request."""

from __future__ import annotations

import os

from flow import hub
from flow.artifact import fetch
from flow.changes import MAX_JSON, decode
from flow.git import Git
from flow.hub import Followed
from flow.refusal import NothingToDoError, RefusedError, run


def main() -> str:
    """Commit the changes of the run's artifact; with the default token, also give the new commit its status."""
    token = os.environ["GITHUB_TOKEN"]
    repo = hub.repository(token)
    followed = hub.followed(repo)
    _accept(followed, os.environ["GITHUB_REPOSITORY"])
    head = followed.run.head_sha
    changes = decode(fetch(followed.run, "changes", "changes.json", MAX_JSON, token))
    if changes.head != head:
        raise RefusedError(f"the changes are of {changes.head}, and the run is of {head}")
    if hub.rendered_from(repo, head):
        raise RefusedError("rendering a commit that was rendered here changes it again: rendering is not repeatable")
    app = hub.app_token()
    git = Git(app or token, os.environ["GITHUB_SERVER_URL"])
    git.fetch(head)
    commit = git.commit(changes, message(head, len(changes.files)))
    if commit is None:
        raise NothingToDoError(f"{head} holds what was rendered already")
    git.push(commit, followed.pull.head.ref)
    if not app:  # its push started no workflow, so nothing else will ever check this commit
        repo.get_commit(commit).create_status("success", followed.run.html_url, f"rendered from {head[:12]}", "check")
    return f"{followed.pull.head.ref} is {commit} now: {len(changes.files)} files"


def message(sha: str, count: int) -> str:
    """Return the message of a commit that renders commit `sha`."""
    files = "1 file" if count == 1 else f"{count} files"
    return f"Render {files}\n\n{hub.TRAILER}: {sha}\n"


def _accept(followed: Followed, name: str) -> None:
    """Go on only for a branch of this repository that has not moved since the run."""
    if followed.run.head_repository.full_name != name:
        raise NothingToDoError("a fork's branch is checked, not rendered for")
    if followed.pull.head.sha != followed.run.head_sha:
        raise NothingToDoError(f"{followed.run.head_sha} is rendered already")


if __name__ == "__main__":
    run(main)
