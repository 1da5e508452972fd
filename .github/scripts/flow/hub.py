"""GitHub as the trusted jobs see it: who they are, which run they follow, and which pull request that belongs to."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from github import Auth, Github, GithubException, GithubIntegration
from github.GitCommit import GitCommit
from github.PullRequest import PullRequest
from github.Repository import Repository
from github.WorkflowRun import WorkflowRun
from jwt import PyJWTError

from flow.changes import FOLDERS
from flow.git import EMAIL
from flow.refusal import NothingToDoError, RefusedError
from flow.runner import event

BOT = "github-actions[bot]"
"""Who a job with its default token is."""

TRAILER = "Rendered-From"
"""What a commit of rendered files names the commit in that it renders."""

_NO_KEY = (PyJWTError, ValueError, TypeError, AttributeError)
"""What signing with something that is no private key raises: no PEM at all, an encrypted one, a public key."""


def repository(token: str) -> Repository:
    """Return the repository that the workflow runs for."""
    github = Github(
        auth=Auth.Token(token),
        base_url=os.environ["GITHUB_API_URL"],
        timeout=30,
        lazy=True,
        seconds_between_requests=None,  # a job makes a handful of them
        seconds_between_writes=None,
    )
    return github.get_repo(os.environ["GITHUB_REPOSITORY"])


def app_token() -> str:
    """Return a token of the GitHub App that may write this repository's contents; empty where none is configured."""
    app, key = os.environ.get("APP_ID", ""), os.environ.get("APP_PRIVATE_KEY", "")
    if not app and not key:
        return ""
    if not app or not key:
        raise RefusedError("the GitHub App needs both the variable RENDERER_APP_ID and the secret RENDERER_APP_KEY")
    auth = Auth.AppAuth(app, key)
    try:
        auth.create_jwt()
    except _NO_KEY:
        raise RefusedError("the secret RENDERER_APP_KEY is no private key: it must hold the App's whole .pem") from None
    integration = GithubIntegration(auth=auth, base_url=os.environ["GITHUB_API_URL"])
    owner, _, name = os.environ["GITHUB_REPOSITORY"].partition("/")
    try:
        installation = integration.get_repo_installation(owner, name)
        return integration.get_access_token(installation.id, {"contents": "write"}).token
    except GithubException as error:
        raise RefusedError(
            f"GitHub gives the App no token (HTTP {error.status}): check that RENDERER_APP_ID and RENDERER_APP_KEY are "
            "of one App, and that it is installed on this repository and may write its contents"
        ) from error


@dataclass(frozen=True, slots=True)
class Followed:
    """The run that a workflow_run job follows, and the open pull request that it ran for."""

    run: WorkflowRun
    pull: PullRequest

    def require_base(self, base: str) -> None:
        """Go on only with what was made against the pull request's target: one head may have several."""
        if base != self.pull.base.ref:
            into = f"pull request {self.pull.number} goes into {self.pull.base.ref}"
            raise NothingToDoError(f"run {self.run.id} is against {base}, and {into}")


def followed(repo: Repository) -> Followed:
    """Return the run that this job follows and its pull request, both as the API has them.

    Of the event only the run's number is used. A pull request counts if it is open, goes to the default branch, and has
    the run's commit as its head, or our own rendering of that commit.
    """
    started = event()
    run = repo.get_workflow_run(int(started["workflow_run"]["id"]))
    if run.event != "pull_request":
        raise NothingToDoError(f"run {run.id} is of no pull request")
    source = run.head_repository
    if source is None:
        raise NothingToDoError("the branch's repository is gone")
    found = repo.get_pulls(state="open", base=_default(started), head=f"{source.owner.login}:{run.head_branch}")
    for pull in found:
        # GitHub leaves a filter out that it cannot read: every condition is checked again
        same = pull.head.repo is not None and pull.head.repo.id == source.id and pull.head.ref == run.head_branch
        wanted = same and pull.state == "open" and pull.base.ref == _default(started)
        if wanted and _is_of(repo, pull, run.head_sha):
            return Followed(run, pull)
    raise NothingToDoError(f"no open pull request into {_default(started)} has {run.head_sha} as its head")


def _default(started: dict[str, Any]) -> str:
    return str(started["repository"]["default_branch"])


def _is_of(repo: Repository, pull: PullRequest, sha: str) -> bool:
    return pull.head.sha == sha or rendered_from(repo, pull.head.sha) == sha


def rendered_from(repo: Repository, sha: str) -> str | None:
    """Return the parent that a commit renders, as it says; None for every other one, also if rebased or amended."""
    commit = repo.get_git_commit(sha)
    said = re.search(rf"^{TRAILER}: ([0-9a-f]{{40}})$", commit.message, re.MULTILINE)
    if not said or commit.committer.email != EMAIL or [parent.sha for parent in commit.parents] != [said[1]]:
        return None
    parent = repo.get_git_commit(said[1])
    return parent.sha if _sources(repo, commit) == _sources(repo, parent) else None


def _sources(repo: Repository, commit: GitCommit) -> list[tuple[str, str, str]]:
    """Return what a commit holds beside what is rendered, a folder by the name of its tree."""
    entries = repo.get_git_tree(commit.tree.sha).tree
    return [(entry.path, entry.mode, entry.sha) for entry in entries if entry.path not in FOLDERS]
