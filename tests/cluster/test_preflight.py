"""Preflight on a real control plane: what is really missing is found, and gone once what is printed was typed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from renderer.cluster.api import Api
from renderer.cluster.facts import gather
from renderer.cluster.findings import Finding
from renderer.cluster.needs import Needs, needs
from renderer.cluster.preflight import check
from renderer.manifest_yaml import load
from renderer.outputs import Rendered
from renderer.policy import Rules
from tests.cluster.api import core, jobsets, wait_for
from tests.cluster.build import program
from tests.cluster.control import client
from tests.cluster.plane import ControlPlane
from tests.cluster.queues import add_queue, workload
from tests.cluster.runs import variant
from tests.cluster.sandbox import Sandbox

pytestmark = pytest.mark.cluster

TOPOLOGY, HOSTS, CHIPS = "2x4x4", 8, 32  # no other test has nodes of it
FLAVOR = "1xtpu7x-64"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


class Scene:
    """A run, judged on a control plane, and what is done there."""

    def __init__(self, sandbox: Sandbox, api: Api) -> None:
        self.sandbox, self.plane, self.api = sandbox, sandbox.plane, api

    def run(self, **changes: Any) -> Rendered:
        return variant(TOPOLOGY, **{"namespace": self.sandbox.namespace, **changes})

    def judge(self, api: Api | None = None, **changes: Any) -> list[Finding]:
        asked = read(self.run(**changes))
        return check(gather(api or self.api, [asked.namespace]), asked, None, Rules())

    def only(self, **changes: Any) -> Finding:
        (finding,) = self.judge(**changes)
        return finding

    def mend(self, finding: Finding, stdin: str = "") -> None:
        """Type the remedy."""
        kubectl = f'kubectl() {{ "{program("kubectl")}" --kubeconfig "{self.plane.kubeconfig}" "$@"; }}'
        done = subprocess.run(
            ["bash", "-c", f"set -e\n{kubectl}\n{finding.remedy}"],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    @contextmanager
    def removing(self, *paths: str) -> Iterator[None]:
        """Remove objects outside the sandbox in the end."""
        try:
            yield
        finally:
            for path in paths:
                self.plane.api.delete(path)


def read(run: Rendered) -> Needs:
    watcher = run.files.get("watcher.yml")
    return needs(load(run.files["jobset.yml"].decode()), load(watcher.decode()) if watcher else None)


@pytest.fixture
def scene(sandbox_with_kueue: Sandbox, control_with_kueue: str, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A sandbox with nodes for the run: nothing is missing."""
    sandbox_with_kueue.pool(TOPOLOGY)
    found = Scene(sandbox_with_kueue, client(sandbox_with_kueue.plane, monkeypatch))
    flavor = f"{KUEUE}/resourceflavors/{FLAVOR}"  # stays until the queues of the test before are gone
    wait_for(f"the end of {FLAVOR}", lambda: not found.plane.api.exists(flavor))
    assert found.judge() == []
    return found


