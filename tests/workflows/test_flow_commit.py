"""The job that commits: what it does with what an untrusted job handed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flow import commit
from flow.git import Git
from tests.workflows.archives import reported, zipped
from tests.workflows.fake_github import FORK, Pull
from tests.workflows.job import Job, app_key, not_a_key, said
from tests.workflows.origin import Origin

PERMISSIONS = {"actions": "read", "contents": "write", "pull_requests": "read", "statuses": "write"}
REPORT = reported()
GOOD = "rendered/test/qwen3-0.6b/second/jobset.yml"


@pytest.fixture(autouse=True)
def prepared(job: Job) -> None:
    job.prepare(**PERMISSIONS)


def handed(
    job: Job,
    files: dict[str, Any],
    *,
    head: str = "",
    base: str = "main",
    report: bytes = REPORT,
    **about: Any,
) -> str:
    """Return what the job says of these files, handed over by a run of the branch's head; b"" is no report."""
    pull = job.github.pulls[0]
    sha = about.pop("sha", job.github.head(pull))
    data = json.dumps({"head": head or sha, "base": base, "files": files}).encode()
    artifacts = {"changes": zipped({"changes.json": data}), "report": report}
    job.follow(pull, sha, {name: archive for name, archive in artifacts.items() if archive}, **about)
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


def test_changes_against_another_branch_are_of_another_pull_request(job: Job) -> None:
    """Both have one head, so the run may be of either."""
    job.github.git("branch", "release", "main")
    job.github.pulls.append(Pull(9, "sweep", base="release"))
    before = job.github.git("for-each-ref")
    assert handed(job, {GOOD: "as release has it"}, base="release") == (
        "nothing: run 5000 is against release, and pull request 7 goes into main"
    )
    assert job.github.git("for-each-ref") == before
    assert not job.github.statuses


@pytest.mark.parametrize(
    ("report", "state", "why"),
    [
        (REPORT, "success", ""),
        (reported(refused=2), "failure", "; launches that would be refused: 2"),
        (reported("release"), "failure", "; there is no report of it"),
        (zipped({"report.json": b"{}"}), "failure", "; there is no report of it"),
        (b"no archive", "failure", "; there is no report of it"),
        (b"", "failure", "; there is no report of it"),
    ],
    ids=["allowed", "refused", "of-another-branch", "invalid", "damaged", "missing"],
)
def test_the_commit_gets_the_state_that_check_would_come_to(job: Job, report: bytes, state: str, why: str) -> None:
    old = job.github.head(job.github.pulls[0])
    assert handed(job, {GOOD: "x"}, report=report).startswith("sweep is ")
    (status,) = job.github.statuses
    assert status["sha"] == job.github.head(job.github.pulls[0])
    assert (status["context"], status["state"]) == ("check", state)
    assert status["description"] == f"rendered from {old[:12]}{why}"


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


def amend(origin: Origin, path: str, *, like_the_bot: bool = False) -> str:
    """Change a file in the branch's rendered commit, which keeps its message, and push the commit."""
    origin.git("fetch", "--quiet", str(origin.github.bare), "sweep")
    origin.git("reset", "--quiet", "--hard", "FETCH_HEAD")
    origin.content.write(path, "changed by hand\n")
    origin.git("add", "--all")
    words = ("commit", "--quiet", "--amend", "--no-edit")
    if like_the_bot:
        Git().run("-C", str(origin.root), *words)
    else:
        origin.git(*words)
    origin.git("push", "--quiet", "--force", str(origin.github.bare), "HEAD:refs/heads/sweep")
    return origin.git("rev-parse", "HEAD")


@pytest.mark.parametrize("path", ["experiments/qwen3-0.6b/second.yml", GOOD])
def test_a_rendered_commit_that_a_person_amends_is_rendered_again(job: Job, origin: Origin, path: str) -> None:
    handed(job, {GOOD: "1"})
    sha = amend(origin, path)
    assert handed(job, {GOOD: "2"}).startswith("sweep is ")
    assert job.github.git("rev-parse", "sweep^") == sha


def test_a_commit_of_more_than_rendered_files_is_no_rendering_whoever_it_is_by(job: Job, origin: Origin) -> None:
    old = job.github.head(job.github.pulls[0])
    handed(job, {GOOD: "1"})
    amend(origin, "presets/policy.yml", like_the_bot=True)
    assert handed(job, {GOOD: "2"}, sha=old) == f"nothing: no open pull request into main has {old} as its head"
    assert handed(job, {GOOD: "2"}).startswith("sweep is ")


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
    data = json.dumps({"head": sha, "base": "main", "files": {GOOD: "x"}}).encode()
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


@pytest.mark.parametrize("kind", ["no key", "damaged", "public", "encrypted", "elliptic", "ssh"])
def test_what_is_no_private_key_is_refused_in_one_line(
    job: Job, key: None, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("APP_PRIVATE_KEY", not_a_key(kind))
    assert handed(job, {GOOD: "x"}) == (
        "refused: the secret RENDERER_APP_KEY is no private key: it must hold the App's whole .pem"
    )


@pytest.mark.parametrize(("status", "spoil"), [(401, "key"), (422, "permissions")])
def test_an_app_that_gets_no_token_says_what_to_check(job: Job, key: None, status: int, spoil: str) -> None:
    if spoil == "key":
        app_key(job.github)  # another App's, by now
    else:
        job.github.app_permissions = {"metadata": "read"}
    assert handed(job, {GOOD: "x"}) == (
        f"refused: GitHub gives the App no token (HTTP {status}): check that RENDERER_APP_ID and RENDERER_APP_KEY are "
        "of one App, and that it is installed on this repository and may write its contents"
    )


def test_a_token_that_may_not_write_is_told_and_not_shown(job: Job) -> None:
    job.prepare(**{**PERMISSIONS, "contents": "read"})
    answer = handed(job, {GOOD: "x"})
    assert answer.startswith("refused: git push: ")
    assert "job" not in answer.replace("jobset", "")
    config = Path(".git/config").read_text()
    assert "extraheader" not in config
