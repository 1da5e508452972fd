"""rbac/*.yml on a real API server: the identities can do their work, and nothing else, by asking and by trying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from renderer.cluster.api import Api, ApiError, Object, connect, core, jobsets
from renderer.cluster.permissions import denied, of_control, of_runs
from tests.cluster.merges import APPLY, MODEL, Merges
from tests.cluster.node_logs import node_logs
from tests.cluster.plane import ControlPlane
from tests.cluster.sandbox import Sandbox
from tests.cluster.sandbox import sandbox as open_sandbox
from tests.content import SHIPPED, Content, Ran

pytestmark = pytest.mark.cluster

MANIFESTS = Path(__file__).parents[2] / "rbac"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ENVIRONMENT = "renderer/environment"
IDENTITIES = ("apply", "read", "nobody")
PATCH = "application/merge-patch+json"

Rules = set[tuple[str, str, str]]
"""Group, resource and verb."""


@dataclass(frozen=True, slots=True)
class Site:
    """The manifests as installed for `test`, with runs in the sandbox's namespace; `other` is somebody else's."""

    sandbox: Sandbox
    other: Sandbox
    control: str
    kubeconfigs: Mapping[str, Path]

    def api(self, who: str, monkeypatch: pytest.MonkeyPatch) -> Api:
        """Return the client that the commands use, as one of the identities; KUBECONFIG stays set."""
        monkeypatch.setenv("KUBECONFIG", str(self.kubeconfigs[who]))
        return connect()


@pytest.fixture
def site(control_plane: ControlPlane, sandbox: Sandbox, control: str, tmp_path: Path) -> Iterator[Site]:
    with open_sandbox(control_plane) as other:
        made = list(install(control_plane, {"default": sandbox.namespace, "renderer-control": control}))
        kubeconfigs = {who: kubeconfig(control_plane, control, who, tmp_path) for who in IDENTITIES}
        try:
            yield Site(sandbox, other, control, kubeconfigs)
        finally:
            for path in made:
                control_plane.api.delete(path)


def install(plane: ControlPlane, namespaces: Mapping[str, str]) -> Iterator[str]:
    """Create the manifests, without what is prod's, in namespaces of the test's own; yield what outlives these.

    The subjects are service accounts here: each is the user system:serviceaccount:NAMESPACE:NAME.
    """
    control = namespaces["renderer-control"]
    for who in ("apply", "read"):
        for item in yaml.safe_load_all((MANIFESTS / f"{who}.yml").read_text()):
            metadata, kind = item["metadata"], item["kind"].lower() + "s"
            if kind == "namespaces" or metadata.get("labels", {}).get(ENVIRONMENT) == "prod":
                continue
            if "subjects" in item:
                item["subjects"][0]["name"] = f"system:serviceaccount:{control}:{who}"
            if item.get("roleRef", {}).get("kind") == "ClusterRole":
                item["roleRef"]["name"] += f"-{control}"
            if "namespace" in metadata:
                metadata["namespace"] = namespaces[metadata["namespace"]]
                plane.api.create(f"{RBAC}/namespaces/{metadata['namespace']}/{kind}", item)
            else:
                metadata["name"] += f"-{control}"
                plane.api.create(f"{RBAC}/{kind}", item)
                yield f"{RBAC}/{kind}/{metadata['name']}"


def kubeconfig(plane: ControlPlane, namespace: str, who: str, folder: Path) -> Path:
    """Make a service account and return a kubeconfig with its token."""
    plane.api.create(core(namespace, "serviceaccounts"), {"metadata": {"name": who}})
    path = f"{core(namespace, 'serviceaccounts', who)}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    data = yaml.safe_load(plane.kubeconfig.read_text())
    data["users"][0]["user"] = {"token": plane.api.create(path, request)["status"]["token"]}
    (folder / f"{who}.kubeconfig").write_text(yaml.safe_dump(data))
    return folder / f"{who}.kubeconfig"


def rules_of(api: Api, namespace: str) -> Rules:
    """Return what the API server says that the caller may do in a namespace."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    status = api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {}, review)["status"]
    assert not status["incomplete"]
    return flat(status["resourceRules"])


