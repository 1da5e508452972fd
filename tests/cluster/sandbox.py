"""One test's part of a control plane: a namespace with runs, node pools, and what happens to them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from renderer.accelerators import Slice, find_slice
from renderer.jobset import pod_scripts
from renderer.manifests import stream
from renderer.outputs import Rendered
from tests.cluster.api import ApiError, Object, core, jobs, jobsets, wait_for
from tests.cluster.components import SIMULATED
from tests.cluster.plane import ControlPlane

JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
OWNER = "test/sandbox"
OUTSIDE = (
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
    "/apis/kueue.x-k8s.io/v1beta2/resourceflavors",
)
"""What a sandbox makes outside its namespace."""
QUEUE = "kueue.x-k8s.io/queue-name"
POOL = "cloud.google.com/gke-nodepool"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A namespace of its own, in which `plane` is used."""

    plane: ControlPlane
    namespace: str
    pools: list[str] = field(default_factory=list)

    @property
    def label(self) -> dict[str, str]:
        """What marks objects outside the namespace as this sandbox's."""
        return {OWNER: self.namespace}

    def pool(self, topology: str, accelerator: str = "tpu7x") -> str:
        """Add a node pool shaped like GKE's, one node per host of the slice. Return its name."""
        found = find_slice(accelerator, topology)
        assert found is not None, topology
        name = f"{self.namespace}-{len(self.pools)}"
        self.pools.append(name)
        for index in range(found.hosts):
            node = _node(f"{name}-{index}", self.label | {POOL: name}, found)
            self.plane.api.create("/api/v1/nodes", node)
        return name

    def hold(self, run: Rendered) -> str:
        """Apply the run as `renderer manifests` prints it, held. Return the JobSet's name."""
        self._claims(run)
        manifests = stream(run.files, pod_scripts())
        done = self.plane.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=manifests)
        assert done.returncode == 0, done.stderr
        return run.names.object

    def release(self, name: str) -> None:
        """Let a held JobSet start where no Kueue queue is meant for it: in two steps, or Kueue refuses."""
        path = jobsets(self.namespace, name)
        self.plane.api.patch(path, {"metadata": {"labels": {QUEUE: None}}})
        self.plane.api.patch(path, {"spec": {"suspend": False}})

    def hand_over(self, name: str, queue: str) -> None:
        """Let a held JobSet start when Kueue has room in a queue."""
        self.plane.api.patch(jobsets(self.namespace, name), {"metadata": {"labels": {QUEUE: queue}}})

    def launch(self, run: Rendered) -> str:
        """Hold and release the run, and wait until all its pods are running. Return the JobSet's name."""
        name = self.hold(run)
        self.release(name)
        self.wait_running(name, run.run.slice.hosts)
        return name

    def wait_running(self, name: str, hosts: int, seconds: float = 120, not_among: list[Object] | None = None) -> None:
        """Wait until `hosts` pods of the JobSet are running, none of `not_among`."""
        old = {pod["metadata"]["uid"] for pod in not_among or ()}

        def ready() -> bool:
            if not self._ready(name):  # cheaper to ask for than the pods
                return False
            fresh = [pod for pod in self.pods(name) if pod["metadata"]["uid"] not in old]
            return len(fresh) == hosts and all(pod["status"]["phase"] == "Running" for pod in fresh)

        wait_for(f"{hosts} running pods of {name}", ready, seconds)

    def _ready(self, name: str) -> bool:
        """Return whether JobSet says that all pods of its one Job are ready."""
        status = self.jobset(name).get("status", {}).get("replicatedJobsStatus")
        return bool(status) and status[0]["ready"] == 1

    def pods(self, name: str) -> list[Object]:
        """Return the pods of a JobSet, in the order of their index."""
        found = self.plane.api.items(core(self.namespace, "pods"), labelSelector=f"{JOBSET_LABEL}={name}")
        return sorted(found, key=lambda pod: int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]))

    def end(self, pod: Object, exit_code: int, *, disrupted: bool = False) -> None:
        """Let a running pod's containers exit; `disrupted` as under a node that is being shut down."""
        notes = {"test/exit-code": str(exit_code)} | ({"test/disrupted": "true"} if disrupted else {})
        path = core(self.namespace, "pods", pod["metadata"]["name"])
        self.plane.api.patch(path, {"metadata": {"annotations": notes}})

    def evict(self, pod: Object) -> None:
        """Evict a pod as kubectl drain does."""
        name = pod["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        self.plane.api.create(f"{core(self.namespace, 'pods', name)}/eviction", eviction)

    def replace_node(self, pod: Object) -> None:
        """Let the node of a pod vanish and another join its pool, as GKE repairs a machine that does not answer."""
        path = f"/api/v1/nodes/{pod['spec']['nodeName']}"
        node = self.plane.api.get(path)
        self.plane.api.delete(path)
        name = f"{node['metadata']['name']}-new"
        labels = {**node["metadata"]["labels"], "kubernetes.io/hostname": name}
        taints = [taint for taint in node["spec"]["taints"] if taint["key"] == "google.com/tpu"]
        room = {"capacity": node["status"]["capacity"], "allocatable": node["status"]["allocatable"]}
        fresh = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": room}
        self.plane.api.create("/api/v1/nodes", fresh)

    def jobset(self, name: str) -> Object:
        """Return a JobSet."""
        found: Object = self.plane.api.get(jobsets(self.namespace, name))
        return found

    def jobsets(self) -> list[Object]:
        """Return the namespace's JobSets."""
        return self.plane.api.items(jobsets(self.namespace))

    def wait_pods(self, name: str, count: int) -> list[Object]:
        """Wait until a JobSet has `count` pods, running or not, and return them."""
        wait_for(f"{count} pods of {name}", lambda: len(self.pods(name)) == count)
        return self.pods(name)

    def wait_jobs(self, count: int) -> list[Object]:
        """Wait until the namespace has `count` Jobs, and return them."""
        wait_for(f"{count} jobs", lambda: len(self.jobs()) == count)
        return self.jobs()

    def jobs(self) -> list[Object]:
        """Return the namespace's Jobs."""
        return self.plane.api.items(jobs(self.namespace))

    def events(self, name: str) -> set[str]:
        """Return the reasons of the events about a JobSet."""
        found = self.plane.api.items(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        return {event["reason"] for event in found if event["regarding"].get("name") == name}

    def condition(self, name: str, kind: str) -> Object | None:
        """Return a JobSet's condition of a kind if it is true."""
        conditions = self.jobset(name).get("status", {}).get("conditions", ())
        return next((item for item in conditions if item["type"] == kind and item["status"] == "True"), None)

    def wait_condition(self, name: str, kind: str, seconds: float = 60) -> Object:
        """Wait until a JobSet's condition is true, and return it."""
        found = wait_for(f"{kind} of {name}", lambda: self.condition(name, kind), seconds)
        assert found is not None
        return found

    def _claims(self, run: Rendered) -> None:
        """Make the claims that a run mounts, bound to volumes that do nothing."""
        for claim in sorted(set(run.run.volumes.values())):
            volume = f"{self.namespace}-{claim}"
            size = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
            spec = {**size, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/nowhere"}}
            metadata = {"name": volume, "labels": self.label}
            self.plane.api.create("/api/v1/persistentvolumes", {"metadata": metadata, "spec": spec})
            spec = {**size, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}}
            path = core(self.namespace, "persistentvolumeclaims")
            self.plane.api.create(path, {"metadata": {"name": claim}, "spec": spec})

    def remove(self) -> None:
        """Delete everything, and wait until the nodes are free and gone; the namespace's own end takes longer."""
        api = self.plane.api
        api.delete(jobsets(self.namespace), propagationPolicy="Background")
        api.delete(f"/api/v1/namespaces/{self.namespace}")
        pods = core(self.namespace, "pods")
        wait_for(f"the end of {self.namespace}'s pods", lambda: not api.items(pods, limit="1"), 120)
        for kind in OUTSIDE:
            if api.exists(kind):
                api.delete(kind, labelSelector=f"{OWNER}={self.namespace}")


@contextmanager
def sandbox(plane: ControlPlane) -> Iterator[Sandbox]:
    """Yield a new namespace; it and all nodes made for it are gone afterwards."""
    name = f"test-{secrets.token_hex(4)}"
    plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    found = Sandbox(plane, name)
    try:
        yield found
    finally:
        found.remove()


def job_failures(plane: ControlPlane, namespace: str) -> list[tuple[str, str]]:
    """Return reason and message of every failure of a Job in the API server's record, also of Jobs that are gone."""
    found: dict[tuple[str, str], None] = {}
    for job in recorded_jobs(plane):
        if job["metadata"].get("namespace") == namespace:
            for condition in job.get("status", {}).get("conditions", ()):
                if condition["type"] == "Failed":
                    found[condition["reason"], condition["message"]] = None
    return list(found)


def launches(plane: ControlPlane) -> set[str]:
    """Return the uid of every JobSet whose Job was ever unsuspended, by the API server's record."""
    return {
        owner["uid"]
        for job in recorded_jobs(plane)
        if not job["spec"].get("suspend")
        for owner in job["metadata"].get("ownerReferences", ())
        if owner["kind"] == "JobSet"
    }


def recorded_jobs(plane: ControlPlane) -> Iterator[Object]:
    """Yield every Job as the API server's record has it after each write."""
    for event in plane.audit():
        job = event.get("responseObject", {})
        if job.get("kind") == "Job" and "dryRun" not in event["requestURI"]:
            yield job


def dry_run(plane: ControlPlane, jobset: Object) -> ApiError | None:
    """Return why the API server would refuse to create a JobSet, strictly read; nothing if it would not."""
    try:
        plane.api.create(jobsets("default"), jobset, dryRun="All")
    except ApiError as error:
        return error
    return None


def _node(name: str, labels: dict[str, str], slice_: Slice) -> Object:
    label, value = SIMULATED.split("=")
    labels = {
        **labels,
        label: value,
        "kubernetes.io/hostname": name,
        "cloud.google.com/gke-tpu-accelerator": slice_.accelerator.gke_label,
        "cloud.google.com/gke-tpu-topology": slice_.topology,
    }
    chips = str(slice_.chips_per_pod)
    room = {"cpu": "200", "memory": "900Gi", "ephemeral-storage": "1Ti", "pods": "110", "google.com/tpu": chips}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    }
