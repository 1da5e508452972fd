"""A pull request from its first push to the comment, with the real workflows under act."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.repository import PROD
from tests.workflows.acting import Actions
from tests.workflows.archives import zip_file, zipped
from tests.workflows.fake_github import FORK, NAME, Pull, Run
from tests.workflows.job import app_key

pytestmark = pytest.mark.workflows

RENDERED = [f"rendered/test/qwen3-0.6b/second/{name}" for name in ("derive.json", "jobset.yml", "run.yml")]


def test_an_experiment_alone_is_rendered_and_reported(actions: Actions) -> None:
    origin, github = actions.origin, actions.origin.github
    origin.branch("sweep")
    origin.content.experiment("second", model="qwen3-0.6b")
    head = origin.push("sweep")
    pull = Pull(7, "sweep")
    github.pulls.append(pull)

    checked, run = actions.check(pull)
    assert not checked.ok, "nothing is rendered yet"
    assert list(github.artifacts[run.id]) == ["changes", "report", "report-html"]

    rendered = actions.follow("render", run, "failure")
    assert rendered.ok, rendered.out
    new = github.head(pull)
    assert github.git("rev-parse", f"{new}^") == head
    assert origin.changed(head, new) == RENDERED
    assert github.git("log", "-1", "--format=%an <%ae>%n%B", new) == (
        "github-actions[bot] <41898282+github-actions[bot]@users.noreply.github.com>\n"
        f"Render 3 files\n\nRendered-From: {head}"
    )
    assert github.statuses == [
        {
            "sha": new,
            "state": "success",
            "target_url": f"{github.url}/{NAME}/actions/runs/{run.id}",
            "description": f"rendered from {head[:12]}",
            "context": "check",
        }
    ]

    # the report of the commit that was rendered still finds its pull request
    reported = actions.follow("report", run, "failure")
    assert reported.ok, reported.out
    (comment,) = github.comments
    lines = comment["body"].splitlines()
    assert lines[:2] == ["<!-- renderer report -->", "### On merge: 1 launch (64 chips)."]
    assert lines[-2].startswith(f"`{head[:12]}` into `origin/main` at "), "a commit that the server has"
    assert f"{github.url}/{NAME}/actions/runs/{run.id}#artifacts" in lines[-1]

    # a second run of everything, on the commit made here
    checked, run = actions.check(pull)
    assert checked.ok, checked.out
    assert list(github.artifacts[run.id]) == ["report", "report-html"]
    rendered = actions.follow("render", run)
    assert rendered.ok
    assert f"run {run.id} has no artifact changes" in rendered.out
    assert github.head(pull) == new
    reported = actions.follow("report", run)
    assert reported.ok, reported.out
    assert len(github.comments) == 1
    assert f"runs/{run.id}#artifacts" in comment["body"]
    assert len(github.statuses) == 1


def test_what_a_merge_would_refuse_stays_red(actions: Actions) -> None:
    """An edit in prod that does not say what becomes of the run it replaces, and nobody has an App."""
    origin, github = actions.origin, actions.origin.github
    origin.content.experiment("big", model="qwen3-0.6b", launch=PROD)
    assert origin.content.run("render").code == 0
    origin.push("main")
    origin.branch("edit")
    origin.content.experiment("big", model="qwen3-0.6b", launch=PROD, maxtext={"steps": 77})
    origin.push("edit")
    github.pulls.append(Pull(7, "edit"))
    _, run = actions.check(github.pulls[0])
    rendered = actions.follow("render", run, "failure")
    assert rendered.ok, rendered.out
    assert [(status["context"], status["state"]) for status in github.statuses] == [("check", "failure")]
    checked, _ = actions.check(github.pulls[0])
    assert not checked.ok, "as check itself says of that commit"


def test_a_repository_without_experiments_is_checked(actions: Actions) -> None:
    origin = actions.origin
    for name in ("experiments", "rendered"):
        shutil.rmtree(origin.root / name)
    origin.push("main")
    origin.branch("presets")
    origin.content.edit("presets/qwen3-0.6b/model.yml", "\nmaxtext:\n", "\nmaxtext:\n  learning_rate: 1.5e-3\n")
    origin.push("presets")
    checked, run = actions.check(Pull(7, "presets"))
    assert checked.ok, checked.out
    assert list(origin.github.artifacts[run.id]) == ["report", "report-html"]


def test_a_fork_is_checked_and_reported_and_nothing_is_written(actions: Actions) -> None:
    origin, github = actions.origin, actions.origin.github
    origin.branch("fork")
    origin.content.experiment("second", model="qwen3-0.6b")
    pull = Pull(8, "sweep", FORK, sha=origin.push_fork(8))
    github.pulls.append(pull)
    before = github.git("for-each-ref")

    checked, run = actions.check(pull)
    assert not checked.ok
    assert list(github.artifacts[run.id]) == ["report", "report-html"]
    report = json.loads(zip_file(github.artifacts[run.id]["report"]))
    assert [row["effect"] for row in report["rows"]] == ["refuse"], "it says what a merge as it is would do"

    rendered = actions.follow("render", run, "failure")
    assert rendered.ok
    assert "[render/commit]" not in rendered.out, "the job is skipped"
    reported = actions.follow("report", run, "failure")
    assert reported.ok, reported.out
    assert [comment["pull"] for comment in github.comments] == [8]
    assert github.git("for-each-ref") == before
    assert not github.statuses


CANARY = """
import os, pathlib
pathlib.Path(os.environ["STANDIN_CANARY"], os.environ["GITHUB_JOB"]).touch()
"""
"""Put into a module of the branch, it leaves the name of every job that runs it."""


def test_a_branch_cannot_change_what_the_trusted_jobs_run(actions: Actions, tmp_path: Path) -> None:
    origin, github = actions.origin, actions.origin.github
    canary = tmp_path / "canary"
    canary.mkdir()
    actions.environment = {"STANDIN_CANARY": str(canary)}
    actions.variables = {"RENDERER_APP_ID": "12"}
    actions.secrets = {"RENDERER_APP_KEY": app_key(github)}
    origin.branch("evil")
    origin.content.experiment("second", model="qwen3-0.6b")
    for path in ("renderer/cli.py", ".github/scripts/flow/__init__.py", ".github/scripts/flow/hub.py"):
        file = origin.root / path
        text = file.read_text()
        future = "from __future__ import annotations\n"
        file.write_text(text.replace(future, future + CANARY) if future in text else text + CANARY)
    for name in ("render", "report"):
        origin.content.write(f".github/workflows/{name}.yml", EVIL.replace("NAME", name))
    origin.content.edit(
        ".github/workflows/check.yml", "run: make install", "run: make install && env && cat .git/config"
    )
    origin.content.edit("Makefile", "\t@mkdir", "\t@touch $(STANDIN_CANARY)/make-$(GITHUB_JOB)\n\t@mkdir")
    head = origin.push("evil")
    pull = Pull(9, "evil")
    github.pulls.append(pull)

    checked, run = actions.check(pull)
    assert sorted(path.name for path in canary.iterdir()) == ["check", "make-check"], "the canary sings where it may"
    assert "PRIVATE KEY" not in checked.out
    assert "extraheader" not in checked.out
    rendered, reported = actions.follow("render", run, "failure"), actions.follow("report", run, "failure")
    assert rendered.ok, rendered.out
    assert reported.ok, reported.out
    assert sorted(path.name for path in canary.iterdir()) == ["check", "make-check"]
    assert origin.changed(head, github.head(pull)) == RENDERED
    assert not github.statuses, "the App's push starts check by itself"
    assert [comment["pull"] for comment in github.comments] == [9]


EVIL = """
name: NAME
on: {workflow_run: {workflows: [check], types: [completed]}}
jobs:
  commit:
    runs-on: ubuntu-latest
    steps:
      - run: touch "$STANDIN_CANARY/workflow"
