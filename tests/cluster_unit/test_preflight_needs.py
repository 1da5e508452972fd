"""What a rendered run needs, read from manifests."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from renderer.cluster.needs import ACCELERATOR_LABEL, TOPOLOGY_LABEL, Needs, SecretKey, needs
from renderer.cluster.preflight import check
from renderer.manifest_yaml import load
from renderer.outputs import DAMAGED
from renderer.policy import Rules
from tests.cluster_unit.ready_cluster import CLUSTER, facts, namespace, said
from tests.content import SHIPPED

RENDERED = sorted((SHIPPED / "rendered").glob("*/*/*/jobset.yml"))


def test_a_run_with_everything() -> None:
    container = {
        "env": [
            {"name": "GCS_BUCKET", "value": "b"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "TOKEN", "optional": True}}},
            {"name": "OTHER", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}},
        ],
        "resources": {"requests": {"google.com/tpu": 4}},
    }
    pod = {
        "priorityClassName": "high",
        "serviceAccountName": "trainer",
        "nodeSelector": {ACCELERATOR_LABEL: "tpu7x", TOPOLOGY_LABEL: "4x4x8"},
        "containers": [container],
        "volumes": [
            {"name": "run", "configMap": {"name": "c"}},
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    }
    template = {"metadata": {"annotations": {"gke-gcsfuse/volumes": "true"}}, "spec": pod}
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "metadata": {"name": "n", "namespace": "ns", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {"replicatedJobs": [{"template": {"spec": {"completions": 32, "template": template}}}]},
    }
    watcher = {"spec": {"template": {"spec": {"serviceAccountName": "w", "containers": [{}]}}}}
    assert needs(jobset, watcher) == Needs(
        name="n",
        api_version="jobset.x-k8s.io/v1alpha2",
        namespace="ns",
        selector={ACCELERATOR_LABEL: "tpu7x", TOPOLOGY_LABEL: "4x4x8"},
        hosts=32,
        chips=128,
        claims=("data",),
        gcs_fuse=True,
        bucket="b",
        secrets=(SecretKey("s", "TOKEN", required=False), SecretKey("t", "k", required=True)),
        queue="q",
        priority_class="high",
        service_accounts=("trainer", "w"),
        watcher=True,
    )


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.parent.name)
def test_every_shipped_run_can_be_read(path: Path) -> None:
    jobset: Any = load(path.read_text())
    found = needs(jobset, None)
    assert found.chips == int(jobset["metadata"]["labels"]["renderer/chips"])
    assert found.chips == 4 * found.hosts
    assert found.accelerator == "tpu7x"
    assert bool(found.claims) is found.gcs_fuse


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything inside a manifest."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in entries:
        yield (*path, key)
        yield from places(child, (*path, key))


@pytest.mark.parametrize("junk", [None, 5, -1, "x", "", True, [], [5], {}, {"a": 5}, "../x"], ids=repr)
def test_whatever_is_edited_is_damage_or_is_judged(junk: Any) -> None:
    everything = next(path for path in RENDERED if "persistentVolumeClaim" in path.read_text())
    original: Any = load(everything.read_text())
    ready = namespace(labels=None, claims={}, queues={}).namespaces["training"]
    for path in places(original):
        jobset = copy.deepcopy(original)
        parent = jobset
        for step in path[:-1]:
            parent = parent[step]
        parent[path[-1]] = junk
        try:
            found = needs(jobset, None)
        except DAMAGED:
            continue
        assert said(check(facts(namespaces={found.namespace: ready}), found, CLUSTER, Rules()))
