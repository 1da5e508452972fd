"""A run, and a cluster that has all it needs, both made by hand: tests take something away."""

from __future__ import annotations

import dataclasses
from typing import Any

from renderer.cluster.facts import Claim, Control, Facts, Namespace
from renderer.cluster.findings import Finding
from renderer.cluster.kueue import ClusterQueue, Kueue, Quota
from renderer.cluster.needs import ACCELERATOR_LABEL, TOPOLOGY_LABEL, Needs, SecretKey
from renderer.cluster.permissions import Permission, Unknown
from renderer.cluster.preflight import check
from renderer.clusters import Cluster
from renderer.location import Location
from renderer.policy import Rules

IDENTITY = "123e4567-e89b-12d3-a456-426614174000"
CLUSTER = Cluster(
    name="prod-tpu7x",
    project="p-1",
    region="us-central1",
    zone="us-central1-c",
    cluster="tpu-prod",
    identity=IDENTITY,
    node_pool="{accelerator}-{topology}",
    reservations={"very-high": "r-1", "high": "r-2"},
    place=Location("presets/clusters.yml", 3, 3),
)
RUN = Needs(
    name="run-128c-11111111",
    api_version="jobset.x-k8s.io/v1alpha2",
    namespace="training",
    selector={ACCELERATOR_LABEL: "tpu7x", TOPOLOGY_LABEL: "4x4x8"},
    hosts=32,
    chips=128,
    claims=("data",),
    gcs_fuse=True,
    bucket="b",
    secrets=(SecretKey("token", "GITHUB_TOKEN", required=False),),
    queue="tpu",
    priority_class="high",
    service_accounts=("trainer", "hf-watcher"),
    watcher=True,
)
NAMESPACE = Namespace(
    labels={"kubernetes.io/metadata.name": "training", "team": "a"},
    claims={"data": Claim(bound=True)},
    secrets=frozenset({"token"}),
    service_accounts=frozenset({"default", "hf-watcher", "trainer"}),
    queues={"tpu": "cluster-queue"},
    denied=(),
)
FLAVOR = "1xtpu7x-256"
QUOTA = Quota(FLAVOR, 128, None, 0, "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota")
QUEUE = ClusterQueue(selector={}, quotas=(QUOTA,), group=0)
KUEUE = Kueue("kueue.x-k8s.io/v1beta2", {"cluster-queue": QUEUE}, {FLAVOR: dict(RUN.selector)})
FACTS = Facts(
    identity=IDENTITY,
    caller="apply@p-1",
    jobset=("jobset.x-k8s.io/v1alpha2",),
    pools={("tpu7x", "4x4x8"): {"tpu7x-4x4x8": 32}},
    gcs_fuse=True,
    priority_classes=frozenset({"high"}),
    kueue=KUEUE,
    control=Control("renderer-control", exists=True, denied=()),
    namespaces={"training": NAMESPACE},
)


def facts(**changes: Any) -> Facts:
    """Return the ready cluster with fields of Facts changed."""
    return dataclasses.replace(FACTS, **changes)


def namespace(**changes: Any) -> Facts:
    """Return the ready cluster with fields of the run's namespace changed."""
    return facts(namespaces={"training": dataclasses.replace(NAMESPACE, **changes)})


def kueue(**changes: Any) -> Facts:
    """Return the ready cluster with fields of its one ClusterQueue changed."""
    queue = dataclasses.replace(QUEUE, **changes)
    return facts(kueue=dataclasses.replace(KUEUE, queues={"cluster-queue": queue}))


def unknown(verb: str, group: str, resource: str, namespace: str = "") -> Unknown:
    """Return what stands in for a part that the caller may not read."""
    return Unknown(Permission(verb, group, resource, namespace))


def judge(
    found: Facts, *, cluster: Cluster | None = CLUSTER, rules: Rules | None = None, **changes: Any
) -> list[Finding]:
    """Return the findings for the run with fields of Needs changed."""
    return check(found, dataclasses.replace(RUN, **changes), cluster, rules or Rules())


def said(findings: list[Finding]) -> list[str]:
    """Return severity and text of each finding."""
    return [f"{finding.severity.value}: {finding.what}" for finding in findings]