"""


def test_hostile_artifacts_change_nothing_but_the_color(actions: Actions) -> None:
    origin, github = actions.origin, actions.origin.github
    origin.branch("evil")
    sha = origin.push("evil")
    pull = Pull(9, "evil")
    github.pulls.append(pull)
    run = Run(77, sha, "evil")
    github.runs[77] = run
    before = github.git("for-each-ref")
    escaping = json.dumps(
        {"head": sha, "base": "main", "files": {"rendered/../Makefile": "install:\n\ttouch /tmp/x\n"}}
    ).encode()

    github.artifacts[77] = {"changes": zipped({"changes.json": escaping}), "report": bytes(10 << 20)}
    rendered, reported = actions.follow("render", run), actions.follow("report", run)
    assert not rendered.ok
    assert "'rendered/../Makefile' is not a path that may be written" in rendered.out
    assert not reported.ok
    assert "artifact report has 10,485,760 bytes, more than 8,388,608" in reported.out

    github.artifacts[77] = {"report": zipped({"report.json": b'{"number": 1, "body": "@acme/all"}'})}
    reported = actions.follow("report", run)
    assert not reported.ok
    assert "report.json: " in reported.out
    assert github.git("for-each-ref") == before
    assert not github.comments
    assert not github.statuses


def test_a_merge_queue_checks_the_digests(actions: Actions) -> None:
    origin = actions.origin
    event = {
        "action": "checks_requested",
        "repository": {"full_name": NAME, "default_branch": "main"},
        "merge_group": {"base_ref": "refs/heads/main"},
    }
    origin.branch("queue")
    sha = origin.push("queue")
    checked, _ = actions.run("check", "merge_group", sha, event)
    assert checked.ok, checked.out
    assert not origin.github.artifacts

    origin.content.edit("rendered/test/qwen3-0.6b/first/run.yml", "steps: 20", "steps: 21")
    sha = origin.push("queue")
    checked, _ = actions.run("check", "merge_group", sha, event)
    assert not checked.ok
    assert "rendered/test/qwen3-0.6b/first/jobset.yml: its files digest is not that of the run's files" in checked.said
