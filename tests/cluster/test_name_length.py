"""renderer.names.budget is what JobSet's webhook leaves for a name, to the character."""

from __future__ import annotations

from typing import Any

import pytest

from renderer.manifest_yaml import load
from renderer.names import budget
from tests.cluster.plane import ControlPlane
from tests.cluster.runs import variant
from tests.cluster.sandbox import dry_run

pytestmark = pytest.mark.cluster

HOSTS = (1, 2, 10, 11, 16, 64, 100, 101, 256, 1000, 1001)
TOO_LONG = (
    'admission webhook "vjobset.kb.io" denied the request: JobSet.jobset.x-k8s.io "{name}" is invalid: '
    'spec.replicatedJobs[0].name: Invalid value: "{name}-slice-job-0": '
    "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"
)


@pytest.mark.parametrize("hosts", HOSTS)
def test_the_longest_name_is_accepted(control_plane: ControlPlane, hosts: int) -> None:
    assert dry_run(control_plane, _jobset(hosts, budget(hosts))) is None


@pytest.mark.parametrize("hosts", HOSTS)
def test_one_more_character_is_refused(control_plane: ControlPlane, hosts: int) -> None:
    jobset = _jobset(hosts, budget(hosts) + 1)
    refusal = dry_run(control_plane, jobset)
    assert refusal is not None
    assert refusal.message == TOO_LONG.format(name=jobset["metadata"]["name"])


def _jobset(hosts: int, length: int) -> dict[str, Any]:
    data: dict[str, Any] = load(variant(namespace="default").files["jobset.yml"].decode())
    data["metadata"]["name"] = "n" * length
    data["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"completions": hosts, "parallelism": hosts}
    return data
