"""In a trusted job: commits what the followed run rendered to the branch of its pull request."""

from __future__ import annotations

import os

from flow import hub, report
from flow.artifact import fetch
from flow.changes import MAX_JSON, decode, files_of
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
    followed.require_base(changes.base)
    if hub.rendered_from(repo, head):
        raise RefusedError("rendering a commit that was rendered here changes it again: rendering is not repeatable")
    app = hub.app_token()
    git = Git(app or token, os.environ["GITHUB_SERVER_URL"])
    git.fetch(head)
    commit = git.commit(changes, message(head, len(changes.files)))
    if commit is None:
        raise NothingToDoError(f"{head} holds what was rendered already")
    verdict = None if app else _verdict(followed, token)
    git.push(commit, followed.pull.head.ref)
    if verdict:  # the push started no workflow, so nothing else will ever check this commit
        state, why = verdict
        about = f"rendered from {head[:12]}{why}"
        repo.get_commit(commit).create_status(state, followed.run.html_url, about, "check")
    return f"{followed.pull.head.ref} is {commit} now: {files_of(len(changes.files))}"


def message(sha: str, count: int) -> str:
    """Return the message of a commit that renders commit `sha`."""
    return f"Render {files_of(count)}\n\n{hub.TRAILER}: {sha}\n"


def _verdict(followed: Followed, token: str) -> tuple[str, str]:
    """Return the state that `check` would come to on the rendered files, and why: it fails as its report does."""
    try:
        refused = report.read(followed, token).totals.refused
    except (NothingToDoError, RefusedError):
        return "failure", "; there is no report of it"
    return ("failure", f"; launches that would be refused: {refused}") if refused else ("success", "")


def _accept(followed: Followed, name: str) -> None:
    """Go on only for a branch of this repository that has not moved since the run."""
    if followed.run.head_repository.full_name != name:
        raise NothingToDoError("a fork's branch is checked, not rendered for")
    if followed.pull.head.sha != followed.run.head_sha:
        raise NothingToDoError(f"{followed.run.head_sha} is rendered already")


if __name__ == "__main__":
    run(main)
