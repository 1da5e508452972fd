"""The job that commits: what it does with what an untrusted job handed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flow import commit
from tests.workflows.archives import zipped
from tests.workflows.fake_github import FORK, Pull
from tests.workflows.job import Job, app_key, said
from tests.workflows.origin import Origin

PERMISSIONS = {"actions": "read", "contents": "write", "pull_requests": "read", "statuses": "write"}
GOOD = "rendered/test/qwen3-0.6b/second/jobset.yml"


@pytest.fixture(autouse=True)
def prepared(job: Job) -> None:
    job.prepare(**PERMISSIONS)


def handed(job: Job, files: dict[str, Any], *, head: str = "", **about: Any) -> str:
    """Return what the job says of these files, handed over by a run of the branch's head."""
    pull = job.github.pulls[0]
    sha = about.pop("sha", job.github.head(pull))
    data = json.dumps({"head": head or sha, "files": files}).encode()
    job.follow(pull, sha, {"changes": zipped({"changes.json": data})}, **about)
    return said(commit.main)


def test_files_are_written_and_removed(job: Job, origin: Origin) -> None:
    old = job.github.head(job.github.pulls[0])
    gone = "rendered/test/qwen3-0.6b/first/run.yml"
    assert handed(job, {GOOD: "a: 1\r\n", gone: None}).startswith("sweep is ")
    assert origin.changed(old, "sweep") == [gone, GOOD]
    assert origin.shown("sweep", GOOD) == b"a: 1\r\n"
    assert job.github.git("ls-tree", "sweep", GOOD).split()[0] == "100644"


def test_a_file_that_is_gone_already_is_no_error(job: Job) -> None:
    assert handed(job, {"rendered/a": None}).endswith("holds what was rendered already")


def test_no_files_make_no_commit(job: Job) -> None:
    assert handed(job, {}).endswith("holds what was rendered already")
    assert not job.github.statuses


@pytest.mark.parametrize(
    "path", [".github/workflows/check.yml", "rendered/../renderer/cli.py", "rendered/.gitattributes"]
)
def test_one_bad_path_spoils_all(job: Job, path: str) -> None:
    before = job.github.git("for-each-ref")
    assert handed(job, {GOOD: "", path: "x"}) == f"refused: {path!r} is not a path that may be written"
    assert job.github.git("for-each-ref") == before


@pytest.mark.parametrize("link", ["rendered/test/qwen3-0.6b/second", "rendered/test/qwen3-0.6b/second/jobset.yml"])
def test_a_link_of_the_branch_is_not_followed(job: Job, origin: Origin, link: str) -> None:
    (origin.root / link).parent.mkdir(exist_ok=True)
    (origin.root / link).symlink_to(origin.root / ".github")
    origin.push("sweep")
    handed(job, {GOOD: "x"})
    assert job.github.git("ls-tree", "sweep", GOOD).split()[0] == "100644", "a regular file in its place"
    assert job.github.git("ls-tree", "-r", "sweep", ".github") == job.github.git("ls-tree", "-r", "main", ".github")


def test_filters_and_attributes_of_the_branch_do_not_run(job: Job, origin: Origin) -> None:
    origin.content.write(".gitattributes", "* text eol=lf ident filter=evil\n")
    origin.push("sweep")
    handed(job, {GOOD: "$Id$\r\n"})
    assert origin.shown("sweep", GOOD) == b"$Id$\r\n"


def test_changes_of_another_commit_are_refused(job: Job) -> None:
    other = job.github.git("rev-parse", "main")
    head = job.github.head(job.github.pulls[0])
    assert handed(job, {GOOD: "x"}, head=other) == f"refused: the changes are of {other}, and the run is of {head}"


def test_a_branch_that_moved_on_is_left_alone(job: Job, origin: Origin) -> None:
    old = job.github.head(job.github.pulls[0])
    new = origin.push("sweep")
    assert handed(job, {GOOD: "x"}, sha=old) == f"nothing: no open pull request into main has {old} as its head"
    assert job.github.head(job.github.pulls[0]) == new


