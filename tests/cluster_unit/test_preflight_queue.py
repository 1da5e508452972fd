"""Queue, ClusterQueue, flavor and quota, on facts made by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from renderer.cluster.kueue import ClusterQueue, Kueue, fitting
from tests.cluster_unit.ready_cluster import (
    FLAVOR,
    KUEUE,
    QUEUE,
    QUOTA,
    RUN,
    facts,
    judge,
    kueue,
    namespace,
    said,
    unknown,
)

SMALLER = {**RUN.selector, "cloud.google.com/gke-tpu-topology": "4x4x4"}
FLAVOR_MANIFEST = """\
kubectl apply -f - <<'EOF'
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: "1xtpu7x-256"}
spec:
  nodeLabels:
    cloud.google.com/gke-tpu-accelerator: "tpu7x"
    cloud.google.com/gke-tpu-topology: "4x4x8"
EOF"""


def with_kueue(**changes: Any) -> Kueue:
    return dataclasses.replace(KUEUE, **changes)


def test_without_kueue() -> None:
    (finding,) = judge(facts(kueue=None))
    assert said([finding]) == ["error: Kueue is not installed, and the run waits in queue tpu"]
    assert finding.remedy == (
        "# xpk cluster adapt installs it too. To run without a queue, write QUEUE: !remove under deploy: instead.\n"
        "kubectl apply --server-side -f "
        "https://github.com/kubernetes-sigs/kueue/releases/download/v0.17.0/manifests.yaml"
    )
    assert judge(facts(kueue=None), queue="") == []


def test_a_queue_that_does_not_exist() -> None:
    (finding,) = judge(namespace(queues={"a": "other", "b": "other"}))
    assert said([finding]) == ["error: LocalQueue tpu does not exist in training, which has: a, b"]
    assert (
        finding.remedy
        == """\
kubectl apply -f - <<'EOF'
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: "tpu", namespace: "training"}
spec: {clusterQueue: "cluster-queue"}
EOF"""
    )
    assert said(judge(namespace(queues={}))) == ["error: LocalQueue tpu does not exist in training, which has: none"]


def test_its_manifest_names_the_first_cluster_queue_that_fits() -> None:
    queues = {"a": dataclasses.replace(QUEUE, quotas=()), "tpus": QUEUE}
    found = dataclasses.replace(namespace(queues={}), kueue=with_kueue(queues=queues))
    assert '{clusterQueue: "tpus"}' in judge(found)[0].remedy


def test_a_default_queue_would_catch_a_run_without_queue() -> None:
    found = namespace(queues={"default": "cluster-queue", "tpu": "cluster-queue"})
    (finding,) = judge(found, queue="")
    assert said([finding]) == [
        "warning: LocalQueue default of training takes every JobSet without a queue, and the run names none"
    ]
    assert (
        finding.remedy
        == """\
# Name the queue that the run is meant for, in the experiment or its presets:
#   deploy:
#     QUEUE: default
# Only if nothing is meant to be queued there by default:
kubectl delete localqueue default -n training"""
    )
    assert judge(found) == []
    assert judge(namespace(queues={"tpu": "cluster-queue"}), queue="") == []


def test_a_cluster_queue_that_does_not_exist() -> None:
    (finding,) = judge(facts(kueue=with_kueue(queues={}, flavors={})))
    assert said([finding]) == ["error: ClusterQueue cluster-queue does not exist, behind queue tpu of training"]
    assert (
        finding.remedy
        == FLAVOR_MANIFEST.removesuffix("EOF")
        + """\
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: "cluster-queue"}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [google.com/tpu]
      flavors:
        - name: "1xtpu7x-256"
          resources:
            - {name: google.com/tpu, nominalQuota: 128}
