"""What preflight finds, on facts made by hand."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import yaml

from renderer.cluster.facts import Claim, Control, Facts
from renderer.cluster.needs import SecretKey
from renderer.cluster.permissions import of_control, of_runs
from renderer.policy import Rules
from tests.cluster_unit.ready_cluster import IDENTITY, RUN, facts, judge, namespace, said, unknown
from tests.content import SHIPPED

NODES = "nodes of tpu7x 4x4x8"


def test_a_ready_cluster_lacks_nothing() -> None:
    assert judge(facts()) == []
    assert judge(facts(), cluster=None) == []


def test_of_another_cluster_nothing_else_is_said() -> None:
    other = "00000000-0000-4000-8000-000000000001"
    (finding,) = judge(facts(identity=other, jobset=(), pools={}))
    assert said([finding]) == [
        f"error: this cluster is not prod-tpu7x: its identity is {other}, presets/clusters.yml says {IDENTITY}"
    ]
    assert (
        finding.remedy
        == f"""\
# Turn kubectl to the cluster:
gcloud container clusters get-credentials tpu-prod --region=us-central1 --project=p-1
# If this is the cluster, correct presets/clusters.yml: identity: {other}"""
    )


@pytest.mark.parametrize(
    ("found", "what", "remedy"),
    [
        (
            facts(jobset=()),
            "error: JobSet is not installed",
            "kubectl apply --server-side -f "
            "https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml",
        ),
        (
            facts(jobset=("jobset.x-k8s.io/v1alpha1", "jobset.x-k8s.io/v1")),
            "error: JobSet does not serve jobset.x-k8s.io/v1alpha2, only jobset.x-k8s.io/v1alpha1, jobset.x-k8s.io/v1",
            "kubectl apply --server-side -f "
            "https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml",
        ),
        (namespace(labels=None), "error: namespace training does not exist", "kubectl create namespace training"),
        (
            facts(control=Control("renderer-control", exists=False, denied=())),
            "error: namespace renderer-control does not exist",
            "kubectl create namespace renderer-control",
        ),
        (
            namespace(claims={}),
            "error: claim data does not exist in training",
            """\
# volumeHandle is the bucket to mount: here the one that the run writes to.
kubectl apply -f - <<'EOF'
apiVersion: v1
kind: PersistentVolume
metadata: {name: "training-data"}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  capacity: {storage: 1Ti}
  claimRef: {namespace: "training", name: "data"}
  mountOptions: [implicit-dirs]
  csi:
    driver: gcsfuse.csi.storage.gke.io
    volumeHandle: "b"
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "data", namespace: "training"}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  resources: {requests: {storage: 1Ti}}
  volumeName: "training-data"
EOF""",
        ),
        (
            namespace(claims={"data": Claim(bound=False)}),
            "error: claim data of training is not bound",
            "# Its events say why; usually its volume or storage class is missing.\n"
            "kubectl describe persistentvolumeclaim data -n training",
        ),
        (
            facts(gcs_fuse=False),
            "error: the CSI driver gcsfuse.csi.storage.gke.io is not installed",
            "gcloud container clusters update tpu-prod --location=us-central1 --project=p-1 "
            "--update-addons=GcsFuseCsiDriver=ENABLED",
        ),
        (
            facts(priority_classes=frozenset({"very-high"})),
            "error: PriorityClass high does not exist",
            "kubectl create priorityclass high --value=750",
        ),
        (
            namespace(service_accounts=frozenset({"default", "trainer"})),
            "error: service account hf-watcher does not exist in training",
            "kubectl create serviceaccount hf-watcher -n training",
        ),
    ],
)
def test_what_is_missing_and_what_to_type(found: Facts, what: str, remedy: str) -> None:
    (finding,) = judge(found)
    assert said([finding]) == [what]
    assert finding.remedy == remedy


