"""Whether a cluster has what a run needs, judged before anything of the run is made there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from renderer.accelerators import Slice, slice_of_labels
from renderer.cluster import remedies, tpu_remedies
from renderer.cluster.facts import GCS_FUSE, Facts
from renderer.cluster.findings import Finding, doubtful, missing, unknown
from renderer.cluster.needs import Needs
from renderer.cluster.permissions import WATCHER, Permission, Unknown, of_control, of_runs, only_reads
from renderer.cluster.queue_preflight import check_queue
from renderer.clusters import FILE, Cluster
from renderer.policy import Rules
from renderer.problem import counted


def check(facts: Facts, needs: Needs, cluster: Cluster | None, rules: Rules) -> list[Finding]:
    """Return what the cluster lacks for the run, in the order to mend it; errors keep it from starting.

    `facts` are of the run's namespace too, `cluster` and `rules` those of its environment. Of a cluster that is
    another than `cluster` nothing else is said.
    """
    if cluster and not isinstance(facts.identity, Unknown) and facts.identity != cluster.identity:
        return [_another(facts.identity, cluster)]
    slice_ = slice_of_labels(needs.accelerator, needs.topology)
    found = (
        _identity(facts, cluster),
        _jobset(facts, needs),
        _namespaces(facts, needs),
        _nodes(facts, needs, slice_, cluster, rules),
        _claims(facts, needs),
        _driver(facts, needs, cluster),
        _secrets(facts, needs),
        check_queue(facts, needs, slice_),
        _priority(facts, needs),
        _accounts(facts, needs),
        _permissions(facts, needs),
    )
    return [finding for findings in found for finding in findings]


def _another(identity: str, cluster: Cluster) -> Finding:
    return missing(
        f"this cluster is not {cluster.name}: its identity is {identity}, {FILE} says {cluster.identity}",
        remedies.identity(cluster, identity),
    )


def _identity(facts: Facts, cluster: Cluster | None) -> Iterator[Finding]:
    if isinstance(facts.identity, Unknown) and cluster:
        yield unknown(facts.caller, facts.identity, f"whether this cluster is {cluster.name}")


def _jobset(facts: Facts, needs: Needs) -> Iterator[Finding]:
    if not facts.jobset:
        yield missing("JobSet is not installed", remedies.jobset())
    elif needs.api_version not in facts.jobset:
        served = ", ".join(facts.jobset)
        yield missing(f"JobSet does not serve {needs.api_version}, only {served}", remedies.jobset())


def _namespaces(facts: Facts, needs: Needs) -> Iterator[Finding]:
    found = {
        facts.control.name: facts.control.exists,
        needs.namespace: facts.namespaces[needs.namespace].exists,
    }
    for name, exists in found.items():
        if isinstance(exists, Unknown):
            yield unknown(facts.caller, exists, f"whether namespace {name} exists")
        elif not exists:
            yield missing(f"namespace {name} does not exist", remedies.namespace(name))


def _nodes(
    facts: Facts, needs: Needs, slice_: Slice | None, cluster: Cluster | None, rules: Rules
) -> Iterator[Finding]:
    kind = f"{needs.accelerator} {needs.topology}"
    if isinstance(facts.pools, Unknown):
        yield unknown(facts.caller, facts.pools, f"whether there are nodes of {kind}")
        return
    pools = facts.pools.get((needs.accelerator, needs.topology), {})
    largest = max(pools, key=pools.__getitem__, default=None)
    if largest is not None and pools[largest] >= needs.hosts:
        return
    what = f"there are no nodes of {kind}: the run needs {needs.hosts} in one node pool"
    if largest is not None:
        nodes = counted(needs.hosts, "node")
        what = f"no node pool of {kind} has {nodes}: the largest, {largest}, has {pools[largest]}"
    remedy = _pool_remedy(slice_, cluster, needs)
    if rules.scale_from_zero:
        yield doubtful(f"{what}; by presets/policy.yml pools grow when a run waits", remedy)
    else:
        yield missing(what, remedy)


def _pool_remedy(slice_: Slice | None, cluster: Cluster | None, needs: Needs) -> str:
    if slice_ is None:
        return tpu_remedies.no_slice(needs.accelerator, needs.topology)
    return _unnamed() if cluster is None else tpu_remedies.nodes(cluster, slice_, needs.priority_class)


def _unnamed() -> str:
    return f"# Name the environment's cluster in {FILE}: then the commands are printed here."


def _claims(facts: Facts, needs: Needs) -> Iterator[Finding]:
    space, claims = needs.namespace, facts.namespaces[needs.namespace].claims
    for name in needs.claims:
        if isinstance(claims, Unknown):
            yield unknown(facts.caller, claims, f"whether claim {name} exists in {space}")
        elif name not in claims:
            yield missing(f"claim {name} does not exist in {space}", remedies.claim(name, space, needs.bucket))
        elif claims[name].waits:
            what = f"claim {name} of {space} is not bound: its storage class waits for the first pod"
            yield doubtful(what, remedies.unbound(name, space))
        elif not claims[name].bound:
            yield missing(f"claim {name} of {space} is not bound", remedies.unbound(name, space))


def _driver(facts: Facts, needs: Needs, cluster: Cluster | None) -> Iterator[Finding]:
    if not needs.gcs_fuse:
        return
    if isinstance(facts.gcs_fuse, Unknown):
        yield unknown(facts.caller, facts.gcs_fuse, f"whether the CSI driver {GCS_FUSE} is installed")
    elif not facts.gcs_fuse:
        remedy = tpu_remedies.gcs_fuse(cluster) if cluster else _unnamed()
        yield missing(f"the CSI driver {GCS_FUSE} is not installed", remedy)


def _secrets(facts: Facts, needs: Needs) -> Iterator[Finding]:
    space, secrets = needs.namespace, facts.namespaces[needs.namespace].secrets
    for secret in needs.secrets:
        if isinstance(secrets, Unknown):
            found = unknown(facts.caller, secrets, f"whether secret {secret.name} exists in {space}")
            yield replace(found, remedy=remedies.hidden(secret.name, space))
        elif secret.name not in secrets:
            remedy = remedies.secret(secret.name, secret.key, space)
            what = f"secret {secret.name} does not exist in {space}"
            yield missing(what, remedy) if secret.required else doubtful(f"{what}; the run starts without it", remedy)


def _priority(facts: Facts, needs: Needs) -> Iterator[Finding]:
    name = needs.priority_class
    if not name:
        return
    if isinstance(facts.priority_classes, Unknown):
        yield unknown(facts.caller, facts.priority_classes, f"whether PriorityClass {name} exists")
    elif name not in facts.priority_classes:
        yield missing(f"PriorityClass {name} does not exist", remedies.priority_class(name))


def _accounts(facts: Facts, needs: Needs) -> Iterator[Finding]:
    space, accounts = needs.namespace, facts.namespaces[needs.namespace].service_accounts
    for name in needs.service_accounts:
        if isinstance(accounts, Unknown):
            yield unknown(facts.caller, accounts, f"whether service account {name} exists in {space}")
        elif name not in accounts:
            yield missing(f"service account {name} does not exist in {space}", remedies.service_account(name, space))


def _permissions(facts: Facts, needs: Needs) -> Iterator[Finding]:
    """Yield one finding per namespace. Its remedy allows all that applying needs there: one manifest for every run."""
    watched = facts.namespaces[needs.namespace].denied
    denied = [item for item in watched if needs.watcher or not _of_watcher(item)]
    asked = ((facts.control.denied, of_control(facts.control.name)), (denied, of_runs(needs.namespace)))
    reader = only_reads({*facts.control.denied, *watched}, [item for _, needed in asked for item in needed])
    for lacking, needed in asked:
        if lacking:
            place, remedy = needed[0].namespace, remedies.permitted(facts.caller, needed)
            verbs = ", ".join(f"{item.verb} {item.kind}" for item in lacking)
            if reader:
                what = f"{facts.caller} only reads; to apply it would need in {place}: {verbs}"
                yield doubtful(what, f"# Nothing to mend where another identity applies; else:\n{remedy}")
            else:
                yield missing(f"{facts.caller} may not in {place}: {verbs}", remedy)


def _of_watcher(permission: Permission) -> bool:
    return (permission.group, permission.resource) == WATCHER