def test_one_look_is_few_requests(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    call = Api.call
    monkeypatch.setattr(Api, "call", lambda *args, **names: (asked.append(args[1:3]), call(*args, **names))[1])
    gather(scene.api, [scene.sandbox.namespace])
    assert len(asked) == 17, asked


def test_a_namespace(scene: Scene) -> None:
    name = f"{scene.sandbox.namespace}-more"
    finding = scene.only(namespace=name)
    assert finding.what == f"namespace {name} does not exist"
    with scene.removing(f"/api/v1/namespaces/{name}"):
        scene.mend(finding)
        assert scene.judge(namespace=name) == []


def test_nodes(scene: Scene) -> None:
    pool = scene.sandbox.pools[0]
    scene.plane.api.delete(f"/api/v1/nodes/{pool}-0")
    assert scene.only().what == (
        f"no node pool of tpu7x {TOPOLOGY} has {HOSTS} nodes: the largest, {pool}, has {HOSTS - 1}"
    )
    for index in range(1, HOSTS):
        scene.plane.api.delete(f"/api/v1/nodes/{pool}-{index}")
    assert scene.only().what == f"there are no nodes of tpu7x {TOPOLOGY}: the run needs {HOSTS} in one node pool"
    scene.sandbox.pool(TOPOLOGY)
    assert scene.judge() == []


def test_a_claim(scene: Scene, only_own: None) -> None:
    space = scene.sandbox.namespace
    run = {"volumes": {"/data": "data"}}
    claim, driver = scene.judge(**run)
    assert claim.what == f"claim data does not exist in {space}"
    assert driver.what == "the CSI driver gcsfuse.csi.storage.gke.io is not installed"
    with scene.removing("/apis/storage.k8s.io/v1/csidrivers/gcsfuse.csi.storage.gke.io"):
        body = {"metadata": {"name": "gcsfuse.csi.storage.gke.io"}, "spec": {}}
        scene.plane.api.create("/apis/storage.k8s.io/v1/csidrivers", body)
        assert scene.only(**run) == claim
        with scene.removing(f"/api/v1/persistentvolumes/{space}-data"):
            scene.mend(claim)
            wait_for("the claim to be bound", lambda: scene.judge(**run) == [])


def test_a_claim_that_is_not_bound(scene: Scene) -> None:
    api, space = scene.plane.api, scene.sandbox.namespace
    storage = "/apis/storage.k8s.io/v1/storageclasses"
    name = f"{space}-late"
    late = {"metadata": {"name": name}, "provisioner": "none", "volumeBindingMode": "WaitForFirstConsumer"}
    with scene.removing(f"{storage}/{name}"):
        api.create(storage, late)
        for claim, kind in (("broken", "nowhere"), ("waiting", name)):
            size = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
            body = {"metadata": {"name": claim}, "spec": {**size, "storageClassName": kind}}
            api.create(core(space, "persistentvolumeclaims"), body)
        said = {
            finding.what: finding.severity.value
            for finding in scene.judge(volumes={"/a": "broken", "/b": "waiting"})
            if "claim" in finding.what
        }
    assert said == {
        f"claim broken of {space} is not bound": "error",
        f"claim waiting of {space} is not bound: its storage class waits for the first pod": "warning",
    }


def test_a_secret_is_mended_by_typing_it_and_never_read(scene: Scene) -> None:
    space = scene.sandbox.namespace
    finding = scene.only(github_token_secret="token")
    assert finding.what == f"secret token does not exist in {space}; the run starts without it"
    scene.mend(finding, stdin="not-to-be-seen\n")
    found = scene.plane.api.get(core(space, "secrets", "token"))
    assert found["data"] == {"GITHUB_TOKEN": "bm90LXRvLWJlLXNlZW4="}
    assert scene.judge(github_token_secret="token") == []
    (read,) = scene.api.items(core(space, "secrets"), only_metadata=True)
    assert (read["kind"], read.keys() & {"data", "stringData"}) == ("PartialObjectMetadata", set())


def test_a_priority_class(scene: Scene) -> None:
    name = f"{scene.sandbox.namespace}-high"
    finding = scene.only(priority_class=name)
    assert finding.what == f"PriorityClass {name} does not exist"
    with scene.removing(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}"):
        scene.mend(finding)
        assert scene.judge(priority_class=name) == []


def test_a_service_account(scene: Scene) -> None:
    finding = scene.only(service_account="trainer")
    assert finding.what == f"service account trainer does not exist in {scene.sandbox.namespace}"
    scene.mend(finding)
    assert scene.judge(service_account="trainer") == []


def test_a_queue_from_nothing(scene: Scene) -> None:
    finding = scene.only(queue="tpu")
    assert finding.what == f"LocalQueue tpu does not exist in {scene.sandbox.namespace}, which has: none"
    scene.mend(finding)
    finding = scene.only(queue="tpu")
    behind = f"behind queue tpu of {scene.sandbox.namespace}"
    assert finding.what == f"ClusterQueue cluster-queue does not exist, {behind}"
    with scene.removing(f"{KUEUE}/clusterqueues/cluster-queue", f"{KUEUE}/resourceflavors/{FLAVOR}"):
        scene.mend(finding)
        assert admitted(scene)


def admitted(scene: Scene) -> bool:
    """Whether preflight finds nothing and Kueue indeed lets the run start."""
    wait_for("preflight to find nothing", lambda: scene.judge(queue="tpu") == [])
    name = scene.sandbox.hold(scene.run(queue="tpu"))
    scene.sandbox.hand_over(name, "tpu")
    scene.sandbox.wait_running(name, HOSTS)
    return True


def refused(scene: Scene) -> str:
    """Return why Kueue lets the run wait; the run is gone then."""
    name = scene.sandbox.hold(scene.run(queue="tpu", name="waits"))
    scene.sandbox.hand_over(name, "tpu")

    def reason() -> str:
        condition = workload(scene.sandbox, name, "QuotaReserved")
        message = condition["message"] if condition and condition["status"] == "False" else ""
        return "" if "doesn't exist" in message else str(message)

    found = str(wait_for("Kueue's reason", reason))
    path = jobsets(scene.sandbox.namespace, name)
    scene.plane.api.delete(path)
    wait_for("the end of the run that waits", lambda: not scene.plane.api.exists(path))
    return found


def queue(scene: Scene, change: dict[str, Any]) -> None:
    """Add a queue that fits, and change its ClusterQueue."""
    add_queue(scene.sandbox, "tpu", TOPOLOGY, CHIPS)
    assert scene.judge(queue="tpu") == []
    scene.plane.api.patch(f"{KUEUE}/clusterqueues/{scene.sandbox.namespace}-tpu", {"spec": change})


def resources(flavor: str, chips: int, resource: str = "google.com/tpu") -> dict[str, Any]:
    quota = {"name": flavor, "resources": [{"name": resource, "nominalQuota": chips}]}
    return {"resourceGroups": [{"coveredResources": [resource], "flavors": [quota]}]}


def test_a_quota_below_what_the_run_asks(scene: Scene) -> None:
    name = f"{scene.sandbox.namespace}-tpu"
    queue(scene, resources(name, CHIPS // 2))
    finding = scene.only(queue="tpu")
    assert finding.what == f"ClusterQueue {name} has 16 chips of flavor {name}, the run asks for 32"
    assert "insufficient quota for google.com/tpu" in refused(scene)
    scene.mend(finding)
    assert admitted(scene)


def test_a_quota_that_is_taken(scene: Scene) -> None:
    queue(scene, {})
    assert admitted(scene)
    name = f"{scene.sandbox.namespace}-tpu"
    finding = wait_for("the quota to be taken", lambda: scene.judge(queue="tpu"))[0]
    assert finding.severity.value == "warning"
    assert finding.what == (
        f"ClusterQueue {name} has 32 chips of flavor {name}, 32 of them taken, the run asks for 32: it will wait"
    )


@pytest.mark.parametrize("labels", [{"team": "b"}, None])
def test_a_namespace_that_kueue_does_not_manage(scene: Scene, labels: dict[str, str] | None) -> None:
    queue(scene, {"namespaceSelector": {"matchLabels": labels} if labels else None})
    name = f"{scene.sandbox.namespace}-tpu"
    finding = scene.only(queue="tpu")
    assert finding.what == (
        f"ClusterQueue {name} does not serve namespace {scene.sandbox.namespace}: "
        "its namespaceSelector does not match the labels"
    )
    assert refused(scene) == "Workload namespace doesn't match ClusterQueue selector"
    scene.mend(finding)
    assert admitted(scene)


@pytest.mark.parametrize("resource", ["google.com/tpu", "cpu"])
def test_no_flavor_with_the_nodes_labels(scene: Scene, resource: str) -> None:
    other = f"{scene.sandbox.namespace}-other"
    labels = {"cloud.google.com/gke-tpu-accelerator": "tpu7x", "cloud.google.com/gke-tpu-topology": "4x4x8"}
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": other, "labels": scene.sandbox.label},
        "spec": {"nodeLabels": labels},
    }
    scene.plane.api.create(f"{KUEUE}/resourceflavors", flavor)
    queue(scene, resources(other, CHIPS, resource))
    finding = scene.only(queue="tpu")
    assert finding.what == f"ClusterQueue {scene.sandbox.namespace}-tpu has no flavor for nodes of tpu7x {TOPOLOGY}"
    words = "doesn't match node affinity" if resource == "google.com/tpu" else "google.com/tpu unavailable"
    assert words in refused(scene)
    with scene.removing(f"{KUEUE}/resourceflavors/{FLAVOR}"):
        scene.mend(finding)
        assert admitted(scene)


def test_a_default_queue_that_would_catch_an_unqueued_run(scene: Scene) -> None:
    add_queue(scene.sandbox, "default", TOPOLOGY, CHIPS)
    finding = scene.only()
    assert finding.severity.value == "warning"
    assert finding.what == (
        f"LocalQueue default of {scene.sandbox.namespace} takes every JobSet without a queue, and the run names none"
    )
    assert scene.judge(queue="default") == []
    scene.mend(finding)
    wait_for("the queue's end", lambda: scene.judge() == [])


def test_without_kueue(sandbox: Sandbox, control: str, only_own: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.pool(TOPOLOGY)
    scene = Scene(sandbox, client(sandbox.plane, monkeypatch))
    assert scene.judge() == []
    assert scene.only(queue="tpu").what == "Kueue is not installed, and the run waits in queue tpu"


def visitor(plane: ControlPlane, namespace: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    """Return a client with an identity of its own that may do nothing."""
    made = plane.kubectl("create", "serviceaccount", "visitor", "-n", namespace)
    assert made.returncode == 0, made.stderr
    token = plane.kubectl("create", "token", "visitor", "-n", namespace).stdout.strip()
    config = json.loads(plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    path = folder / "visitor.kubeconfig"
    path.write_text(json.dumps(config))
    own = ControlPlane(plane.folder, path, plane.api, plane.running, 0)
    return client(own, monkeypatch)


def test_permissions(scene: Scene, control_with_kueue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = scene.sandbox.namespace
    api = visitor(scene.plane, space, tmp_path, monkeypatch)
    who = f"system:serviceaccount:{space}:visitor"
    run = {"queue": "tpu", "github_token_secret": "token"}
    findings = scene.judge(api, **run)
    assert [f"{finding.severity.value}: {finding.what}" for finding in findings] == [
        f"warning: unknown whether namespace {control_with_kueue} exists: {who} may not get namespaces",
        f"warning: unknown whether namespace {space} exists: {who} may not get namespaces",
        f"warning: unknown whether there are nodes of tpu7x {TOPOLOGY}: {who} may not list nodes",
        f"warning: unknown whether secret token exists in {space}: {who} may not list secrets in {space}",
        f"warning: unknown whether queue tpu exists: {who} may not list localqueues.kueue.x-k8s.io in {space}",
        f"warning: {who} only reads; to apply it would need in {control_with_kueue}: create configmaps, "
        "get configmaps, list configmaps, "
        "update configmaps, create leases.coordination.k8s.io, get leases.coordination.k8s.io, "
        "update leases.coordination.k8s.io",
        f"warning: {who} only reads; to apply it would need in {space}: create configmaps, "
        "delete configmaps, patch configmaps, create events, "
        "list pods, create jobsets.jobset.x-k8s.io, delete jobsets.jobset.x-k8s.io, get jobsets.jobset.x-k8s.io, "
        "patch jobsets.jobset.x-k8s.io",
    ]
    made = [f"renderer-{what}" for what in ("get-namespaces", "list-nodes")]
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    mended = dict.fromkeys(finding.remedy for finding in findings if "get secret" not in finding.remedy)
    bound = [f"{roles.removesuffix('s')}bindings/{name}-{tag(findings)}" for name in made]
    with scene.removing(*(f"{roles}/{name}" for name in made), *bound):
        scene.mend(findings[-2])  # now it is one that applies, and may not in one namespace
        assert [finding.what for finding in scene.judge(api, **run) if finding.severity.value == "error"] == [
            f"{who} may not in {space}: {findings[-1].what.split(f' in {space}: ')[1]}"
        ]
        for remedy in mended:
            scene.mend(Finding(findings[0].severity, "", remedy))
        after = [finding.what for finding in scene.judge(api, **run)]
    assert after == [
        f"unknown whether secret token exists in {space}: {who} may not list secrets in {space}",
        f"LocalQueue tpu does not exist in {space}, which has: none",
    ]


def tag(findings: list[Finding]) -> str:
    """Return what stands for the caller in the names of the bindings."""
    return findings[0].remedy.split("renderer-get-namespaces-")[1].split()[0]
