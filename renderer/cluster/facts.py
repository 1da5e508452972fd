"""What a cluster offers to runs, read once, in few requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from renderer.cluster import ledger
from renderer.cluster.api import Api, Object, caller, core, identity
from renderer.cluster.kueue import GROUP, Kueue, read_kueue
from renderer.cluster.needs import ACCELERATOR_LABEL, TOPOLOGY_LABEL
from renderer.cluster.permissions import Permission, Unknown, denied, of_control, of_runs, readable

GCS_FUSE = "gcsfuse.csi.storage.gke.io"
_POOL_LABEL = "cloud.google.com/gke-nodepool"

_STORAGE = "storage.k8s.io"
_SCHEDULING = "scheduling.k8s.io"


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim. `waits` says that it is bound only when the first pod uses it."""

    bound: bool
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace: None for the labels of one that does not exist.

    `queues` are its LocalQueues with their ClusterQueues, none without Kueue; `denied` is what applying needs there
    and the caller may not do. Of secrets only names are read.
    """

    labels: Mapping[str, str] | Unknown | None
    claims: Mapping[str, Claim] | Unknown
    secrets: frozenset[str] | Unknown
    service_accounts: frozenset[str] | Unknown
    queues: Mapping[str, str] | Unknown
    denied: tuple[Permission, ...]

    @property
    def exists(self) -> bool | Unknown:
        """Whether there is such a namespace."""
        return self.labels if isinstance(self.labels, Unknown) else self.labels is not None


@dataclass(frozen=True, slots=True)
class Control:
    """The namespace of the ledger: whether it exists, and what the caller may not do there."""

    name: str
    exists: bool | Unknown
    denied: tuple[Permission, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """A cluster as one caller sees it; Unknown stands for what the caller may not read.

    `identity` is the UID of kube-system; `jobset` the versions of JobSet's API that are served, none where it is not
    installed; `pools` the number of nodes per node pool, by accelerator and topology, of nodes with TPU labels;
    `kueue` is None where it is not installed.
    """

    identity: str | Unknown
    caller: str
    jobset: tuple[str, ...]
    pools: Mapping[tuple[str, str], Mapping[str, int]] | Unknown
    gcs_fuse: bool | Unknown
    priority_classes: frozenset[str] | Unknown
    kueue: Kueue | None
    control: Control
    namespaces: Mapping[str, Namespace]


def gather(api: Api, namespaces: Iterable[str]) -> Facts:
    """Return what the cluster offers to runs in these namespaces. Raises ApiError unless it only forbids reading."""
    kueue = read_kueue(api)
    return Facts(
        identity=readable(lambda: identity(api), Permission("get", "", "namespaces")),
        caller=caller(api),
        jobset=_versions(api.get("/apis/jobset.x-k8s.io")),
        pools=readable(lambda: _pools(api), Permission("list", "", "nodes")),
        gcs_fuse=readable(
            lambda: api.get(f"/apis/{_STORAGE}/v1/csidrivers/{GCS_FUSE}") is not None,
            Permission("get", _STORAGE, "csidrivers"),
        ),
        priority_classes=readable(
            lambda: _names(api, f"/apis/{_SCHEDULING}/v1/priorityclasses"),
            Permission("list", _SCHEDULING, "priorityclasses"),
        ),
        kueue=kueue,
        control=_control(api),
        namespaces={name: _namespace(api, name, kueue) for name in sorted(set(namespaces))},
    )


def _versions(group: Object | None) -> tuple[str, ...]:
    return () if group is None else tuple(str(item["groupVersion"]) for item in group["versions"])


def _pools(api: Api) -> dict[tuple[str, str], dict[str, int]]:
    """Count the nodes per pool. One slice takes a whole pool, so nodes outside any pool serve no run."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for node in api.items("/api/v1/nodes", only_metadata=True, labelSelector=f"{TOPOLOGY_LABEL},{_POOL_LABEL}"):
        labels = node["metadata"]["labels"]
        pools = found.setdefault((labels.get(ACCELERATOR_LABEL, ""), labels[TOPOLOGY_LABEL]), {})
        pools[labels[_POOL_LABEL]] = pools.get(labels[_POOL_LABEL], 0) + 1
    return found


def _names(api: Api, path: str) -> frozenset[str]:
    return frozenset(item["metadata"]["name"] for item in api.items(path, only_metadata=True))


def _labels(api: Api, name: str) -> dict[str, str] | None:
    found = api.get(f"/api/v1/namespaces/{name}")
    return None if found is None else dict(found["metadata"].get("labels", {}))


def _control(api: Api) -> Control:
    name = ledger.CONTROL
    exists = readable(lambda: _labels(api, name) is not None, Permission("get", "", "namespaces"))
    return Control(name, exists, denied(api, of_control(name)))


def _namespace(api: Api, name: str, kueue: Kueue | None) -> Namespace:
    def names(kind: str) -> frozenset[str] | Unknown:
        return readable(lambda: _names(api, core(name, kind)), Permission("list", "", kind, name))

    return Namespace(
        labels=readable(lambda: _labels(api, name), Permission("get", "", "namespaces")),
        claims=readable(lambda: _claims(api, name), Permission("list", "", "persistentvolumeclaims", name)),
        secrets=names("secrets"),
        service_accounts=names("serviceaccounts"),
        queues=readable(lambda: _queues(api, name, kueue), Permission("list", GROUP, "localqueues", name)),
        denied=denied(api, of_runs(name)),
    )


def _queues(api: Api, namespace: str, kueue: Kueue | None) -> dict[str, str]:
    if kueue is None:
        return {}
    found = api.items(f"/apis/{kueue.version}/namespaces/{namespace}/localqueues")
    return {item["metadata"]["name"]: item["spec"]["clusterQueue"] for item in found}


def _claims(api: Api, namespace: str) -> dict[str, Claim]:
    found = list(api.items(core(namespace, "persistentvolumeclaims")))
    phases = {item["metadata"]["name"]: item.get("status", {}).get("phase", "") for item in found}
    waiting = _waiting(api) if "Pending" in phases.values() else frozenset()
    return {
        name: Claim(phases[name] == "Bound", item["spec"].get("storageClassName", "") in waiting)
        for item in found
        for name in [item["metadata"]["name"]]
    }


def _waiting(api: Api) -> frozenset[str]:
    """Return the storage classes that bind a claim only when a pod uses it, none if the caller may not read them."""

    def read() -> frozenset[str]:
        classes = api.items(f"/apis/{_STORAGE}/v1/storageclasses")
        return frozenset(
            item["metadata"]["name"] for item in classes if item.get("volumeBindingMode") == "WaitForFirstConsumer"
        )

    found = readable(read, Permission("list", _STORAGE, "storageclasses"))
    return frozenset() if isinstance(found, Unknown) else found