def test_everything_at_once_in_the_order_to_mend_it() -> None:
    bare = facts(
        jobset=(),
        pools={},
        gcs_fuse=False,
        priority_classes=frozenset(),
        kueue=None,
        control=Control("renderer-control", exists=False, denied=()),
        namespaces=namespace(
            labels=None, claims={}, secrets=frozenset(), service_accounts=frozenset(), queues={}
        ).namespaces,
    )
    findings = judge(bare)
    assert said(findings) == [
        "error: JobSet is not installed",
        "error: namespace renderer-control does not exist",
        "error: namespace training does not exist",
        f"error: there are no {NODES}: the run needs 32 in one node pool",
        "error: claim data does not exist in training",
        "error: the CSI driver gcsfuse.csi.storage.gke.io is not installed",
        "warning: secret token does not exist in training; the run starts without it",
        "error: Kueue is not installed, and the run waits in queue tpu",
        "error: PriorityClass high does not exist",
        "error: service account trainer does not exist in training",
        "error: service account hf-watcher does not exist in training",
    ]
    for finding in findings:
        done = subprocess.run(["bash", "-n", "-c", finding.remedy], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), finding.remedy


@pytest.mark.parametrize(
    ("pools", "what"),
    [
        ({}, f"there are no {NODES}: the run needs 32 in one node pool"),
        ({("tpu7x", "4x4x4"): {"a": 32}}, f"there are no {NODES}: the run needs 32 in one node pool"),
        ({("tpu-v5p-slice", "4x4x8"): {"a": 32}}, f"there are no {NODES}: the run needs 32 in one node pool"),
        (
            {("tpu7x", "4x4x8"): {"a": 16, "b": 31}},
            "no node pool of tpu7x 4x4x8 has 32 nodes: the largest, b, has 31",
        ),
    ],
)
def test_one_node_pool_must_hold_the_whole_slice(pools: Any, what: str) -> None:
    assert said(judge(facts(pools=pools))) == [f"error: {what}"]
    grows = judge(facts(pools=pools), rules=Rules(scale_from_zero=True))
    assert said(grows) == [f"warning: {what}; by presets/policy.yml pools grow when a run waits"]
    assert grows[0].remedy == judge(facts(pools=pools))[0].remedy


def test_without_a_cluster_in_clusters_yml_the_remedy_asks_for_it() -> None:
    findings = judge(facts(pools={}, gcs_fuse=False), cluster=None)
    assert {finding.remedy for finding in findings} == {
        "# Name the environment's cluster in presets/clusters.yml: then the commands are printed here."
    }


def test_a_topology_that_nobody_knows_gets_no_commands() -> None:
    selector = {**RUN.selector, "cloud.google.com/gke-tpu-topology": "5x5x5"}
    (nodes, flavor) = judge(facts(), selector=selector)
    assert nodes.remedy == flavor.remedy == "# 'tpu7x' has no topology '5x5x5' that is known: run renderer render."


def test_a_claim_whose_class_waits_for_a_pod_is_no_error() -> None:
    assert said(judge(namespace(claims={"data": Claim(bound=False, waits=True)}))) == [
        "warning: claim data of training is not bound: its storage class waits for the first pod"
    ]


@pytest.mark.parametrize(
    ("required", "what"),
    [
        (True, "error: secret s does not exist in training"),
        (False, "warning: secret s does not exist in training; the run starts without it"),
    ],
)
def test_only_a_required_secret_is_an_error(required: bool, what: str) -> None:
    (finding,) = judge(facts(), secrets=(SecretKey("s", "KEY", required),))
    assert said([finding]) == [what]
    assert finding.remedy == (
        "# In bash: asks for the value.\n"
        "IFS= read -rsp 'KEY: ' VALUE && printf %s \"$VALUE\" | "
        "kubectl create secret generic s -n training --from-file=KEY=/dev/stdin; unset VALUE"
    )


def test_a_run_without_claims_needs_no_driver() -> None:
    assert judge(facts(gcs_fuse=False), gcs_fuse=False, claims=()) == []


