"""The control plane itself: ready in time, with access control, alone on its ports, and gone afterwards."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.cluster.api import Api, ApiError, core, jobsets
from tests.cluster.plane import ControlPlane, control_plane
from tests.cluster.runs import variant
from tests.cluster.sandbox import Sandbox, launches, sandbox

pytestmark = pytest.mark.cluster


@pytest.mark.usefixtures("only_own")
def test_another_one_beside_it_is_ready_in_time_and_ends_with_all_its_processes(
    control_plane_with_kueue: ControlPlane, tmp_path: Path
) -> None:
    with control_plane(tmp_path) as other:
        assert other.seconds < 20
        assert other.api.server != control_plane_with_kueue.api.server
        pids = [process.pid for process in other.running.running.values()]
        with sandbox(other) as apart:
            apart.hold(variant("2x2x1", namespace=apart.namespace))
            assert not control_plane_with_kueue.api.exists(f"/api/v1/namespaces/{apart.namespace}")
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.usefixtures("only_own")
def test_access_is_controlled(sandbox: Sandbox) -> None:
    account = core(sandbox.namespace, "serviceaccounts", "nobody")
    sandbox.plane.api.create(core(sandbox.namespace, "serviceaccounts"), {"metadata": {"name": "nobody"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = sandbox.plane.api.create(f"{account}/token", request)["status"]["token"]
    nobody = Api(sandbox.plane.api.server, token, sandbox.plane.api.ca)
    with closing(nobody), pytest.raises(ApiError) as refusal:
        nobody.items(jobsets(sandbox.namespace))
    assert refusal.value.message == (
        f'jobsets.jobset.x-k8s.io is forbidden: User "system:serviceaccount:{sandbox.namespace}:nobody" cannot list '
        f'resource "jobsets" in API group "jobset.x-k8s.io" in the namespace "{sandbox.namespace}"'
    )


@pytest.mark.usefixtures("only_own")
def test_the_api_server_can_restart(sandbox: Sandbox) -> None:
    sandbox.pool("2x2x1")
    name = sandbox.hold(variant("2x2x1", namespace=sandbox.namespace))
    sandbox.plane.restart_api_server()
    sandbox.release(name)
    sandbox.wait_running(name, 1)


@pytest.mark.usefixtures("only_own")
def test_the_record_tells_which_jobs_ever_started(sandbox: Sandbox) -> None:
    sandbox.pool("2x2x1")
    name = sandbox.hold(variant("2x2x1", namespace=sandbox.namespace))
    uid = sandbox.jobset(name)["metadata"]["uid"]
    sandbox.wait_jobs(1)
    assert uid not in launches(sandbox.plane)
    sandbox.release(name)
    sandbox.wait_running(name, 1)
    assert uid in launches(sandbox.plane)