def flat(rules: list[Object]) -> Rules:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def written(who: str, kind: str, name: str) -> Rules:
    """Return the rules of a role as the file has them."""
    found = yaml.safe_load_all((MANIFESTS / f"{who}.yml").read_text())
    (rules,) = [item["rules"] for item in found if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    return flat(rules)


@pytest.mark.parametrize("who", ["apply", "read"])
def test_the_api_server_allows_what_is_written_and_nothing_else(
    site: Site, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    everywhere = written(who, "ClusterRole", f"renderer-{who}-cluster")
    expected = {
        site.sandbox.namespace: written(who, "ClusterRole", f"renderer-{who}") | everywhere,
        site.control: written(who, "Role", f"renderer-{who}") | everywhere,
        site.other.namespace: everywhere,
        "kube-system": everywhere,
    }
    with closing(site.api("nobody", monkeypatch)) as nobody, closing(site.api(who, monkeypatch)) as api:
        for namespace, rules in expected.items():
            assert rules_of(api, namespace) - rules_of(nobody, namespace) == rules


def test_apply_lacks_nothing_of_what_launching_asks_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(site.api("apply", monkeypatch)) as api:
        assert denied(api, of_runs(site.sandbox.namespace)) == ()
        assert denied(api, of_control(site.control)) == ()
        assert denied(api, of_runs(site.other.namespace)) == tuple(of_runs(site.other.namespace))
    with closing(site.api("read", monkeypatch)) as api:
        assert {item.verb for item in denied(api, of_runs(site.sandbox.namespace))} == {"create", "delete", "patch"}


JOBSET: Object = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "theirs"},
    "spec": {
        "suspend": True,
        "replicatedJobs": [
            {
                "name": "job",
                "template": {
                    "spec": {
                        "template": {
                            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example"}]}
                        }
                    }
                },
            }
        ],
    },
}
CONFIG_MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "run"}, "data": {}}
POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod"},
    "spec": {"containers": [{"name": "c", "image": "example"}]},
}
NO_ONE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "someone"}


def bound(role: str) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [NO_ONE],
    }


Try = tuple[str, str, Any]
"""Method, path and body of a request."""


