"""After a merge: which environments get a job, what pull requests are told, and issues about drift."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from flow import applied, cluster, drift, plan
from tests.content import Content
from tests.workflows.fake_github import Pull
from tests.workflows.job import Job, said
from tests.workflows.origin import Origin


@pytest.fixture(autouse=True)
def prepared(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.prepare(contents="read", pull_requests="write", issues="write")
    monkeypatch.setenv("GITHUB_RUN_ID", "31")
    monkeypatch.setattr(sys, "argv", ["program", "."])


def output(job: Job) -> list[str]:
    return (job.folder / "output").read_text().splitlines()


def test_only_environments_with_something_to_do_get_a_job(job: Job) -> None:
    Path("plan-test.json").write_text('{"empty": false}')
    Path("plan-prod.json").write_text('{"empty": true}')
    assert said(plan.main) == "something to do in: test"
    Path("plan-test.json").write_text("")
    assert said(plan.main) == "something to do in: no environment"
    assert output(job) == ['environments=["test"]', "environments=[]"]


def test_the_cluster_of_an_environment_is_the_reviewed_one(
    job: Job, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["cluster", "prod"])
    assert said(cluster.main) == "refused: presets/clusters.yml has no cluster for prod"
    monkeypatch.chdir(content.root)
    assert said(cluster.main) == "prod is prod-tpu7x"
    assert output(job) == ["project=example-project", "location=us-central1", "cluster=tpu-prod"]


def test_a_clusters_file_that_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("presets").mkdir()
    Path("presets/clusters.yml").write_text("cluster: {}\n")
    monkeypatch.setattr(sys, "argv", ["cluster", "prod"])
    assert said(cluster.main).startswith("refused: presets/clusters.yml:1")


def merged(job: Job, origin: Origin, number: int, *, before: str = "") -> None:
    """Let main move on by a merge of the pull request, and the job be of that push."""
    old = before or origin.git("rev-parse", "main")
    origin.git("checkout", "--quiet", "main")
    origin.git("commit", "--quiet", "--allow-empty", "--message", f"Merge {number}")
    sha = origin.push("main")
    job.github.pulls.append(Pull(number, f"b{number}", "mallory/runs", sha="0" * 40, state="closed", merged=sha))
    (job.folder / "event.json").write_text(json.dumps({"before": old, "after": sha}))
    job.patch.setenv("GITHUB_SHA", sha)
    job.patch.chdir(origin.root)
    job.patch.setattr(sys, "argv", ["applied", str(job.folder)])


def test_every_merged_pull_request_is_told_once_per_environment(job: Job, origin: Origin) -> None:
    first = origin.git("rev-parse", "main")
    merged(job, origin, 11)
    merged(job, origin, 12, before=first)
    (job.folder / "applied-prod.md").write_text("1 launched\n")
    (job.folder / "applied-test.md").write_text("1 queued\n")
    assert said(applied.main) == (
        "commented on pull request 12; commented on pull request 12; "
        "commented on pull request 11; commented on pull request 11"
    )
    assert [(entry["pull"], entry["body"]) for entry in job.github.comments[:2]] == [
        (12, "<!-- renderer apply prod -->\n1 launched\n"),
        (12, "<!-- renderer apply test -->\n1 queued\n"),
    ]
    (job.folder / "applied-prod.md").unlink()
    (job.folder / "applied-test.md").write_text("1 launched\n")
    assert said(applied.main) == "updated the comment on pull request 12; updated the comment on pull request 11"
    assert len(job.github.comments) == 4


@pytest.mark.parametrize("before", ["0" * 40, "", None])
def test_without_an_earlier_commit_only_the_last_counts(job: Job, origin: Origin, before: str | None) -> None:
    merged(job, origin, 11)
    merged(job, origin, 12)
    (job.folder / "event.json").write_text(json.dumps({"before": before} if before is not None else {}))
    (job.folder / "applied-test.md").write_text("x\n")
    assert said(applied.main) == "commented on pull request 12"


def test_an_apply_that_said_nothing_has_failed(job: Job, origin: Origin) -> None:
    merged(job, origin, 11)
    (job.folder / "applied-test.md").write_text("")
    assert said(applied.main) == "commented on pull request 11"
    assert job.github.comments[0]["body"] == (
        "<!-- renderer apply test -->\n### Applying to `test` failed\n\n"
        f"Why is in the log: {job.github.url}/acme/runs/actions/runs/31\n"
    )


def test_a_push_without_a_pull_request_is_told_to_nobody(job: Job, origin: Origin) -> None:
    merged(job, origin, 11)
    job.github.pulls.clear()
    assert said(applied.main) == "nothing: the push merged no pull request"


def found(environment: str, *texts: str, notes: tuple[str, ...] = ()) -> None:
    entries = [{"run": "a-1", "about": "spec", "text": text} for text in texts]
    data = {"drift": entries, "unknown": [], "notes": notes}
    Path(f"drift-{environment}.json").write_text(json.dumps(data))


def test_drift_is_one_issue_that_is_updated_and_closed(job: Job) -> None:
    found("test", "one", notes=("behind",))
    found("prod")
    assert said(drift.main) == "no drift in prod; opened an issue about test"
    (issue,) = job.github.issues
    assert issue["title"] == "Drift in test"
    assert issue["body"] == (
        "<!-- renderer drift test -->\n"
        "`renderer drift --environment test` found that the cluster is not as it was applied:\n\n"
        "```text\na-1: spec: one\nnote: behind\n```\n\n"
        f"Found by {job.github.url}/acme/runs/actions/runs/31. "
        "This issue is closed when there is no drift any more.\n"
    )
    found("test", "two")
    assert said(drift.main) == "no drift in prod; updated the issue about test"
    assert "a-1: spec: two\n" in job.github.issues[0]["body"]
    found("test")
    assert said(drift.main) == "no drift in prod; no drift in test"
    assert [issue["state"] for issue in job.github.issues] == ["closed"]
    found("test", "three")
    assert said(drift.main) == "no drift in prod; opened an issue about test"
    assert len(job.github.issues) == 2


def test_issues_of_others_are_left_alone(job: Job) -> None:
    other = {"number": 1, "title": "Drift in test", "body": "<!-- renderer drift test -->", "state": "open"}
    job.github.issues.append({**other, "labels": [{"name": "drift"}], "user": {"login": "mallory"}})
    found("test", "one")
    assert said(drift.main) == "opened an issue about test"


def test_text_from_the_cluster_stays_text(job: Job) -> None:
    found("test", "````\n# H @acme/all <img src=x>", *(f"{number} {'x' * 500}" for number in range(400)))
    assert said(drift.main) == "opened an issue about test"
    body = job.github.issues[0]["body"]
    lines = body.splitlines()
    assert lines[3] == "`````text"
    assert lines[4] == "a-1: spec: ```` # H @acme/all <img src=x>"
    assert lines[-4] == "and 201 more"
    assert lines[-3] == "`````"
    assert len(body) < 65_536
