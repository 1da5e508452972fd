"""What a cluster holds of runs, joined from few lists: the ledger's entries, JobSets, pods and Kueue's workloads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

from renderer import keys
from renderer.cluster.api import Api, ApiError, Object, core, jobsets
from renderer.cluster.conditions import ended
from renderer.cluster.damage import Damaged, UnreadableError
from renderer.cluster.labels import INDEX_LABEL, JOBSET_LABEL
from renderer.cluster.ledger import ENVIRONMENT_LABEL, Entry, Store
from renderer.outputs import DAMAGED, pod_spec
from renderer.runs import State

_EXPERIMENT_LABEL = "renderer/experiment"
_MODEL_LABEL = "renderer/model"
_WORKLOAD_VERSIONS = ("v1beta2", "v1beta1")
_NOT_FOR_US = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Seen:
    """One run: its entry in the ledger, its JobSet, or both; of what belongs to the JobSet, nothing without one.

    `unreadable` is its entry where that cannot be read: it has one, so it is not a run that nobody launched.
    """

    entry: Entry | None
    jobset: Object | None
    pods: tuple[Object, ...] = ()
    workload: Object | None = None
    unreadable: Damaged | None = None

    @property
    def name(self) -> str:
        """The run's object name."""
        return self.entry.name if self.entry else str(self._metadata["name"])

    @property
    def namespace(self) -> str:
        """Where its objects are."""
        return self.entry.namespace if self.entry else str(self._metadata["namespace"])

    @property
    def environment(self) -> str:
        """Which environment it belongs to."""
        return self.entry.environment if self.entry else self._label(ENVIRONMENT_LABEL)

    @property
    def experiment(self) -> str:
        """<model>/<effective name>; of a JobSet in no ledger, as its labels have it."""
        return self.entry.experiment if self.entry else f"{self._label(_MODEL_LABEL)}/{self._label(_EXPERIMENT_LABEL)}"

    @property
    def owner(self) -> str:
        """The team that answers for it."""
        return self.entry.owner if self.entry else self._label("renderer/owner")

    @property
    def created(self) -> str:
        """When it was recorded, or its JobSet made; RFC 3339."""
        return self.entry.created if self.entry else str(self._metadata.get("creationTimestamp", ""))

    @property
    def ended(self) -> Object | None:
        """The JobSet's condition Completed or Failed."""
        return ended(self.jobset)

    def _label(self, name: str) -> str:
        return str((self._metadata.get("labels") or {}).get(name, ""))

    @property
    def _metadata(self) -> Object:
        found: Object = (self.jobset or {})["metadata"]
        return found


@dataclass(frozen=True, slots=True)
class View:
    """All runs, those of the ledger first, every workload of their namespaces, and what could not be read of them."""

    runs: tuple[Seen, ...]
    workloads: tuple[Object, ...] = ()
    damaged: tuple[Damaged, ...] = ()

    @property
    def unreadable(self) -> bool:
        """Whether an entry of the ledger cannot be read: it may be any run's."""
        return any(item.kind == "ConfigMap" for item in self.damaged)


def look(api: Api, environments: Iterable[str], namespaces: Iterable[str]) -> View:
    """Return the runs of some environments, without their pods and workloads. Raises ApiError.

    JobSets are looked for in the namespaces of the ledger's runs, and in those of `namespaces` where we may.
    """
    environments = tuple(environments)
    ledgers = [Store(api, environment).readable() for environment in environments]
    entries = [entry for readable, _ in ledgers for entry in readable]
    damaged = [item for _, unreadable in ledgers for item in unreadable]
    found = _jobsets(api, environments, entries, namespaces)
    known = {entry.name for entry in entries} | {item.name for item in damaged}
    late, unreadable = _late(api, known, found)
    damaged += unreadable
    odd = [item for item in map(_odd, found) if item]
    return View(tuple(_joined([*entries, *late], damaged, found)), damaged=(*damaged, *odd))


def observe(api: Api, environments: Iterable[str], namespaces: Iterable[str]) -> View:
    """Return the runs of some environments with their pods and workloads. Raises ApiError."""
    view = look(api, environments, namespaces)
    pods: dict[tuple[str, str], list[Object]] = {}
    workloads: list[Object] = []
    for namespace in sorted({run.namespace for run in view.runs if run.jobset}):
        for pod in api.items(core(namespace, "pods"), labelSelector=JOBSET_LABEL):
            pods.setdefault((namespace, pod["metadata"]["labels"][JOBSET_LABEL]), []).append(pod)
        workloads += _workloads(api, namespace)
    by_owner = {uid: workload for workload in workloads for uid in _owners(workload)}
    found = tuple(_with_pods(run, pods, by_owner) for run in view.runs)
    return replace(view, runs=found, workloads=tuple(workloads))