def test_a_priority_class_that_xpk_does_not_know_gets_a_value_to_choose() -> None:
    (finding,) = judge(facts(), priority_class="urgent")
    assert finding.remedy == (
        "# Choose the value; xpk's are: very-low 100, low 250, medium 500, high 750, very-high 1000.\n"
        "kubectl create priorityclass urgent --value=500"
    )


def test_each_missing_verb_is_named_and_one_manifest_mends_all() -> None:
    lacking = tuple(item for item in of_runs("training") if item.resource in {"jobsets", "events"})
    (finding,) = judge(namespace(denied=lacking))
    assert said([finding]) == [
        "error: apply@p-1 may not in training: create events, create jobsets.jobset.x-k8s.io, "
        "delete jobsets.jobset.x-k8s.io, get jobsets.jobset.x-k8s.io, patch jobsets.jobset.x-k8s.io"
    ]
    assert (
        finding.remedy
        == """\
kubectl apply -f - <<'EOF'
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "renderer-apply-1503db76", namespace: "training"}
rules:
  - {apiGroups: [""], resources: [configmaps], verbs: [create, delete, patch]}
  - {apiGroups: [""], resources: [events], verbs: [create]}
  - {apiGroups: [""], resources: [pods], verbs: [list]}
  - {apiGroups: ["jobset.x-k8s.io"], resources: [jobsets], verbs: [create, delete, get, patch]}
  - {apiGroups: ["apps"], resources: [deployments], verbs: [create, delete, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "renderer-apply-1503db76", namespace: "training"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "renderer-apply-1503db76"}
subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: User, name: "apply@p-1"}
EOF"""
    )


def test_the_watcher_s_permissions_are_asked_for_only_with_a_watcher() -> None:
    lacking = tuple(item for item in of_runs("training") if item.resource == "deployments")
    assert judge(namespace(denied=lacking), watcher=False) == []
    assert said(judge(namespace(denied=lacking))) == [
        "error: apply@p-1 may not in training: create deployments.apps, delete deployments.apps, patch deployments.apps"
    ]


def test_permissions_in_the_control_namespace() -> None:
    lacking = tuple(item for item in of_control("renderer-control") if item.verb == "update")
    findings = judge(facts(control=Control("renderer-control", exists=True, denied=lacking)))
    assert said(findings) == [
        "error: apply@p-1 may not in renderer-control: update configmaps, update leases.coordination.k8s.io"
    ]


@pytest.mark.parametrize(
    ("found", "what", "remedy"),
    [
        (
            facts(identity=unknown("get", "", "namespaces")),
            "whether this cluster is prod-tpu7x: apply@p-1 may not get namespaces",
            "kubectl create clusterrole renderer-get-namespaces --verb=get --resource=namespaces\n"
            "kubectl create clusterrolebinding renderer-get-namespaces-1503db76 "
            "--clusterrole=renderer-get-namespaces --user=apply@p-1",
        ),
        (
            facts(pools=unknown("list", "", "nodes")),
            f"whether there are {NODES}: apply@p-1 may not list nodes",
            "kubectl create clusterrole renderer-list-nodes --verb=list --resource=nodes\n"
            "kubectl create clusterrolebinding renderer-list-nodes-1503db76 "
            "--clusterrole=renderer-list-nodes --user=apply@p-1",
        ),
        (
            facts(gcs_fuse=unknown("get", "storage.k8s.io", "csidrivers")),
            "whether the CSI driver gcsfuse.csi.storage.gke.io is installed: "
            "apply@p-1 may not get csidrivers.storage.k8s.io",
            "kubectl create clusterrole renderer-get-csidrivers --verb=get --resource=csidrivers.storage.k8s.io\n"
            "kubectl create clusterrolebinding renderer-get-csidrivers-1503db76 "
            "--clusterrole=renderer-get-csidrivers --user=apply@p-1",
        ),
        (
            namespace(secrets=unknown("list", "", "secrets", "training")),
            "whether secret token exists in training: apply@p-1 may not list secrets in training",
            "# Who may list secrets may read their values: better let someone look who may already.\n"
            "kubectl get secret token -n training",
        ),
        (
            namespace(claims=unknown("list", "", "persistentvolumeclaims", "training")),
            "whether claim data exists in training: apply@p-1 may not list persistentvolumeclaims in training",
            "kubectl create role renderer-list-persistentvolumeclaims --verb=list --resource=persistentvolumeclaims "
            "-n training\n"
            "kubectl create rolebinding renderer-list-persistentvolumeclaims-1503db76 "
            "--role=renderer-list-persistentvolumeclaims --user=apply@p-1 -n training",
        ),
    ],
)
def test_what_may_not_be_read_is_unknown_not_missing(found: Facts, what: str, remedy: str) -> None:
    (finding,) = judge(found)
    assert said([finding]) == [f"warning: unknown {what}"]
    assert finding.remedy == remedy


