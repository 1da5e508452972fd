"""The job that comments: which pull request it finds, and what may come of hostile data."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from github import BadCredentialsException, GithubException
from markdown_it import MarkdownIt

from flow import comments, hub, report
from flow.commit import message
from tests.content import SHIPPED, Content
from tests.content import run as renderer
from tests.workflows.archives import reported, zipped
from tests.workflows.fake_github import FORK, GitHub, Pull, Token
from tests.workflows.job import Job, said
from tests.workflows.origin import Origin, make_origin

HOSTILE = (
    "**bold** [x](https://evil.example) "
    "![](https://evil.example/p.png) <img src=x onerror=alert(1)> @acme/all `\n\n# H\n"
    "<!-- renderer report -->"
)


@pytest.fixture(autouse=True)
def prepared(job: Job) -> None:
    job.prepare(actions="read", contents="read", pull_requests="write")


@pytest.fixture
def genuine(whole: Path, tmp_path: Path) -> Any:
    """A report as the check of a branch makes it, of two launches."""
    content = Content(tmp_path / "genuine")
    shutil.copytree(whole, content.root)
    origin = make_origin(content, GitHub(tmp_path / "other"))
    content.experiment("second", model="qwen3-0.6b")
    content.experiment("third", model="qwen3-0.6b", maxtext={"steps": 7})
    assert content.run("render").code == 0
    origin.commit()
    ran = content.run("report", "--base", "HEAD~1", "--format", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def fetched(job: Job, artifact: bytes, monkeypatch: pytest.MonkeyPatch, pull: Pull | None = None) -> str:
    pull = pull or job.github.pulls[0]
    job.follow(pull, job.github.head(pull), {"report": artifact})
    monkeypatch.setattr(sys, "argv", ["report", "fetch", str(job.folder / "report.json")])
    return said(report.main)


def posted(job: Job, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    file = job.folder / "comment.md"
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["report", "post", str(file)])
    return said(report.main)


def bodies(job: Job) -> list[str]:
    return [entry["body"] for entry in job.github.comments]


def test_one_comment_is_written_and_then_updated(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetched(job, reported(), monkeypatch).endswith("for pull request 7")
    assert (job.folder / "output").read_text() == "found=true\n"
    assert posted(job, f"{comments.REPORT}\none\n", monkeypatch) == "commented on pull request 7"
    assert posted(job, f"{comments.REPORT}\none\n", monkeypatch) == "the comment on pull request 7 says so already"
    assert posted(job, f"{comments.REPORT}\ntwo\n", monkeypatch) == "updated the comment on pull request 7"
    assert bodies(job) == [f"{comments.REPORT}\ntwo\n"]


def test_comments_of_others_are_left_alone(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.github.page = 2
    job.github.comment(7, f"{comments.REPORT}\nforged", "mallory")
    job.github.comment(7, "a question", "github-actions[bot]")
    job.github.comment(7, f"about {comments.REPORT}\n", "github-actions[bot]")
    mine = job.github.comment(7, f"{comments.REPORT}\r\nold")
    fetched(job, reported(), monkeypatch)
    assert posted(job, f"{comments.REPORT}\nnew", monkeypatch) == "updated the comment on pull request 7"
    assert mine["body"] == f"{comments.REPORT}\nnew"
    assert len(job.github.comments) == 4


def test_a_comment_that_is_too_long_is_refused_here_and_there(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched(job, reported(), monkeypatch)
    long = f"{comments.REPORT}\n" + "x" * 70_000
    assert posted(job, long, monkeypatch) == "refused: a comment of 70,025 characters is too long"
    monkeypatch.setattr(comments, "MAX_COMMENT", 10**6)
    with pytest.raises(GithubException, match="body is too long"):
        posted(job, long, monkeypatch)


def test_a_fork_gets_its_comment(job: Job, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    pull = Pull(8, "sweep", FORK, sha=origin.push_fork(8))
    job.github.pulls.append(pull)
    fetched(job, reported(), monkeypatch, pull)
    assert posted(job, f"{comments.REPORT}\n", monkeypatch) == "commented on pull request 8"


def test_the_report_names_the_commit_that_was_pushed(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one that its job made of the rendered files, which no server has."""
    fetched(job, reported(), monkeypatch)
    code, out, err = renderer(SHIPPED, "report", "--from-json", str(job.folder / "report.json"), "--format", "md")
    assert code == 0, err
    assert f"\n`{job.github.head(job.github.pulls[0])[:12]}` into `origin/main` at `bbbbbbbbbbbb`; " in out


