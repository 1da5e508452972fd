"""What of a live object differs from its manifest, and who changed it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from renderer.cluster.api import Object
from renderer.cluster.fields import differences

COMMITTED: Object = {
    "metadata": {"name": "run", "labels": {"renderer/model": "m", "renderer/owner": "a"}},
    "spec": {
        "failurePolicy": {"maxRestarts": 3},
        "replicatedJobs": [
            {
                "name": "slice-job",
                "nodeSelector": {"topology": "4x4x4"},
                "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}],
                "containers": [
                    {
                        "name": "trainer",
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 8471}],
                        "volumeMounts": [{"name": "run", "mountPath": "/etc/maxtext"}],
                        "resources": {"limits": {"google.com/tpu": 4}},
                    }
                ],
            }
        ],
    },
}
_TRAINER = "spec.replicatedJobs[slice-job].containers[trainer]"


def managed(manager: str, fields: Any, **more: str) -> Object:
    return {"manager": manager, "operation": "Update", "time": "2026-11-29T10:00:00Z", "fieldsV1": fields, **more}


@pytest.fixture
def live() -> Object:
    """The object as a server keeps it: with its defaults, and what Kueue put into it."""
    found = copy.deepcopy(COMMITTED)
    job = found["spec"]["replicatedJobs"][0]
    found["metadata"] |= {"uid": "u", "finalizers": ["x"], "labels": {**found["metadata"]["labels"]}}
    found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "training"
    found["spec"] |= {"suspend": False, "network": {"enableDNSHostnames": True}}
    job["replicas"] = 1
    job["tolerations"].append({"key": "added-by-kueue", "operator": "Exists"})
    job["nodeSelector"]["flavor"] = "f"
    job["containers"][0]["resources"] = {"limits": {"google.com/tpu": "4"}}
    job["containers"][0]["ports"][0]["protocol"] = "TCP"
    found["status"] = {"conditions": []}
    inner = {"f:nodeSelector": {"f:flavor": {}}, "f:tolerations": {}}
    found["metadata"]["managedFields"] = [
        managed("renderer", {"f:metadata": {"f:labels": {".": {}, "f:renderer/model": {}}}}),
        managed("kueue", {"f:spec": {"f:suspend": {}, "f:replicatedJobs": {'k:{"name":"slice-job"}': inner}}}),
        managed("jobset", {"f:status": {"f:conditions": {}}}, subresource="status"),
    ]
    return found


def texts(live: Object) -> list[str]:
    return list(map(str, differences(COMMITTED, live)))


def job(live: Object) -> Any:
    return live["spec"]["replicatedJobs"][0]


def test_defaults_and_controllers_are_no_difference(live: Object) -> None:
    assert texts(live) == []


def test_a_changed_field_names_both_values_and_who(live: Object) -> None:
    live["spec"]["failurePolicy"]["maxRestarts"] = 9
    edit = managed("kubectl-edit", {"f:spec": {"f:failurePolicy": {"f:maxRestarts": {}}}})
    live["metadata"]["managedFields"].append(edit)
    assert texts(live) == [
        "spec.failurePolicy.maxRestarts: 3 in git, 9 in the cluster (by kubectl-edit, 2026-11-29T10:00:00Z)"
    ]


def test_items_are_compared_by_name_in_any_order(live: Object) -> None:
    trainer = job(live)["containers"][0]
    trainer["env"].reverse()
    assert texts(live) == []
    trainer["env"][0]["value"] = "3"
    assert texts(live) == [f'{_TRAINER}.env[B].value: "2" in git, "3" in the cluster']


def test_what_is_gone_is_told(live: Object) -> None:
    trainer = job(live)["containers"][0]
    del trainer["volumeMounts"][0]
    del live["metadata"]["labels"]["renderer/model"]
    assert texts(live) == [
        'metadata.labels.renderer/model: "m" in git, nothing in the cluster',
        f'{_TRAINER}.volumeMounts[/etc/maxtext]: {{"mountPath": "/etc/maxtext", "name": "run"}} in git, '
        "nothing in the cluster",
    ]


def test_what_someone_added_is_told(live: Object) -> None:
    job(live)["containers"][0]["env"].append({"name": "C", "value": "3"})
    item = {'k:{"name":"C"}': {".": {}, "f:name": {}, "f:value": {}}}
    inner = {'k:{"name":"slice-job"}': {"f:containers": {'k:{"name":"trainer"}': {"f:env": item}}}}
    live["metadata"]["managedFields"].append(managed("kubectl-patch", {"f:spec": {"f:replicatedJobs": inner}}))
    by = "(by kubectl-patch, 2026-11-29T10:00:00Z)"
    assert texts(live) == [
        f'{_TRAINER}.env[C].name: nothing in git, "C" in the cluster {by}',
        f'{_TRAINER}.env[C].value: nothing in git, "3" in the cluster {by}',
    ]


def test_a_person_who_writes_what_is_committed_changes_nothing(live: Object) -> None:
    same = managed("kubectl-edit", {"f:spec": {"f:failurePolicy": {"f:maxRestarts": {}}}})
    live["metadata"]["managedFields"].append(same)
    assert texts(live) == []


def test_a_quantity_that_a_person_wrote_as_another_type_is_the_same(live: Object) -> None:
    inner = {'k:{"name":"trainer"}': {"f:resources": {"f:limits": {"f:google.com/tpu": {}}}}}
    slice_job = {'k:{"name":"slice-job"}': {"f:containers": inner}}
    live["metadata"]["managedFields"].append(managed("kubectl", {"f:spec": {"f:replicatedJobs": slice_job}}))
    assert texts(live) == []


def test_what_a_later_commit_may_change_without_a_launch_is_no_difference(live: Object) -> None:
    live["metadata"]["labels"]["renderer/owner"] = "another"
    assert texts(live) == []


def test_an_item_without_a_key_is_looked_for(live: Object) -> None:
    job(live)["tolerations"][0]["operator"] = "Equal"
    live["metadata"]["managedFields"].clear()
    assert texts(live) == [
        'spec.replicatedJobs[slice-job].tolerations[0].operator: "Exists" in git, "Equal" in the cluster'
    ]


def test_what_is_empty_may_be_left_out() -> None:
    assert differences({"metadata": {}, "a": "", "b": 0, "c": []}, {"metadata": {}}) == []


def test_true_is_not_the_text_true() -> None:
    assert differences({"metadata": {}, "a": True}, {"metadata": {}, "a": "True"})
