"""Kueue's objects as the API server writes them, read into quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from renderer.cluster.api import Api
from renderer.cluster.kueue import ClusterQueue, Kueue, Quota, read_kueue


class Served:
    """An API server that serves these objects."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self.objects = objects

    def get(self, path: str) -> Any:
        return self.objects.get(path)

    def items(self, path: str) -> Iterator[Any]:
        yield from self.objects[path]


def kueue(version: str, queue: Mapping[str, Any]) -> Kueue | None:
    path = f"/apis/kueue.x-k8s.io/{version}"
    objects = {
        "/apis/kueue.x-k8s.io": {"preferredVersion": {"groupVersion": f"kueue.x-k8s.io/{version}"}},
        f"{path}/clusterqueues": [{"metadata": {"name": "q"}, **queue}],
        f"{path}/resourceflavors": [
            {"metadata": {"name": "a"}, "spec": {"nodeLabels": {"k": "v"}}},
            {"metadata": {"name": "b"}, "spec": {}},
        ],
    }
    return read_kueue(cast(Api, Served(objects)))


def flavor(name: str, **resources: Any) -> dict[str, Any]:
    return {"name": name, "resources": [{"name": key.replace("_", "/"), **value} for key, value in resources.items()]}


def test_without_kueue() -> None:
    assert read_kueue(cast(Api, Served({}))) is None


def test_the_group_of_tpus_with_its_quotas() -> None:
    tpu = {"google.com_tpu": {"nominalQuota": "2k", "borrowingLimit": "1"}}
    groups = [
        {"coveredResources": ["cpu"], "flavors": [flavor("b", cpu={"nominalQuota": "5"})]},
        {
            "coveredResources": ["memory", "google.com/tpu"],
            "flavors": [
                flavor("a", memory={"nominalQuota": "1Gi"}, **tpu),
                flavor("b", memory={"nominalQuota": "1Gi"}, **{"google.com_tpu": {"nominalQuota": 64}}),
            ],
        },
    ]
    usage = [flavor("a", memory={"total": "1Gi"}, **{"google.com_tpu": {"total": "128"}})]
    stopped = {"type": "Active", "status": "False", "message": "stopped"}
    queue = {
        "spec": {"cohortName": "c", "namespaceSelector": {}, "resourceGroups": groups},
        "status": {"flavorsReservation": usage, "conditions": [stopped]},
    }
    quotas = (
        Quota("a", 2000, 1, 128, "/spec/resourceGroups/1/flavors/0/resources/1/nominalQuota"),
        Quota("b", 64, None, 0, "/spec/resourceGroups/1/flavors/1/resources/1/nominalQuota"),
    )
    assert kueue("v1beta2", queue) == Kueue(
        "kueue.x-k8s.io/v1beta2",
        {"q": ClusterQueue({}, quotas, group=1, cohort="c", inactive="stopped")},
        {"a": {"k": "v"}, "b": {}},
    )


def test_a_queue_without_tpus_and_the_older_api() -> None:
    found = kueue("v1beta1", {"spec": {"cohort": "c", "resourceGroups": []}})
    assert found is not None
    assert found.queues == {"q": ClusterQueue(None, (), None, "c", "")}