EOF"""
    )


def patch(path: str, operation: str, value: str) -> str:
    return (
        "kubectl patch clusterqueue cluster-queue --type=json -p "
        f"""'[{{"op": "{operation}", "path": "{path}", "value": {value}}}]'"""
    )


@pytest.mark.parametrize(
    ("flavors", "queue", "lines"),
    [
        (  # the flavor is there, and the queue has none of it
            KUEUE.flavors,
            {"quotas": ()},
            FLAVOR_MANIFEST
            + "\n"
            + patch(
                "/spec/resourceGroups/0/flavors/-",
                "add",
                '{"name": "1xtpu7x-256", "resources": [{"name": "google.com/tpu", "nominalQuota": 128}]}',
            ),
        ),
        (  # the queue names the flavor, which is not there
            {},
            {},
            FLAVOR_MANIFEST,
        ),
        (  # the queue has no quota of TPUs at all
            {},
            {"quotas": (), "group": None},
            FLAVOR_MANIFEST
            + "\n"
            + patch(
                "/spec/resourceGroups/-",
                "add",
                '{"coveredResources": ["google.com/tpu"], "flavors": [{"name": "1xtpu7x-256", '
                '"resources": [{"name": "google.com/tpu", "nominalQuota": 128}]}]}',
            ),
        ),
        (  # the flavor of this name is of another topology
            {FLAVOR: SMALLER},
            {},
            FLAVOR_MANIFEST.replace("1xtpu7x-256", "1xtpu7x-256-4x4x8")
            + "\n"
            + patch(
                "/spec/resourceGroups/0/flavors/-",
                "add",
                '{"name": "1xtpu7x-256-4x4x8", "resources": [{"name": "google.com/tpu", "nominalQuota": 128}]}',
            ),
        ),
    ],
)
def test_no_flavor_with_the_nodes_labels(flavors: Any, queue: Any, lines: str) -> None:
    queues = {"cluster-queue": dataclasses.replace(QUEUE, **queue)}
    (finding,) = judge(facts(kueue=with_kueue(queues=queues, flavors=flavors)))
    assert said([finding]) == ["error: ClusterQueue cluster-queue has no flavor for nodes of tpu7x 4x4x8"]
    assert finding.remedy == lines


@pytest.mark.parametrize(
    ("selector", "remedy"),
    [
        (None, patch("/spec/namespaceSelector", "add", "{}")),
        (
            {"matchLabels": {"team": "b", "x/y": "z"}},
            "kubectl label --overwrite namespace training team=b x/y=z",
        ),
        (
            {"matchExpressions": [{"key": "team", "operator": "In", "values": ["b"]}]},
            "# Let spec.namespaceSelector match the namespace's labels:\nkubectl edit clusterqueue cluster-queue",
        ),
    ],
)
def test_a_namespace_that_kueue_does_not_manage(selector: Any, remedy: str) -> None:
    (finding,) = judge(kueue(selector=selector))
    assert said([finding]) == [
        "error: ClusterQueue cluster-queue does not serve namespace training: "
        "its namespaceSelector does not match the labels"
    ]
    assert finding.remedy == remedy


@pytest.mark.parametrize(
    ("operator", "values", "serves"),
    [
        ("In", ["a", "b"], True),
        ("In", ["b"], False),
        ("NotIn", ["b"], True),
        ("NotIn", ["a"], False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
    ],
)
def test_selectors(operator: str, values: list[str] | None, serves: bool) -> None:
    selector = {"matchExpressions": [{"key": "team", "operator": operator, "values": values}]}
    assert ClusterQueue(selector).serves({"team": "a"}) is serves
    assert ClusterQueue({"matchLabels": {"team": "b"}, **selector}).serves({"team": "a"}) is False
    absent = {"In": False, "NotIn": True, "Exists": False, "DoesNotExist": True}[operator]
    assert ClusterQueue(selector).serves({}) is absent


HAS = "ClusterQueue cluster-queue has"
RAISE = patch(QUOTA.path, "replace", "128")


@pytest.mark.parametrize(
    ("quota", "cohort", "what", "remedy"),
    [
        ({"chips": 64}, "", f"error: {HAS} 64 chips of flavor {FLAVOR}, the run asks for 128", RAISE),
        (
            {"chips": 64},
            "all",
            f"warning: {HAS} 64 chips of flavor {FLAVOR}, the run asks for 128: "
            "it waits until cohort all lends the rest",
            RAISE,
        ),
        (
            {"chips": 64, "borrowing": 32},
            "all",
            f"error: {HAS} 64 chips of flavor {FLAVOR}, the run asks for 128",
            RAISE,
        ),
        (
            {"reserved": 1},
            "",
            f"warning: {HAS} 128 chips of flavor {FLAVOR}, 1 of them taken, the run asks for 128: it will wait",
            "kubectl get workloads -A",
        ),
    ],
)
def test_quota(quota: dict[str, Any], cohort: str, what: str, remedy: str) -> None:
    (finding,) = judge(kueue(quotas=(dataclasses.replace(QUOTA, **quota),), cohort=cohort))
    assert said([finding]) == [what]
    assert finding.remedy == remedy


def test_one_flavor_with_room_is_enough() -> None:
    quotas = (dataclasses.replace(QUOTA, chips=64), dataclasses.replace(QUOTA, flavor="more"))
    found = with_kueue(
        queues={"cluster-queue": dataclasses.replace(QUEUE, quotas=quotas)},
        flavors={FLAVOR: RUN.selector, "more": RUN.selector},
    )
    assert judge(facts(kueue=found)) == []


def test_a_cluster_queue_that_admits_nothing_says_why() -> None:
    (finding,) = judge(kueue(inactive="Can't admit new workloads: stopped"))
    assert said([finding]) == ["warning: ClusterQueue cluster-queue admits nothing: Can't admit new workloads: stopped"]
    assert finding.remedy == "kubectl describe clusterqueue cluster-queue"


def test_what_may_not_be_read() -> None:
    part = unknown("list", "kueue.x-k8s.io", "clusterqueues")
    assert said(judge(facts(kueue=with_kueue(queues=part)))) == [
        "warning: unknown quota of queue tpu: apply@p-1 may not list clusterqueues.kueue.x-k8s.io"
    ]
    part = unknown("list", "kueue.x-k8s.io", "resourceflavors")
    assert said(judge(facts(kueue=with_kueue(flavors=part)))) == [
        "warning: unknown quota of queue tpu: apply@p-1 may not list resourceflavors.kueue.x-k8s.io"
    ]
    part = unknown("list", "kueue.x-k8s.io", "localqueues", "training")
    assert said(judge(namespace(queues=part), queue="")) == [
        "warning: unknown whether queue default exists: apply@p-1 may not list localqueues.kueue.x-k8s.io in training"
    ]


def test_only_labels_that_some_flavor_of_the_group_has_are_compared() -> None:
    bare = dataclasses.replace(QUOTA, flavor="any")
    alone = dataclasses.replace(QUEUE, quotas=(bare,))
    assert list(fitting(alone, {"any": {}}, RUN.selector)) == [bare]
    both = dataclasses.replace(QUEUE, quotas=(bare, QUOTA))
    assert list(fitting(both, {"any": {}, FLAVOR: RUN.selector}, RUN.selector)) == [QUOTA]
    assert list(fitting(both, {"any": {}, FLAVOR: {"zone": "a"}}, RUN.selector)) == [bare, QUOTA]
