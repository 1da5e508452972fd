"""apply and drift under act, with a script that answers for the cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.acting import Actions
from tests.workflows.fake_github import NAME, Pull

pytestmark = pytest.mark.workflows

VARIABLES = {
    "WORKLOAD_IDENTITY_PROVIDER": "projects/1/locations/global/workloadIdentityPools/github/providers/github",
    "READ_SERVICE_ACCOUNT_TEST": "read-test@example-project.iam.gserviceaccount.com",
    "READ_SERVICE_ACCOUNT_PROD": "read-prod@example-project.iam.gserviceaccount.com",
    "APPLY_SERVICE_ACCOUNT": "apply@example-project.iam.gserviceaccount.com",
}
APPLY, READ_TEST, READ_PROD = (
    VARIABLES[name] for name in ("APPLY_SERVICE_ACCOUNT", "READ_SERVICE_ACCOUNT_TEST", "READ_SERVICE_ACCOUNT_PROD")
)
CALLS = """
echo "$STANDIN_ACCOUNT $STANDIN_CLUSTER $*" >> "$STANDIN_FOLDER/calls"
case "$*" in *--dry-run*) kind=plan ;; *) kind=$1 ;; esac
answer="$STANDIN_FOLDER/$kind-$3"
if [ ! -e "$answer" ]; then echo "no answer from the cluster" >&2; exit 1; fi
cat "$answer"
exit "$(cat "$answer.code" 2>/dev/null || echo 0)"
"""
PLACES = {"test": "example-project/us-central1/tpu-test", "prod": "example-project/us-central1/tpu-prod"}


@pytest.fixture
def answers(actions: Actions, tmp_path: Path) -> Path:
    """The folder with what `renderer apply` and `renderer drift` answer instead of asking a cluster."""
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "script").write_text(CALLS)
    actions.variables = VARIABLES
    actions.environment = {"STANDIN_CALLS": str(folder / "script"), "STANDIN_FOLDER": str(folder)}
    return folder


def answer(folder: Path, name: str, text: str, code: int = 0) -> None:
    (folder / name).write_text(text)
    (folder / f"{name}.code").write_text(str(code))


def calls(folder: Path) -> list[str]:
    """Return who asked which cluster for what, in no order."""
    return sorted((folder / "calls").read_text().splitlines()) if (folder / "calls").exists() else []


def push(actions: Actions, number: int) -> dict[str, Any]:
    """Merge a pull request, and return the event."""
    origin = actions.origin
    before = origin.git("rev-parse", "main")
    origin.git("commit", "--quiet", "--allow-empty", "--message", f"Merge {number}")
    sha = origin.push("main")
    origin.github.pulls.append(Pull(number, f"b{number}", "mallory/runs", sha="0" * 40, state="closed", merged=sha))
    repository = {"full_name": NAME, "name": "runs", "default_branch": "main", "owner": {"login": "acme"}}
    return {"ref": "refs/heads/main", "before": before, "after": sha, "repository": repository}


def test_only_the_environment_with_something_to_do_is_applied_to(actions: Actions, answers: Path) -> None:
    answer(answers, "plan-test", '{"empty": false}')
    answer(answers, "plan-prod", '{"empty": true}')
    answer(answers, "apply-test", "<!-- renderer apply test -->\n1 launched\n")
    ran, _ = actions.run("apply", "push", "main", push(actions, 11))
    assert ran.ok, ran.out
    assert calls(answers) == [
        f"{APPLY} {PLACES['test']} apply --environment test --format md",
        f"{READ_PROD} {PLACES['prod']} apply --environment prod --dry-run --format json",
        f"{READ_TEST} {PLACES['test']} apply --environment test --dry-run --format json",
    ]
    comments = [(entry["pull"], entry["body"]) for entry in actions.origin.github.comments]
    assert comments == [(11, "<!-- renderer apply test -->\n1 launched\n")]


def test_what_is_refused_is_told_and_one_environment_does_not_stop_the_other(actions: Actions, answers: Path) -> None:
    answer(answers, "plan-test", '{"empty": false}', code=1)
    answer(answers, "plan-prod", '{"empty": false}')
    answer(answers, "apply-test", "<!-- renderer apply test -->\n1 refused\n", code=1)
    answer(answers, "apply-prod", "<!-- renderer apply prod -->\n1 queued\n")
    ran, _ = actions.run("apply", "push", "main", push(actions, 11))
    assert not ran.ok, "the refusal is red"
    assert [entry["body"].splitlines()[1] for entry in actions.origin.github.comments] == ["1 queued", "1 refused"]


def test_a_cluster_that_does_not_answer_stops_only_its_own(actions: Actions, answers: Path) -> None:
    answer(answers, "plan-prod", '{"empty": false}')
    answer(answers, "apply-prod", "<!-- renderer apply prod -->\n1 launched\n")
    ran, _ = actions.run("apply", "push", "main", push(actions, 11))
    assert not ran.ok
    assert "no answer from the cluster" in ran.said
    assert [entry["body"].splitlines()[1] for entry in actions.origin.github.comments] == ["1 launched"]


def test_nothing_to_do_asks_for_no_environment(actions: Actions, answers: Path) -> None:
    answer(answers, "plan-test", '{"empty": true}')
    answer(answers, "plan-prod", '{"empty": true}')
    ran, _ = actions.run("apply", "push", "main", push(actions, 11))
    assert ran.ok, ran.out
    assert len(calls(answers)) == 2
    assert not actions.origin.github.comments


@pytest.mark.parametrize(("name", "job"), [("apply", "plan"), ("drift", "compare")])
def test_nothing_runs_from_another_branch(actions: Actions, answers: Path, name: str, job: str) -> None:
    """Only the first job is tried: act, other than GitHub, makes the matrix of a job that is skipped."""
    event = push(actions, 11) | {"ref": "refs/heads/sweep"}
    ran, _ = actions.run(name, "workflow_dispatch", "main", event, job=job)
    assert ran.ok, ran.out
    assert f"[{name}/{job}]" not in ran.out
    assert not calls(answers)


def test_drift_becomes_an_issue_and_is_closed(actions: Actions, answers: Path) -> None:
    found = {"run": "a-1", "about": "spec.suspend", "text": "true, applied was false"}
    answer(answers, "drift-test", json.dumps({"drift": [found], "unknown": [], "notes": []}), code=1)
    answer(answers, "drift-prod", json.dumps({"drift": [], "unknown": [], "notes": []}))
    event = {"repository": push(actions, 11)["repository"]}
    ran, _ = actions.run("drift", "schedule", "main", event)
    assert ran.ok, ran.out
    assert calls(answers) == [
        f"{READ_PROD} {PLACES['prod']} drift --environment prod --format json",
        f"{READ_TEST} {PLACES['test']} drift --environment test --format json",
    ]
    (issue,) = actions.origin.github.issues
    assert "a-1: spec.suspend: true, applied was false\n" in issue["body"]

    answer(answers, "drift-test", json.dumps({"drift": [], "unknown": [], "notes": []}))
    (answers / "drift-prod").unlink()
    ran, _ = actions.run("drift", "schedule", "main", event)
    assert not ran.ok, "prod could not be compared"
    assert issue["state"] == "closed"