def beyond_both(site: Site) -> list[Try]:
    """Return requests that neither identity may make."""
    runs, other, control = site.sandbox.namespace, site.other.namespace, site.control
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return [
        *(("GET", core(namespace, "secrets"), None) for namespace in (runs, other, control, "kube-system")),
        ("GET", core(runs, "secrets", "token"), None),
        ("POST", core(runs, "secrets"), {"metadata": {"name": "mine"}}),
        ("GET", "/api/v1/pods", None),
        ("GET", "/apis/jobset.x-k8s.io/v1alpha2/jobsets", None),
        ("GET", jobsets(other, "theirs"), None),
        ("POST", jobsets(other), JOBSET),
        ("PATCH", jobsets(other, "theirs"), {"spec": {"suspend": False}}),
        ("DELETE", jobsets(other, "theirs"), None),
        ("DELETE", jobsets(runs), None),
        ("PATCH", f"{jobsets(runs, 'theirs')}/status", {"status": {}}),
        ("POST", core(runs, "pods"), POD),
        ("DELETE", core(runs, "pods", "pod"), None),
        ("POST", f"{core(runs, 'pods', 'pod')}/exec?command=id&container=c&stdout=true", None),
        ("GET", core("kube-system", "configmaps"), None),
        ("DELETE", core(control, "configmaps", "run"), None),
        ("DELETE", core(control, "configmaps"), None),
        ("PATCH", core(control, "configmaps", "run"), {"data": {"state": "stopped"}}),
        ("POST", core(control, "pods"), POD),
        ("GET", "/api/v1/namespaces", None),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}}),
        ("DELETE", f"/api/v1/namespaces/{runs}", None),
        ("DELETE", "/api/v1/nodes/node", None),
        ("PATCH", "/api/v1/nodes/node", {"spec": {"unschedulable": True}}),
        ("POST", f"{RBAC}/namespaces/{runs}/rolebindings", bound("cluster-admin")),
        ("POST", f"{RBAC}/namespaces/{other}/rolebindings", bound(f"renderer-apply-{control}")),
        ("POST", f"{core(control, 'serviceaccounts', 'apply')}/token", token),
        ("PATCH", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/tpu", {"spec": {}}),
        ("PATCH", f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{runs}/workloads/run", {"spec": {"active": False}}),
    ]


def beyond_reading(site: Site) -> list[Try]:
    """Return requests that only apply may make."""
    runs, control = site.sandbox.namespace, site.control
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "output"},
        "spec": {"holderIdentity": "x"},
    }
    return [
        ("POST", f"{jobsets(runs)}?dryRun=All", JOBSET),  # RBAC knows no dry run: it takes the same verb
        ("POST", jobsets(runs), JOBSET),
        ("PATCH", jobsets(runs, "theirs"), {"spec": {"suspend": False}}),
        ("DELETE", jobsets(runs, "theirs"), None),
        ("POST", core(runs, "configmaps"), CONFIG_MAP),
        ("DELETE", core(runs, "configmaps", "run"), None),
        ("POST", core(runs, "events"), {"metadata": {"name": "launched"}}),
        ("POST", core(control, "configmaps"), CONFIG_MAP),
        ("PUT", core(control, "configmaps", "run"), CONFIG_MAP),
        ("POST", f"/apis/coordination.k8s.io/v1/namespaces/{control}/leases", lease),
        ("PUT", f"/apis/coordination.k8s.io/v1/namespaces/{control}/leases/output", lease),
    ]


def answers(api: Api, tries: list[Try]) -> dict[str, int]:
    """Make every request, and return the HTTP status of those that were not forbidden."""
    found = {}
    for method, path, body in tries:
        try:
            api.call(method, path, {}, body, PATCH if method == "PATCH" else "application/json")
            status = int(HTTPStatus.OK)
        except ApiError as error:
            status = error.status
        if status != HTTPStatus.FORBIDDEN:
            found[f"{method} {path}"] = status
    return found


@pytest.fixture
def theirs(site: Site) -> None:
    """Let what is tried exist: a JobSet in either namespace, a secret, an entry of the ledger."""
    api = site.sandbox.plane.api
    for namespace in (site.sandbox.namespace, site.other.namespace):
        api.create(jobsets(namespace), JOBSET)
    api.create(core(site.sandbox.namespace, "secrets"), {"metadata": {"name": "token"}, "stringData": {"token": "x"}})
    for namespace in (site.sandbox.namespace, site.control):
        api.create(core(namespace, "configmaps"), CONFIG_MAP)


