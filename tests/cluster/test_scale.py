"""Runs of 256 hosts, from the merge to their removal: a real repository, a real `renderer apply`, real controllers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cluster.api import Object, wait_for
from tests.cluster.merges import Merges, make_merges
from tests.cluster.queues import add_queue
from tests.cluster.sandbox import Sandbox

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("only_own")]

TOPOLOGY, CHIPS, HOSTS = "8x8x16", 1024, 256


def test_a_run_from_merge_to_removal(sandbox: Sandbox, tmp_path: Path) -> None:
    merges = _merges(sandbox, tmp_path, K8S_MAX_RESTARTS=1, TTL_SECONDS=5)
    name = _launch(merges, sandbox, "big")
    old = sandbox.pods(name)
    assert len({pod["spec"]["nodeName"] for pod in old}) == HOSTS

    sandbox.end(old[17], 143, disrupted=True)
    _wait_running(sandbox, name, old)
    assert _restarts(sandbox, name) == (1, 0), "maintenance does not use up restarts"

    old = sandbox.pods(name)
    sandbox.replace_node(old[200])
    _wait_running(sandbox, name, old)
    assert _restarts(sandbox, name) == (2, 1), "the loss of a node does"

    for pod in sandbox.pods(name):
        sandbox.end(pod, 0)
    sandbox.wait_condition(name, "Completed", 120)
    wait_for("its removal", lambda: not sandbox.jobsets(), 60)
    for _ in range(2):
        ended = merges.apply()
        assert ended.code == 0, ended.text
        assert sandbox.jobsets() == []
        merges.commit()


def test_a_configuration_error_fails_it_at_once(sandbox: Sandbox, tmp_path: Path) -> None:
    merges = _merges(sandbox, tmp_path, K8S_MAX_RESTARTS=3)
    name = _launch(merges, sandbox, "wrong")
    sandbox.end(sandbox.pods(name)[255], 2)
    assert sandbox.wait_condition(name, "Failed")["reason"] == "FailJobSetFailurePolicyAction"
    assert _restarts(sandbox, name) == (0, 0)


def test_with_quota_for_one_of_two_the_other_waits(sandbox_with_kueue: Sandbox, tmp_path: Path) -> None:
    sandbox = sandbox_with_kueue
    merges = _merges(sandbox, tmp_path, QUEUE="training")
    add_queue(sandbox, "training", TOPOLOGY, CHIPS)
    first = _launch(merges, sandbox, "first")
    merges.add(["second"], chips=CHIPS)
    ended = merges.apply()
    assert ended.code == 0, ended.text
    second = merges.names["second"]
    reason = "insufficient unused quota for google.com/tpu"
    wait_for("a reason to wait", lambda: reason in merges.renderer("status").text)
    assert sandbox.pods(second) == []
    for pod in sandbox.pods(first):
        sandbox.end(pod, 0)
    _wait_running(sandbox, second)


def _merges(sandbox: Sandbox, folder: Path, **deploy: object) -> Merges:
    sandbox.pool(TOPOLOGY)
    merges = make_merges(folder / "repository", sandbox.plane, sandbox.namespace, deploy)
    merges.adopt()
    return merges


def _launch(merges: Merges, sandbox: Sandbox, experiment: str) -> str:
    """Merge a run and apply it, and wait until it runs on all hosts. Return the JobSet's name."""
    merges.add([experiment], chips=CHIPS)
    ended = merges.apply()
    assert ended.code == 0, ended.text
    name = merges.names[experiment]
    _wait_running(sandbox, name)
    return name


def _wait_running(sandbox: Sandbox, name: str, old: Sequence[Object] = ()) -> None:
    """Wait until all hosts run, in other pods than `old`; where they do not, tell what is there instead."""
    try:
        sandbox.wait_running(name, HOSTS, 300, not_among=list(old))
    except AssertionError as error:
        uids = {pod["metadata"]["uid"] for pod in old}
        pods = Counter(
            (pod["status"]["phase"], pod["metadata"]["uid"] in uids, bool(pod["spec"].get("nodeName")))
            for pod in sandbox.pods(name)
        )
        error.add_note(f"pods by phase, old, on a node: {dict(pods)}\nJobSet: {sandbox.jobset(name)['status']}")
        error.add_note(f"Jobs: {[job['status'] for job in sandbox.jobs()]}\nevents: {sorted(sandbox.events(name))}")
        raise


def _restarts(sandbox: Sandbox, name: str) -> tuple[int, int]:
    """Return how often the run restarted, and how many of those count against maxRestarts."""
    status = sandbox.jobset(name)["status"]
    return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)
