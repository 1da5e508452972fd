"""rbac/*.yml on a real API server, by asking it and by single requests: the identities may do nothing else."""

from __future__ import annotations

from contextlib import closing
from http import HTTPStatus
from typing import Any

import pytest
import yaml

from renderer.cluster.api import Api, ApiError, Object, core, jobsets
from renderer.cluster.permissions import denied, of_control, of_runs
from tests.cluster.rbac_site import MANIFESTS, RBAC, Site

pytestmark = pytest.mark.cluster

PATCH = "application/merge-patch+json"

Rules = set[tuple[str, str, str]]
"""Group, resource and verb."""


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