def _jobsets(
    api: Api, environments: Iterable[str], entries: Iterable[Entry], namespaces: Iterable[str]
) -> list[Object]:
    """Return the JobSets of some environments. A refused run has none: its namespace may be any text, or not ours."""
    entries = list(entries)
    selector = f"{_EXPERIMENT_LABEL},{ENVIRONMENT_LABEL} in ({','.join(environments)})"
    needed = {entry.namespace for entry in entries if entry.state is not State.REFUSED}
    found: list[Object] = []
    for namespace in sorted({*namespaces, *(entry.namespace for entry in entries)}):
        if not re.fullmatch(keys.NAMESPACE.pattern, namespace):  # the empty name would stand for all namespaces
            continue
        try:
            found += api.items(jobsets(namespace), labelSelector=selector)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN or namespace in needed:
                raise
    return found


def _late(api: Api, known: Iterable[str], found: Iterable[Object]) -> tuple[list[Entry], list[Damaged]]:
    """Return the entries of JobSets that were launched after the ledger was read, and what is no entry."""
    labels = {jobset["metadata"]["name"]: jobset["metadata"]["labels"] for jobset in found}
    entries: list[Entry] = []
    damaged: list[Damaged] = []
    for name in sorted(labels.keys() - set(known)):
        try:
            entry = Store(api, labels[name][ENVIRONMENT_LABEL]).entry(name)
        except UnreadableError as error:
            damaged += error.damaged
        else:
            entries += [entry] if entry else []
    return entries, damaged


def _odd(jobset: Object) -> Damaged | None:
    """Return what of a JobSet is not as the template makes it, nothing if all that is read of it is."""
    metadata = jobset["metadata"]
    try:
        reason = "" if metadata["labels"].get(_MODEL_LABEL) else f"it has no label {_MODEL_LABEL}"
        pod_spec(jobset)
    except DAMAGED:
        reason = "it has no replicatedJobs with pods"
    wrong = f"is not as apply makes them: {reason}"
    return Damaged("JobSet", metadata["namespace"], metadata["name"], wrong) if reason else None


def _joined(entries: Iterable[Entry], damaged: Iterable[Damaged], found: Iterable[Object]) -> Iterator[Seen]:
    jobs = {(jobset["metadata"]["namespace"], jobset["metadata"]["name"]): jobset for jobset in found}
    for entry in entries:
        jobset = jobs.get((entry.namespace, entry.name))
        if jobset and entry.uid in {"", jobset["metadata"]["uid"]}:
            del jobs[entry.namespace, entry.name]
            yield Seen(entry, jobset)
        else:
            yield Seen(entry, None)
    unreadable = {item.name: item for item in damaged}
    yield from (Seen(None, jobset, unreadable=unreadable.get(name)) for (_, name), jobset in jobs.items())


def _with_pods(run: Seen, pods: Mapping[tuple[str, str], list[Object]], workloads: Mapping[str, Object]) -> Seen:
    if run.jobset is None:
        return run
    own = tuple(pods.get((run.namespace, run.name), ()))
    return replace(run, pods=own, workload=workloads.get(run.jobset["metadata"]["uid"]))


def _workloads(api: Api, namespace: str) -> list[Object]:
    """Return Kueue's workloads in a namespace; none where there is no Kueue, or we may not see them."""
    for version in _WORKLOAD_VERSIONS:
        try:
            return list(api.items(f"/apis/kueue.x-k8s.io/{version}/namespaces/{namespace}/workloads"))
        except ApiError as error:
            if error.status not in _NOT_FOR_US:
                raise
    return []


def _owners(found: Object) -> list[str]:
    return [owner["uid"] for owner in found["metadata"].get("ownerReferences") or ()]


def newest_pod(pods: Iterable[Object], index: int) -> Object | None:
    """Return the pod with this index of the latest start."""
    mine = [pod for pod in pods if (pod["metadata"].get("labels") or {}).get(INDEX_LABEL) == str(index)]
    return max(mine, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]), default=None)
