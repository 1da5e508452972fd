"""What the server of the tests knows and answers: GitHub's REST API as far as the workflows depend on it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "acme/runs"
FORK = "mallory/runs"
IDS = {NAME: 1, FORK: 2}
MAX_COMMENT = 65_536


@dataclass
class Token:
    """Who a token stands for, and what it may do: read or write by GitHub's word for a permission."""

    login: str = "github-actions[bot]"
    permissions: dict[str, str] = field(default_factory=dict)

    def may(self, permission: str, level: str) -> bool:
        return self.permissions.get(permission) in {level, "write"}


@dataclass
class Pull:
    """A pull request; `sha` is where its head is, unless it is a branch here, which may move."""

    number: int
    branch: str
    repository: str = NAME
    base: str = "main"
    state: str = "open"
    sha: str = ""
    merged: str = ""


@dataclass
class Run:
    """A run of a workflow."""

    id: int
    sha: str
    branch: str
    event: str = "pull_request"
    repository: str | None = NAME


class AnswerError(Exception):
    """What the server answers instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class GitHub:
    """What the server knows; the git repository is real and bare."""

    root: Path
    tokens: dict[str, Token] = field(default_factory=dict)
    pulls: list[Pull] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)
    artifacts: dict[int, dict[str, bytes]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    app_key: str = ""
    app_permissions: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""
    filters: bool = True
    """Whether lists of pull requests are filtered: GitHub leaves out a filter that it cannot read."""
    page: int = 100
    """The most items of a page, smaller than asked for in tests of paging."""

    @property
    def bare(self) -> Path:
        return self.root / f"{NAME}.git"

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(self.bare), *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise AnswerError(404, "Not Found")
        return done.stdout.strip()

    def head(self, pull: Pull) -> str:
        return self.git("rev-parse", f"refs/heads/{pull.branch}") if pull.repository == NAME else pull.sha

    def comment(self, pull: int, body: str, login: str = "github-actions[bot]") -> dict[str, Any]:
        entry = {"id": len(self.comments) + 1, "pull": pull, "body": body, "user": {"login": login, "id": 7}}
        self.comments.append(entry)
        return entry


class Api:
    """The REST endpoints, one method each."""

    def __init__(self, github: GitHub, token: Token | None, query: dict[str, str], body: bytes) -> None:
        self.github, self.token, self.query = github, token, query
        self.data: Any = json.loads(body) if body else None
        self.headers: dict[str, str] = {}

    def needs(self, permission: str, level: str = "read") -> None:
        if self.token is None or not self.token.may(permission, level):
            raise AnswerError(403, "Resource not accessible by integration")

    def commit(self, sha: str) -> dict[str, Any]:
        self.needs("contents")
        try:
            shown = self.github.git("show", "--no-patch", "--format=%H%n%T%n%ce%n%P%n%B", f"{sha}^{{commit}}", "--")
        except AnswerError:
            raise AnswerError(422, f"No commit found for SHA: {sha}") from None
        name, tree, email, parents, message = shown.split("\n", 4)
        return {
            "sha": name,
            "url": f"{self.github.url}/api/repos/{NAME}/commits/{name}",
            "tree": {"sha": tree},
            "committer": {"email": email},
            "parents": [{"sha": parent} for parent in parents.split()],
            "message": message,
            "commit": {"message": message},
        }

    def git_commit(self, sha: str) -> dict[str, Any]:
        try:
            return self.commit(sha)
        except AnswerError as error:
            raise AnswerError(404 if error.status == 422 else error.status, "Not Found") from None

    def git_tree(self, sha: str) -> dict[str, Any]:
        self.needs("contents")
        entries = [line.split(maxsplit=3) for line in self.github.git("ls-tree", sha).splitlines()]
        return {
            "sha": sha,
            "tree": [{"mode": mode, "type": kind, "sha": name, "path": path} for mode, kind, name, path in entries],
        }

    def commit_pulls(self, sha: str) -> list[Any]:
        self.commit(sha)
        self.needs("pull_requests")
        return [self._pull(pull) for pull in self.github.pulls if sha in {pull.merged, self.github.head(pull)}]

    def list_pulls(self) -> list[Any]:
        self.needs("pull_requests")
        head = self.query.get("head", "")
        found = [
            pull
            for pull in self.github.pulls
            if not self.github.filters
            or (
                self.query.get("state", "open") in {pull.state, "all"}
                and self.query.get("base", pull.base) == pull.base
                and (":" not in head or head == f"{pull.repository.partition('/')[0]}:{pull.branch}")
            )
        ]
        return [self._pull(pull) for pull in found]

    def _pull(self, pull: Pull) -> dict[str, Any]:
        url = f"{self.github.url}/api/repos/{NAME}"
        return {
            "number": pull.number,
            "state": pull.state,
            "url": f"{url}/pulls/{pull.number}",
            "issue_url": f"{url}/issues/{pull.number}",
            "merged_at": "2026-01-01T00:00:00Z" if pull.merged else None,
            "merge_commit_sha": pull.merged or None,
            "head": {"ref": pull.branch, "sha": self.github.head(pull), "repo": repository(pull.repository)},
            "base": {"ref": pull.base, "repo": repository(NAME)},
        }

    def run(self, number: str) -> dict[str, Any]:
        self.needs("actions")
        run = self.github.runs.get(int(number))
        if run is None:
            raise AnswerError(404, "Not Found")
        return {
            "id": run.id,
            "event": run.event,
            "head_sha": run.sha,
            "head_branch": run.branch,
            "head_repository": repository(run.repository) if run.repository else None,
            "url": f"{self.github.url}/api/repos/{NAME}/actions/runs/{run.id}",
            "artifacts_url": f"{self.github.url}/api/repos/{NAME}/actions/runs/{run.id}/artifacts",
            "html_url": f"{self.github.url}/{NAME}/actions/runs/{run.id}",
        }

    def run_artifacts(self, number: str) -> list[Any]:
        self.needs("actions")
        kept = self.github.artifacts.get(int(number), {})
        return [
            {
                "id": position,
                "name": name,
                "expired": False,
                "size_in_bytes": self.github.sizes.get(name, len(data)),
                "archive_download_url": f"{self.github.url}/api/repos/{NAME}/actions/artifacts/{number}-{name}/zip",
            }
            for position, (name, data) in enumerate(kept.items(), 1)
        ]

    def archive(self, name: str) -> None:
        self.needs("actions")
        self.headers["Location"] = self.github.url.replace("127.0.0.1", "localhost") + f"/store/{name}"
        raise AnswerError(302, "Found")

    def list_comments(self, number: str) -> list[Any]:
        self.needs("pull_requests")
        return [self._comment(entry) for entry in self.github.comments if entry["pull"] == int(number)]

    def _comment(self, entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "url": f"{self.github.url}/api/repos/{NAME}/issues/comments/{entry['id']}"}

    def _body(self) -> str:
        body: str = self.data["body"]
        if len(body) > MAX_COMMENT:
            raise AnswerError(422, "Validation Failed: body is too long (maximum is 65536 characters)")
        return body

    def add_comment(self, number: str) -> dict[str, Any]:
        self.needs("pull_requests", "write")
        assert self.token
        return self._comment(self.github.comment(int(number), self._body(), self.token.login))

    def edit_comment(self, number: str) -> dict[str, Any]:
        self.needs("pull_requests", "write")
        entry = next(entry for entry in self.github.comments if entry["id"] == int(number))
        entry["body"] = self._body()
        return self._comment(entry)

    def add_status(self, sha: str) -> dict[str, Any]:
        self.needs("statuses", "write")
        self.commit(sha)
        self.github.statuses.append({"sha": sha, **self.data})
        return self.data

    def installation(self) -> dict[str, Any]:
        return {"id": 99, "app_id": 12}

    def access_token(self, number: str) -> dict[str, Any]:
        assert number == "99"
        asked = self.data["permissions"]
        if any(self.github.app_permissions.get(name) != level for name, level in asked.items()):
            raise AnswerError(422, "The permissions requested are not granted to this installation.")
        self.github.tokens["app-token"] = Token("renderer-app[bot]", asked)
        return {"token": "app-token", "expires_at": "2036-01-01T00:00:00Z", "permissions": asked}

    def list_issues(self) -> list[Any]:
        self.needs("issues")
        labels = set(filter(None, self.query.get("labels", "").split(",")))
        state = self.query.get("state", "open")
        return [
            self._issue(issue)
            for issue in self.github.issues
            if issue["state"] == state and labels <= {label["name"] for label in issue["labels"]}
        ]

    def _issue(self, issue: dict[str, Any]) -> dict[str, Any]:
        return {**issue, "url": f"{self.github.url}/api/repos/{NAME}/issues/{issue['number']}"}

    def add_issue(self) -> dict[str, Any]:
        self.needs("issues", "write")
        assert self.token
        issue = {
            "number": 100 + len(self.github.issues),
            "title": self.data["title"],
            "body": self._body(),
            "state": "open",
            "labels": [{"name": name} for name in self.data.get("labels", [])],
            "user": {"login": self.token.login},
        }
        self.github.issues.append(issue)
        return self._issue(issue)

    def edit_issue(self, number: str) -> dict[str, Any]:
        self.needs("issues", "write")
        issue = next(issue for issue in self.github.issues if issue["number"] == int(number))
        issue.update(self.data)
        return self._issue(issue)


def repository(name: str) -> dict[str, Any]:
    owner = name.partition("/")[0]
    return {"id": IDS[name], "full_name": name, "owner": {"login": owner}, "url": f"/repos/{name}"}


REPOSITORY = f"/repos/{NAME}"
ROUTES: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("GET", r"/commits/(\w+)", Api.commit),
    ("GET", r"/commits/(\w+)/pulls", Api.commit_pulls),
    ("GET", r"/git/commits/(\w+)", Api.git_commit),
    ("GET", r"/git/trees/(\w+)", Api.git_tree),
    ("GET", r"/pulls", Api.list_pulls),
    ("GET", r"/actions/runs/(\d+)", Api.run),
    ("GET", r"/actions/runs/(\d+)/artifacts", Api.run_artifacts),
    ("GET", r"/actions/artifacts/([\w-]+)/zip", Api.archive),
    ("GET", r"/issues/(\d+)/comments", Api.list_comments),
    ("POST", r"/issues/(\d+)/comments", Api.add_comment),
    ("PATCH", r"/issues/comments/(\d+)", Api.edit_comment),
    ("POST", r"/statuses/(\w+)", Api.add_status),
    ("GET", r"/issues", Api.list_issues),
    ("POST", r"/issues", Api.add_issue),
    ("PATCH", r"/issues/(\d+)", Api.edit_issue),
    ("GET", r"/installation", Api.installation),
)
