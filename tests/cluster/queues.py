"""Kueue's objects for the tests: a queue with a quota of chips, and what Kueue thinks of a run."""

from __future__ import annotations

from tests.cluster.api import Object
from tests.cluster.sandbox import Sandbox

_GROUP = "/apis/kueue.x-k8s.io/v1beta2"


def add_queue(sandbox: Sandbox, name: str, topology: str, chips: int) -> None:
    """Add a LocalQueue to the sandbox, with a ClusterQueue and a flavor of its own: `chips` on nodes of `topology`."""
    api, shared = sandbox.plane.api, f"{sandbox.namespace}-{name}"
    metadata = {"name": shared, "labels": sandbox.label}
    nodes = {"cloud.google.com/gke-tpu-accelerator": "tpu7x", "cloud.google.com/gke-tpu-topology": topology}
    api.create(f"{_GROUP}/resourceflavors", _object("ResourceFlavor", metadata, {"nodeLabels": nodes}))
    quota = {"name": shared, "resources": [{"name": "google.com/tpu", "nominalQuota": chips}]}
    group = {"coveredResources": ["google.com/tpu"], "flavors": [quota]}
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    api.create(f"{_GROUP}/clusterqueues", _object("ClusterQueue", metadata, spec))
    local = _object("LocalQueue", {"name": name}, {"clusterQueue": shared})
    api.create(f"{_GROUP}/namespaces/{sandbox.namespace}/localqueues", local)


def workload(sandbox: Sandbox, jobset: str, kind: str) -> Object | None:
    """Return a condition of the Workload that Kueue made for a JobSet, if there is one yet."""
    for item in sandbox.plane.api.items(f"{_GROUP}/namespaces/{sandbox.namespace}/workloads"):
        if item["metadata"]["ownerReferences"][0]["name"] == jobset:
            conditions: list[Object] = item.get("status", {}).get("conditions", [])
            return next((condition for condition in conditions if condition["type"] == kind), None)
    return None


def _object(kind: str, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": _GROUP.removeprefix("/apis/"), "kind": kind, "metadata": metadata, "spec": spec}
