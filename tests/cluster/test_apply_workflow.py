"""The apply and drift workflows under act, on a real control plane."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from renderer.cluster.api import core
from tests.cluster.applied import applying
from tests.cluster.sandbox import Sandbox
from tests.content import SHIPPED, Content
from tests.repository import MODEL
from tests.workflows.acting import Actions
from tests.workflows.fake_github import NAME, Pull
from tests.workflows.fake_server import serve
from tests.workflows.origin import install, make_origin

pytestmark = pytest.mark.cluster

VARIABLES = {
    "WORKLOAD_IDENTITY_PROVIDER": "any",
    "READ_SERVICE_ACCOUNT_TEST": "read-test",
    "READ_SERVICE_ACCOUNT_PROD": "read-prod",
    "APPLY_SERVICE_ACCOUNT": "apply",
}
REPOSITORY = {"full_name": NAME, "name": "runs", "default_branch": "main", "owner": {"login": "acme"}}


def fill(content: Content, control: str) -> None:
    """Add what the workflows run, with the test's own control namespace."""
    for name in ("renderer", "pod", ".github"):
        shutil.copytree(SHIPPED / name, content.root / name, ignore=shutil.ignore_patterns("__pycache__"))
    install(content)
    content.edit("renderer/cluster/ledger.py", 'CONTROL = "renderer-control"\n', f'CONTROL = "{control}"\n')


def test_a_merge_is_launched_once_and_told(sandbox: Sandbox, control: str, tmp_path: Path) -> None:
    with serve(tmp_path / "server") as github, applying(sandbox, tmp_path / "clone") as applied:
        content = applied.merges.content
        fill(content, control)
        origin = make_origin(content, github)
        assert applied.run("--adopt", environment="prod").code == 0
        kubeconfig = {"STANDIN_KUBECONFIG": str(sandbox.plane.kubeconfig)}
        actions = Actions(origin, tmp_path / "runs", variables=VARIABLES, environment=kubeconfig)

        before = origin.git("rev-parse", "HEAD")
        applied.write("first")
        applied.write("second")
        sha = origin.push("main")
        github.pulls.append(Pull(11, "b", "mallory/runs", sha="0" * 40, state="closed", merged=sha))
        event = {"ref": "refs/heads/main", "before": before, "after": sha, "repository": REPOSITORY}
        ran, _ = actions.run("apply", "push", "main", event)
        assert ran.ok, ran.out
        names = sorted(item["metadata"]["name"] for item in sandbox.jobsets())
        assert applied.started() == names
        assert [name.partition("-")[0] for name in names] == ["first", "second"]
        (comment,) = github.comments
        assert comment["pull"] == 11
        assert comment["body"].startswith("<!-- renderer apply test -->\n### Applied to `test`: 2 launched.\n")
        assert all(f"- `{MODEL}/{name}` `" in comment["body"] for name in ("first", "second"))
        assert {entry.actor for entry in applied.store.entries()} == {"nektos/act"}

        # again: nothing is planned, so no job may write, and nothing is told twice
        ran, _ = actions.run("apply", "workflow_dispatch", "main", {**event, "before": ""}, job="plan")
        assert ran.ok, ran.out
        assert "something to do in: no environment" in ran.said
        assert sorted(item["metadata"]["name"] for item in sandbox.jobsets()) == names

        ran, _ = actions.run("drift", "schedule", "main", {"repository": REPOSITORY})
        assert ran.ok, ran.out
        assert not github.issues
        sandbox.plane.api.delete(core(sandbox.namespace, "configmaps", f"run-{names[0]}"))
        ran, _ = actions.run("drift", "schedule", "main", {"repository": REPOSITORY})
        assert ran.ok, ran.out
        (issue,) = github.issues
        assert issue["title"] == "Drift in test"
        assert names[0] in issue["body"]