def test_a_branch_that_moves_meanwhile_is_not_overwritten(
    job: Job, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = []
    real = commit.Git.push

    def push(self: Any, sha: str, branch: str) -> None:
        moved.append(origin.push("sweep"))
        real(self, sha, branch)

    monkeypatch.setattr(commit.Git, "push", push)
    assert handed(job, {GOOD: "x"}).startswith("refused: git push: ")
    assert job.github.head(job.github.pulls[0]) == moved[0]
    assert not job.github.statuses


def test_rendering_that_never_ends_is_stopped(job: Job) -> None:
    assert handed(job, {GOOD: "1"}).startswith("sweep is ")
    new = job.github.head(job.github.pulls[0])
    assert handed(job, {GOOD: "2"}) == (
        "refused: rendering a commit that was rendered here changes it again: rendering is not repeatable"
    )
    assert job.github.head(job.github.pulls[0]) == new


def test_a_run_that_is_started_again_makes_no_second_commit(job: Job) -> None:
    old = job.github.head(job.github.pulls[0])
    assert handed(job, {GOOD: "1"}).startswith("sweep is ")
    assert handed(job, {GOOD: "1"}, sha=old) == f"nothing: {old} is rendered already"


def test_a_fork_is_not_rendered_for(job: Job, origin: Origin) -> None:
    job.github.pulls[:] = [Pull(8, "sweep", FORK, sha=origin.push_fork(8))]
    before = job.github.git("for-each-ref")
    assert handed(job, {GOOD: "x"}) == "nothing: a fork's branch is checked, not rendered for"
    assert job.github.git("for-each-ref") == before


@pytest.mark.parametrize(
    "about", [{"event": "push"}, {"event": "schedule"}], ids=lambda about: "-".join(about.values())
)
def test_runs_of_no_pull_request_are_left_alone(job: Job, about: dict[str, Any]) -> None:
    assert handed(job, {GOOD: "x"}, **about) == "nothing: run 5000 is of no pull request"


@pytest.mark.parametrize(
    "pull",
    [
        Pull(7, "sweep", state="closed"),
        Pull(7, "sweep", base="release"),
        Pull(7, "main"),
        Pull(7, "sweep", FORK, sha="0"),
    ],
)
def test_only_an_open_pull_request_of_that_very_branch_counts(job: Job, pull: Pull) -> None:
    """A run of branch `sweep` of this repository finds none of these."""
    sha = job.github.head(job.github.pulls[0])
    data = json.dumps({"head": sha, "files": {GOOD: "x"}}).encode()
    job.follow(job.github.pulls[0], sha, {"changes": zipped({"changes.json": data})})
    job.github.pulls[:] = [pull]
    assert said(commit.main) == f"nothing: no open pull request into main has {sha} as its head"


@pytest.fixture
def key(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_ID", "12")
    monkeypatch.setenv("APP_PRIVATE_KEY", app_key(job.github))


def test_with_an_app_its_token_pushes_and_check_runs_by_itself(job: Job, key: None) -> None:
    job.prepare(**{**PERMISSIONS, "contents": "read"})  # nothing is pushed with the default token
    assert handed(job, {GOOD: "x"}).startswith("sweep is ")
    assert job.github.tokens["app-token"].permissions == {"contents": "write"}, "it asks for no more than it needs"
    assert not job.github.statuses


def test_half_an_app_is_refused(job: Job, key: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PRIVATE_KEY", "")
    before = job.github.git("for-each-ref")
    assert handed(job, {GOOD: "x"}) == (
        "refused: the GitHub App needs both the variable RENDERER_APP_ID and the secret RENDERER_APP_KEY"
    )
    assert job.github.git("for-each-ref") == before


def test_a_token_that_may_not_write_is_told_and_not_shown(job: Job) -> None:
    job.prepare(**{**PERMISSIONS, "contents": "read"})
    answer = handed(job, {GOOD: "x"})
    assert answer.startswith("refused: git push: ")
    assert "job" not in answer.replace("jobset", "")
    config = Path(".git/config").read_text()
    assert "extraheader" not in config
