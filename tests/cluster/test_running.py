"""A released run gets all its pods running, one to a host, on the nodes of one slice."""

from __future__ import annotations

import pytest

from tests.cluster.api import core
from tests.cluster.runs import variant
from tests.cluster.sandbox import Sandbox

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(("topology", "hosts", "pools"), [("4x4x4", 16, 2), ("8x8x16", 256, 1)])
def test_all_hosts_run(sandbox: Sandbox, topology: str, hosts: int, pools: int) -> None:
    names = {sandbox.pool(topology) for _ in range(pools)}
    name = sandbox.launch(variant(topology, namespace=sandbox.namespace))
    pods = sandbox.pods(name)
    nodes = [pod["spec"]["nodeName"] for pod in pods]
    assert len(set(nodes)) == hosts
    (used,) = {node.rpartition("-")[0] for node in nodes}
    assert used in names
    assert [pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in pods] == [
        str(index) for index in range(hosts)
    ]


def test_a_held_run_starts_nothing(sandbox: Sandbox) -> None:
    sandbox.pool("2x2x1")
    name = sandbox.hold(variant("2x2x1", namespace=sandbox.namespace))
    assert [job["spec"]["suspend"] for job in sandbox.wait_jobs(1)] == [True]
    assert sandbox.pods(name) == []


def test_claims_are_mounted(sandbox: Sandbox) -> None:
    sandbox.pool("2x2x1")
    run = variant("2x2x1", namespace=sandbox.namespace, volumes={"/data": "data-claim"})
    sandbox.launch(run)
    (claim,) = sandbox.plane.api.items(core(sandbox.namespace, "persistentvolumeclaims"))
    assert claim["status"]["phase"] == "Bound"


def test_a_run_without_room_waits(sandbox: Sandbox) -> None:
    sandbox.pool("2x2x1")
    name = sandbox.launch(variant("2x2x1", namespace=sandbox.namespace))
    other = sandbox.hold(variant("2x2x1", namespace=sandbox.namespace, name="other"))
    sandbox.release(other)
    (pod,) = sandbox.wait_pods(other, 1)
    assert pod["status"]["phase"] == "Pending"
    for running in sandbox.pods(name):
        sandbox.end(running, 0)
    sandbox.wait_running(other, 1)