@pytest.mark.parametrize("who", ["apply", "read"])
def test_neither_reaches_further(site: Site, theirs: None, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(site.api(who, monkeypatch)) as api:
        assert answers(api, beyond_both(site)) == {}


def test_reading_changes_nothing(site: Site, theirs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(site.api("read", monkeypatch)) as api:
        assert answers(api, beyond_reading(site)) == {}
    with closing(site.api("apply", monkeypatch)) as api:
        assert len(answers(api, beyond_reading(site))) == len(beyond_reading(site))


@pytest.fixture
def merges(site: Site, tmp_path: Path) -> Merges:
    """A repository whose runs of test may be in the sandbox's namespace; those of prod would be in another."""
    content = Content(tmp_path / "repository")
    identity = site.sandbox.plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    clusters = (SHIPPED / "presets/clusters.yml").read_text()
    for path, text in {
        f"presets/{MODEL}/model.yml": (SHIPPED / f"presets/{MODEL}/model.yml").read_text(),
        f"presets/{MODEL}/topology/4chips/4k.yml": TOPOLOGY,
        f"presets/{MODEL}/environment/test.yml": PRESET.format(namespace=site.sandbox.namespace),
        "presets/policy.yml": POLICY.format(test=site.sandbox.namespace, prod=site.other.namespace),
        "presets/clusters.yml": clusters.replace("00000000-0000-4000-8000-000000000002", identity),
    }.items():
        content.write(path, text)
    made = Merges(site.sandbox.plane, content, site.sandbox.namespace)
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit()
    return made


TOPOLOGY = """\
deploy:
  TPU_TOPOLOGY: 2x2x1
  COMPLETIONS: 1
maxtext:
  ici_fsdp_parallelism: 8
  ici_data_parallelism: 1
  ici_context_parallelism: 1
  per_device_batch_size: 1
  gradient_accumulation_steps: 1
  max_target_length: 4096
"""
PRESET = """\
deploy:
  K8S_NAMESPACE: {namespace}
  K8S_MAX_RESTARTS: 0
  GCS_BUCKET: example-maxtext-test
maxtext:
  base_output_directory: gs://example-maxtext-test/runs
  steps: 20
  enable_checkpointing: false
"""
POLICY = """\
environments:
  test:
    namespaces: [{test}]
  prod:
    namespaces: [{prod}]
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """The repository of runs, with a run in its first commit after the marker."""

    site: Site
    merges: Merges
    name: str
    monkeypatch: pytest.MonkeyPatch

    def run(self, who: str, *words: str) -> Ran:
        """Run the renderer as one of the identities."""
        self.monkeypatch.setenv("KUBECONFIG", str(self.site.kubeconfigs[who]))
        return self.merges.content.run(*words)

    def well(self, who: str, *words: str) -> str:
        """Run the renderer, which must do what it is asked, and return what it prints."""
        ran = self.run(who, *words)
        assert ran.code == 0, ran.out + ran.err
        return ran.out

    def launch(self) -> None:
        """Apply the run, and wait until it is running."""
        self.well("apply", *APPLY)
        self.site.sandbox.wait_running(self.name, 1)


@pytest.fixture
def scene(site: Site, merges: Merges, monkeypatch: pytest.MonkeyPatch) -> Scene:
    site.sandbox.pool("2x2x1")
    adopted = Scene(site, merges, "", monkeypatch)
    adopted.well("apply", *APPLY, "--adopt")
    merges.add(["one"])
    return Scene(site, merges, merges.names["one"], monkeypatch)


def test_apply_launches_stops_and_cleans_up(scene: Scene) -> None:
    assert "0 errors" in scene.well("apply", "preflight", "--environment", "test")
    assert scene.name in scene.well("apply", *APPLY, "--dry-run")
    scene.launch()
    assert "Launched" in scene.site.sandbox.events(scene.name)
    scene.well("apply", "stop", scene.name, "--yes")
    assert scene.site.sandbox.jobsets() == []
    scene.well("apply", "cleanup", "--environment", "test", "--yes")
    assert "nothing to do" in scene.well("apply", *APPLY)


def test_reading_watches_a_run_and_cannot_stop_it(scene: Scene, tmp_path: Path) -> None:
    sandbox = scene.site.sandbox
    scene.launch()
    assert scene.name in scene.well("read", "status", "--environment", "test")
    with node_logs(sandbox, tmp_path) as nodes:
        nodes.of(sandbox.pods(scene.name)[0]).write("completed step: 3")
        assert "completed step: 3" in scene.well("read", "logs", scene.name)
    scene.well("read", "drift", "--environment", "test")
    assert scene.run("read", "stop", scene.name, "--yes").code == 1
    assert len(sandbox.jobsets()) == 1


def test_reading_can_plan_and_cannot_apply(scene: Scene) -> None:
    assert scene.name in scene.well("read", *APPLY, "--dry-run")
    assert scene.run("read", *APPLY).code == 1
    assert scene.site.sandbox.jobsets() == []