def test_a_report_against_another_branch_is_of_another_pull_request(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have one head, so the run may be of either."""
    job.github.git("branch", "release", "main")
    job.github.pulls.append(Pull(9, "sweep", base="release"))
    assert fetched(job, reported("release"), monkeypatch) == (
        "nothing: run 5000 is against release, and pull request 7 goes into main"
    )
    assert not (job.folder / "output").exists()
    assert fetched(job, reported(), monkeypatch).endswith("for pull request 7")


def test_what_is_no_report_is_refused(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = json.dumps({"number": 1, "pull_request": 1, "pull_requests": [{"number": 1}]}).encode()
    assert fetched(job, zipped({"report.json": forged}), monkeypatch).startswith(
        "refused: report.json: is not a report"
    )
    assert not (job.folder / "output").exists()


def test_no_number_of_the_artifact_or_the_event_is_believed(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.github.pulls.append(Pull(1, "other", FORK, sha="0" * 40))
    fetched(job, reported(), monkeypatch)
    event = json.loads((job.folder / "event.json").read_text())
    event["workflow_run"] |= {"pull_requests": [{"number": 1}], "head_sha": "0" * 40, "head_branch": "other"}
    (job.folder / "event.json").write_text(json.dumps(event))
    assert posted(job, f"{comments.REPORT}\n", monkeypatch) == "commented on pull request 7"
    assert [entry["pull"] for entry in job.github.comments] == [7]


def test_the_right_one_is_found_among_many_on_several_pages(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ignores the filters must not matter."""
    job.github.page = 2
    job.github.pulls[:0] = [Pull(number, f"b{number}", FORK, sha="0" * 40) for number in range(20, 27)]
    monkeypatch.setattr(
        "tests.workflows.fake_github.Api.list_pulls", lambda api: [api._pull(pull) for pull in api.github.pulls]
    )
    answer = fetched(job, reported(), monkeypatch, job.github.pulls[-1])
    assert answer.endswith("for pull request 7")


def test_the_same_commit_elsewhere_is_another_pull_request(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    sha, sweep = job.github.head(job.github.pulls[0]), job.github.pulls[0]
    job.github.git("branch", "twin", sha)
    elsewhere = [Pull(1, "sweep", FORK, sha=sha), Pull(2, "sweep", base="release"), Pull(3, "twin")]
    others = [*elsewhere, Pull(4, "sweep", state="closed")]
    job.github.pulls[:0] = others
    job.github.filters = False
    assert fetched(job, reported(), monkeypatch, sweep).endswith("for pull request 7")
    job.github.pulls.remove(sweep)
    assert fetched(job, reported(), monkeypatch, sweep).startswith("nothing: no open pull request")


def test_a_commit_that_only_says_it_is_a_rendering_is_not_taken_for_one(
    job: Job, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = job.github.head(job.github.pulls[0])
    origin.git("commit", "--quiet", "--allow-empty", "--message", "between")
    origin.git("commit", "--quiet", "--allow-empty", "--message", message(old, 1))
    origin.git("push", "--quiet", str(job.github.bare), "HEAD:sweep")
    job.follow(job.github.pulls[0], old, {"report": reported()})
    monkeypatch.setattr(sys, "argv", ["report", "fetch", "report.json"])
    assert said(report.main) == f"nothing: no open pull request into main has {old} as its head"


@pytest.mark.parametrize("about", [{"repository": None}, {"event": "merge_group"}])
def test_runs_without_a_pull_request_are_left_alone(
    job: Job, monkeypatch: pytest.MonkeyPatch, about: dict[str, Any]
) -> None:
    run = job.follow(job.github.pulls[0], job.github.head(job.github.pulls[0]), {"report": b""})
    for key, value in about.items():
        setattr(run, key, value)
    monkeypatch.setattr(sys, "argv", ["report", "fetch", "report.json"])
    assert said(report.main).startswith("nothing: ")


def test_an_unknown_commit_or_token_is_githubs_to_refuse(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GithubException, match="No commit found"):
        assert hub.repository("job").get_commit("0" * 40).parents
    with pytest.raises(GithubException, match="Not Found"):
        hub.repository("job").get_git_commit("0" * 40)
    monkeypatch.setenv("GITHUB_TOKEN", "stolen")
    with pytest.raises(BadCredentialsException):
        fetched(job, b"", monkeypatch)
    job.github.tokens["poor"] = Token(permissions={"actions": "read"})
    monkeypatch.setenv("GITHUB_TOKEN", "poor")
    with pytest.raises(GithubException, match="Resource not accessible by integration"):
        fetched(job, b"", monkeypatch)


def replaced(data: Any) -> Any:
    """Return the data with every text replaced."""
    if isinstance(data, dict):
        return {key: replaced(value) for key, value in data.items()}
    if isinstance(data, list):
        return [replaced(item) for item in data]
    return HOSTILE if isinstance(data, str) else data


def spoilt(data: Any) -> Iterator[Any]:
    """Yield the data with one of its values spoilt, for each of them."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        changed = dict(data) if isinstance(data, dict) else list(data)
        for spoilt_value in (replaced(value), *spoilt(value)):
            changed[key] = spoilt_value
            yield changed


def markup(text: str) -> set[str]:
    """Return the kinds of markup that a text has beyond the report's own."""
    found = [
        child
        for token in MarkdownIt("commonmark").enable("table").parse(text)
        for child in [token, *(token.children or ())]
    ]
    links = {str(token.attrs["href"]) for token in found if token.type == "link_open"}
    html = {token.content.strip() for token in found if token.type.startswith("html")}
    return {token.type for token in found if token.type == "image"} | links | (html - {comments.REPORT})


def test_markup_in_any_field_is_refused_or_harmless(job: Job, monkeypatch: pytest.MonkeyPatch, genuine: Any) -> None:
    taken = 0
    for data in [replaced(genuine), *spoilt(genuine)]:
        file = job.folder / "hostile.json"
        file.write_text(json.dumps(data))
        code, out, err = renderer(SHIPPED, "report", "--from-json", str(file), "--format", "md")
        if code:
            assert err.startswith("hostile.json: "), err
        else:
            taken += 1
            assert not markup(out)
            assert out.startswith(f"{comments.REPORT}\n### On merge: ")
    assert taken > 10
    fetched(job, reported(), monkeypatch)
    assert posted(job, out, monkeypatch) == "commented on pull request 7"