def test_a_caller_who_may_read_nothing_gets_warnings_only() -> None:
    hidden = unknown("list", "", "things")
    blind = facts(
        identity=hidden,
        pools=hidden,
        gcs_fuse=hidden,
        priority_classes=hidden,
        control=Control("renderer-control", exists=hidden, denied=()),
        namespaces=namespace(
            labels=hidden, claims=hidden, secrets=hidden, service_accounts=hidden, queues=hidden
        ).namespaces,
    )
    asked = [
        "whether this cluster is prod-tpu7x",
        "whether namespace renderer-control exists",
        "whether namespace training exists",
        f"whether there are {NODES}",
        "whether claim data exists in training",
        "whether the CSI driver gcsfuse.csi.storage.gke.io is installed",
        "whether secret token exists in training",
        "whether queue tpu exists",
        "whether PriorityClass high exists",
        "whether service account trainer exists in training",
        "whether service account hf-watcher exists in training",
    ]
    assert said(judge(blind)) == [f"warning: unknown {text}: apply@p-1 may not list things" for text in asked]


def test_who_only_reads_is_told_so_and_not_failed() -> None:
    control = Control("renderer-control", exists=True, denied=tuple(of_control("renderer-control")))
    spaces = namespace(denied=tuple(item for item in of_runs("training") if item.verb != "get")).namespaces
    findings = judge(facts(control=control, namespaces=spaces))
    assert said(findings) == [
        "warning: apply@p-1 only reads; to apply it would need in renderer-control: create configmaps, "
        "get configmaps, list configmaps, update configmaps, create leases.coordination.k8s.io, "
        "get leases.coordination.k8s.io, update leases.coordination.k8s.io",
        "warning: apply@p-1 only reads; to apply it would need in training: create configmaps, delete configmaps, "
        "patch configmaps, create events, list pods, create jobsets.jobset.x-k8s.io, "
        "delete jobsets.jobset.x-k8s.io, patch jobsets.jobset.x-k8s.io, create deployments.apps, "
        "delete deployments.apps, patch deployments.apps",
    ]
    told = "# Nothing to mend where another identity applies; else:\nkubectl apply -f - <<'EOF'\n"
    assert all(finding.remedy.startswith(told) for finding in findings)
    spaces = namespace(denied=tuple(item for item in of_runs("training") if item.verb != "create")).namespaces
    assert {finding.severity.value for finding in judge(facts(control=control, namespaces=spaces))} == {"error"}


def test_the_shipped_roles_allow_all_that_is_asked_for() -> None:
    allowed = {
        (verb, group, resource, document["metadata"].get("namespace", "runs"))
        for document in yaml.safe_load_all((SHIPPED / "rbac/apply.yml").read_text())
        if document["kind"] in {"ClusterRole", "Role"} and document["metadata"]["name"] == "renderer-apply"
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    asked = [*of_runs("runs"), *of_control("renderer-control")]
    assert [item for item in asked if (item.verb, item.group, item.resource, item.namespace) not in allowed] == []
