"""What the rendered failure policy does with each way a run can end, on the real controllers."""

from __future__ import annotations

from typing import Any

import pytest

from renderer.outputs import Rendered
from tests.cluster.api import Object, jobsets, wait_for
from tests.cluster.runs import variant
from tests.cluster.sandbox import Sandbox, job_failures

pytestmark = pytest.mark.cluster

TOPOLOGY = "2x2x2"
HOSTS = 2


def test_a_configuration_error_fails_the_run_at_once(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=3)
    sandbox.end(sandbox.pods(name)[1], 2)
    failed = sandbox.wait_condition(name, "Failed")
    assert failed["reason"] == "FailJobSetFailurePolicyAction"
    assert _restarts(sandbox, name) == (0, 0)
    (job,) = sandbox.jobs()
    reason, message = _failure(job)
    assert reason == "PodFailurePolicy"
    assert message.endswith(" failed with exit code 2 matching FailJob rule at index 0")


def test_a_crash_restarts_and_counts_until_no_restart_is_left(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=1)
    _end_and_wait(sandbox, name, 1)
    assert _restarts(sandbox, name) == (1, 1)
    sandbox.end(sandbox.pods(name)[0], 1)
    failed = sandbox.wait_condition(name, "Failed")
    assert failed["reason"] == "ReachedMaxRestarts"
    assert _restarts(sandbox, name) == (1, 1)


def test_maintenance_restarts_without_using_up_restarts(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=0)
    for count in (1, 2):
        _end_and_wait(sandbox, name, 143, disrupted=True)
        assert _restarts(sandbox, name) == (count, 0)
    assert "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction" in sandbox.events(name)


@pytest.mark.usefixtures("only_own")
def test_the_words_that_the_rules_match(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=1)
    pods = []
    for exit_code in (143, 1, 2):
        pods.append(sandbox.pods(name)[0])
        _end_and_wait(sandbox, name, exit_code) if exit_code != 2 else sandbox.end(pods[-1], exit_code)
    sandbox.wait_condition(name, "Failed")
    first, _, last = (f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods)
    assert job_failures(sandbox.plane, sandbox.namespace) == [
        (
            "PodFailurePolicy",
            f"Container trainer for pod {first} failed with exit code 143 matching FailJob rule at index 1",
        ),
        ("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
        (
            "PodFailurePolicy",
            f"Container trainer for pod {last} failed with exit code 2 matching FailJob rule at index 0",
        ),
    ]


def test_an_evicted_pod_counts_as_maintenance(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=0)
    old = sandbox.pods(name)
    sandbox.evict(old[1])
    sandbox.wait_running(name, HOSTS, not_among=old)
    assert _restarts(sandbox, name) == (1, 0)


def test_a_suspended_run_did_not_fail(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=0)
    sandbox.plane.api.patch(jobsets(sandbox.namespace, name), {"spec": {"suspend": True}})
    wait_for("the end of its pods", lambda: not sandbox.pods(name))
    sandbox.release(name)
    sandbox.wait_running(name, HOSTS)
    assert _restarts(sandbox, name) == (0, 0)


def test_a_lost_node_restarts_and_counts(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=1)
    old = sandbox.pods(name)
    sandbox.replace_node(old[1])
    sandbox.wait_running(name, HOSTS, seconds=150, not_among=old)
    assert _restarts(sandbox, name) == (1, 1)


def test_the_time_limit_fails_the_run(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=3, max_seconds=5)
    failed = sandbox.wait_condition(name, "Failed")
    assert failed["reason"] == "FailJobSetFailurePolicyAction"
    assert _restarts(sandbox, name) == (0, 0)
    (job,) = sandbox.jobs()
    assert _failure(job) == ("DeadlineExceeded", "Job was active longer than specified deadline")


def test_a_run_that_ends_well_is_removed_after_its_time(sandbox: Sandbox) -> None:
    name = _launch(sandbox, max_restarts=0, ttl_seconds=5)
    for pod in sandbox.pods(name):
        sandbox.end(pod, 0)
    assert sandbox.wait_condition(name, "Completed")["reason"] == "AllJobsCompleted"
    wait_for("removal", lambda: not sandbox.jobsets(), 30)


def _launch(sandbox: Sandbox, **changes: Any) -> str:
    run: Rendered = variant(TOPOLOGY, namespace=sandbox.namespace, **changes)
    sandbox.pool(TOPOLOGY)
    return sandbox.launch(run)


def _end_and_wait(sandbox: Sandbox, name: str, exit_code: int, *, disrupted: bool = False) -> None:
    old = sandbox.pods(name)
    sandbox.end(old[0], exit_code, disrupted=disrupted)
    sandbox.wait_running(name, HOSTS, not_among=old)


def _restarts(sandbox: Sandbox, name: str) -> tuple[int, int]:
    """Return how often the run restarted, and how many of those count against maxRestarts."""
    status = sandbox.jobset(name)["status"]
    return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)


def _failure(job: Object) -> tuple[str, str]:
    conditions = job["status"]["conditions"]
    return next((item["reason"], item["message"]) for item in conditions if item["type"] == "Failed")
