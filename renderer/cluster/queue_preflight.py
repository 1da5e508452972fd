"""Whether Kueue will let a run start: queue, ClusterQueue, flavor, quota."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from renderer.accelerators import Slice
from renderer.cluster import remedies, tpu_remedies
from renderer.cluster.facts import Facts, Namespace
from renderer.cluster.findings import Finding, doubtful, missing, unknown
from renderer.cluster.kueue import DEFAULT, ClusterQueue, Kueue, Quota, fitting
from renderer.cluster.needs import Needs
from renderer.cluster.permissions import Unknown
from renderer.manifests import HOLD_QUEUE
from renderer.problem import counted

_XPK_QUEUE = "cluster-queue"
"""What xpk calls its one ClusterQueue."""


def check_queue(facts: Facts, needs: Needs, slice_: Slice | None) -> Iterator[Finding]:
    """Yield what keeps Kueue from admitting the run, or would let a run without a queue be caught by one."""
    namespace, kueue = facts.namespaces[needs.namespace], facts.kueue
    if kueue is None:
        if needs.queue:
            yield missing(f"Kueue is not installed, and the run waits in queue {needs.queue}", remedies.kueue())
        return
    if not isinstance(namespace.queues, Unknown) and HOLD_QUEUE in namespace.queues:
        yield missing(
            f"LocalQueue {HOLD_QUEUE} exists in {needs.namespace}: runs are held by its absence, and would start early",
            remedies.command("kubectl", "delete", "localqueue", HOLD_QUEUE, "-n", needs.namespace),
        )
    if isinstance(namespace.queues, Unknown):
        yield unknown(facts.caller, namespace.queues, f"whether queue {needs.queue or DEFAULT} exists")
    elif needs.queue:
        yield from _LocalQueue(facts.caller, kueue, namespace, namespace.queues, needs, slice_).check()
    elif DEFAULT in namespace.queues:
        yield _caught(needs)


def _caught(needs: Needs) -> Finding:
    return doubtful(
        f"LocalQueue {DEFAULT} of {needs.namespace} takes every JobSet without a queue, and the run names none",
        "\n".join(
            [
                "# Name the queue that the run is meant for, in the experiment or its presets:",
                "#   deploy:",
                f"#     QUEUE: {DEFAULT}",
                "# Only if nothing is meant to be queued there by default:",
                remedies.command("kubectl", "delete", "localqueue", DEFAULT, "-n", needs.namespace),
            ]
        ),
    )


@dataclass(frozen=True, slots=True)
class _LocalQueue:
    caller: str
    kueue: Kueue
    namespace: Namespace
    queues: Mapping[str, str]
    needs: Needs
    slice: Slice | None

    def check(self) -> Iterator[Finding]:
        """Yield what is wrong with the run's LocalQueue and all that stands behind it."""
        name = self.queues.get(self.needs.queue)
        if name is None:
            yield self._no_local_queue()
        elif isinstance(self.kueue.queues, Unknown):
            yield unknown(self.caller, self.kueue.queues, f"quota of queue {self.needs.queue}")
        elif name in self.kueue.queues:
            yield from self._cluster_queue(name, self.kueue.queues[name])
        else:
            yield self._no_cluster_queue(name)

    def _no_local_queue(self) -> Finding:
        needs, known = self.needs, ", ".join(sorted(self.queues)) or "none"
        target = _XPK_QUEUE
        if not isinstance(self.kueue.queues, Unknown):
            fit = (name for name, queue in sorted(self.kueue.queues.items()) if list(self._fitting(queue)))
            target = next(fit, target)
        return missing(
            f"LocalQueue {needs.queue} does not exist in {needs.namespace}, which has: {known}",
            tpu_remedies.local_queue(needs.queue, needs.namespace, target, self.kueue.version),
        )

    def _no_cluster_queue(self, name: str) -> Finding:
        what = f"ClusterQueue {name} does not exist, behind queue {self.needs.queue} of {self.needs.namespace}"
        if self.slice is None:
            return missing(what, tpu_remedies.no_slice(self.needs.accelerator, self.needs.topology))
        flavor = tpu_remedies.flavor_name(self.slice, self._flavors())
        return missing(what, tpu_remedies.cluster_queue(name, flavor, self.slice, self.kueue.version))

    def _cluster_queue(self, name: str, queue: ClusterQueue) -> Iterator[Finding]:
        labels = self.namespace.labels
        if isinstance(labels, Mapping) and not queue.serves(labels):
            yield _not_served(name, queue, self.needs.namespace)
        if isinstance(self.kueue.flavors, Unknown):
            yield unknown(self.caller, self.kueue.flavors, f"quota of queue {self.needs.queue}")
            return
        fit = list(self._fitting(queue))
        if not fit:
            yield self._no_flavor(name, queue)
            return
        if queue.inactive:
            what = f"ClusterQueue {name} admits nothing: {queue.inactive}"
            yield doubtful(what, remedies.command("kubectl", "describe", "clusterqueue", name))
        yield from self._quota(name, queue, fit)

    def _flavors(self) -> Mapping[str, Mapping[str, str]]:
        return {} if isinstance(self.kueue.flavors, Unknown) else self.kueue.flavors

    def _fitting(self, queue: ClusterQueue) -> Iterator[Quota]:
        return fitting(queue, self._flavors(), self.needs.selector)

    def _no_flavor(self, name: str, queue: ClusterQueue) -> Finding:
        needs = self.needs
        what = f"ClusterQueue {name} has no flavor for nodes of {needs.accelerator} {needs.topology}"
        if self.slice is None:
            return missing(what, tpu_remedies.no_slice(needs.accelerator, needs.topology))
        flavor = tpu_remedies.flavor_name(self.slice, self._flavors())
        lines = [tpu_remedies.flavor(flavor, self.slice, self.kueue.version)]
        if queue.group is None:
            lines.append(tpu_remedies.group(name, flavor, needs.chips))
        elif flavor not in {quota.flavor for quota in queue.quotas}:
            lines.append(tpu_remedies.entry(name, queue.group, flavor, needs.chips))
        return missing(what, "\n".join(lines))

    def _quota(self, name: str, queue: ClusterQueue, fit: list[Quota]) -> Iterator[Finding]:
        best = max(fit, key=lambda quota: quota.chips)
        has = f"ClusterQueue {name} has {counted(best.chips, 'chip')} of flavor {best.flavor}"
        asks = f"the run asks for {self.needs.chips}"
        raised = tpu_remedies.quota(name, best.path, self.needs.chips)
        if best.chips < self.needs.chips:
            if any(_may_borrow(queue, quota, self.needs.chips) for quota in fit):
                yield doubtful(f"{has}, {asks}: it waits until cohort {queue.cohort} lends the rest", raised)
            else:
                yield missing(f"{has}, {asks}", raised)
        elif all(quota.chips - quota.reserved < self.needs.chips for quota in fit):
            waits = remedies.command("kubectl", "get", "workloads", "-A")
            yield doubtful(f"{has}, {best.reserved} of them taken, {asks}: it will wait", waits)


def _may_borrow(queue: ClusterQueue, quota: Quota, chips: int) -> bool:
    return bool(queue.cohort) and (quota.borrowing is None or quota.chips + quota.borrowing >= chips)


def _not_served(name: str, queue: ClusterQueue, namespace: str) -> Finding:
    what = f"ClusterQueue {name} does not serve namespace {namespace}: its namespaceSelector does not match the labels"
    selector = queue.selector or {}
    if selector.get("matchLabels") and not selector.get("matchExpressions"):
        labels = [f"{key}={value}" for key, value in selector["matchLabels"].items()]
        return missing(what, remedies.command("kubectl", "label", "--overwrite", "namespace", namespace, *labels))
    if queue.selector is None:
        return missing(what, remedies.json_patch("clusterqueue", name, "/spec/namespaceSelector", "add", {}))
    said = "# Let spec.namespaceSelector match the namespace's labels:"
    return missing(what, f"{said}\n{remedies.command('kubectl', 'edit', 'clusterqueue', name)}")
