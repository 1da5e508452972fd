"""Held and released runs where Kueue is installed."""

from __future__ import annotations

import pytest

from renderer.manifests import HOLD_QUEUE
from tests.cluster.api import wait_for
from tests.cluster.queues import add_queue, workload
from tests.cluster.runs import variant
from tests.cluster.sandbox import QUEUE, Sandbox

pytestmark = pytest.mark.cluster

TOPOLOGY, HOSTS, CHIPS = "2x2x2", 2, 8


def test_with_quota_for_one_the_other_waits(sandbox_with_kueue: Sandbox) -> None:
    sandbox = sandbox_with_kueue
    sandbox.pool(TOPOLOGY)
    sandbox.pool(TOPOLOGY)
    add_queue(sandbox, "training", TOPOLOGY, CHIPS)
    first, second = (
        sandbox.hold(variant(TOPOLOGY, namespace=sandbox.namespace, queue="training", name=name))
        for name in ("first", "second")
    )
    sandbox.hand_over(first, "training")
    sandbox.wait_running(first, HOSTS)
    sandbox.hand_over(second, "training")
    wait_for("a reason to wait", lambda: "insufficient unused quota" in _waiting(sandbox, second))
    assert _waiting(sandbox, second) == (
        "couldn't assign flavors to pod set slice-job: insufficient unused quota for google.com/tpu in flavor "
        f"{sandbox.namespace}-training, {CHIPS} more needed"
    )
    assert sandbox.pods(second) == []
    for pod in sandbox.pods(first):
        sandbox.end(pod, 0)
    sandbox.wait_running(second, HOSTS)


def test_a_held_run_stays_held_where_a_default_queue_exists(sandbox_with_kueue: Sandbox) -> None:
    sandbox = sandbox_with_kueue
    sandbox.pool(TOPOLOGY)
    add_queue(sandbox, "default", TOPOLOGY, CHIPS)
    name = sandbox.hold(variant(TOPOLOGY, namespace=sandbox.namespace))
    wait_for("Kueue's answer", lambda: _waiting(sandbox, name))
    assert _waiting(sandbox, name) == f"LocalQueue {HOLD_QUEUE} doesn't exist"
    jobset = sandbox.jobset(name)
    assert jobset["spec"]["suspend"] is True
    assert jobset["metadata"]["labels"][QUEUE] == HOLD_QUEUE


def _waiting(sandbox: Sandbox, name: str) -> str:
    """Return why Kueue lets a run wait, nothing if it does not, or not yet."""
    condition = workload(sandbox, name, "QuotaReserved")
    return condition["message"] if condition and condition["status"] == "False" else ""
