"""What a cluster holds of runs, joined from few lists: the ledger's entries, JobSets, pods and Kueue's workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

from renderer.cluster.api import Api, ApiError, Object, core, jobsets
from renderer.cluster.conditions import ended
from renderer.cluster.labels import INDEX_LABEL, JOBSET_LABEL
from renderer.cluster.ledger import ENVIRONMENT_LABEL, Entry, Store

_EXPERIMENT_LABEL = "renderer/experiment"
_MODEL_LABEL = "renderer/model"
_WORKLOAD_VERSIONS = ("v1beta2", "v1beta1")
_NOT_FOR_US = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Seen:
    """One run: its entry in the ledger, its JobSet, or both; of what belongs to the JobSet, nothing without one."""

    entry: Entry | None
    jobset: Object | None
    pods: tuple[Object, ...] = ()
    workload: Object | None = None

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
    """All runs, those of the ledger first, and every workload of their namespaces."""

    runs: tuple[Seen, ...]
    workloads: tuple[Object, ...]


def runs(api: Api, environments: Iterable[str], namespaces: Iterable[str]) -> list[Seen]:
    """Return the runs of some environments, without their pods. Raises ApiError and LedgerError.

    JobSets are looked for in the ledger's namespaces, and in those of `namespaces` where we may.
    """
    environments = tuple(environments)
    entries = [entry for environment in environments for entry in Store(api, environment).entries()]
    selector = f"{_EXPERIMENT_LABEL},{ENVIRONMENT_LABEL} in ({','.join(environments)})"
    needed = {entry.namespace for entry in entries} - {""}  # the empty name stands for all namespaces
    found: list[Object] = []
    for namespace in sorted({*namespaces, *needed}):
        try:
            found += api.items(jobsets(namespace), labelSelector=selector)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN or namespace in needed:
                raise
    return list(_joined([*entries, *_late(api, entries, found)], found))


def observe(api: Api, environments: Iterable[str], namespaces: Iterable[str]) -> View:
    """Return the runs of some environments with their pods and workloads. Raises ApiError and LedgerError."""
    found = runs(api, environments, namespaces)
    pods: dict[tuple[str, str], list[Object]] = {}
    workloads: list[Object] = []
    for namespace in sorted({run.namespace for run in found if run.jobset}):
        for pod in api.items(core(namespace, "pods"), labelSelector=JOBSET_LABEL):
            pods.setdefault((namespace, pod["metadata"]["labels"][JOBSET_LABEL]), []).append(pod)
        workloads += _workloads(api, namespace)
    by_owner = {uid: workload for workload in workloads for uid in _owners(workload)}
    return View(tuple(_with_pods(run, pods, by_owner) for run in found), tuple(workloads))


def _late(api: Api, entries: Iterable[Entry], found: Iterable[Object]) -> Iterator[Entry]:
    """Yield the entries of JobSets that were launched after the ledger was read."""
    listed = {entry.name for entry in entries}
    for metadata in (jobset["metadata"] for jobset in found):
        if metadata["name"] not in listed:
            entry = Store(api, metadata["labels"][ENVIRONMENT_LABEL]).entry(metadata["name"])
            if entry:
                yield entry


def _joined(entries: Iterable[Entry], found: Iterable[Object]) -> Iterator[Seen]:
    jobs = {(jobset["metadata"]["namespace"], jobset["metadata"]["name"]): jobset for jobset in found}
    for entry in entries:
        jobset = jobs.get((entry.namespace, entry.name))
        if jobset and entry.uid in {"", jobset["metadata"]["uid"]}:
            del jobs[entry.namespace, entry.name]
            yield Seen(entry, jobset)
        else:
            yield Seen(entry, None)
    yield from (Seen(None, jobset) for jobset in jobs.values())


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
    mine = [pod for pod in pods if pod["metadata"]["labels"].get(INDEX_LABEL) == str(index)]
    return max(mine, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]), default=None)
