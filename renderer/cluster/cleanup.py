"""What ended runs left in a cluster, and its removal. The ledger stays: it is what keeps a run from starting again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from renderer.accelerators import Slice, slice_of_labels
from renderer.cluster.api import Api, Object, core, deployments, jobsets
from renderer.cluster.ledger import OVER, Entry, Store
from renderer.cluster.needs import needs
from renderer.cluster.observe import Seen
from renderer.cluster.remedies import command, long_command
from renderer.cluster.tpu_remedies import pool_name
from renderer.clusters import Cluster, Clusters
from renderer.outputs import DAMAGED
from renderer.runs import UNSTARTED, State

_SCRIPTS = re.compile(r"pod-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Leftover:
    """An object that nothing needs any more; `uid` makes sure that no other of its name is deleted.

    `version` is the resourceVersion of a ConfigMap: apply writes to those that a run is about to mount.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    why: str
    version: str = ""

    @property
    def path(self) -> str:
        """Its path in the API."""
        if self.kind == "ConfigMap":
            return core(self.namespace, "configmaps", self.name)
        return (jobsets if self.kind == "JobSet" else deployments)(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to delete, and the runs whose objects these are."""

    leftovers: tuple[Leftover, ...]
    runs: tuple[Seen, ...]

    def still(self, now: Plan) -> Plan:
        """Return what of this plan, which someone agreed to, is also in the plan of a later look.

        It takes both looks to delete a ConfigMap safely. Apply records a run, then writes to its ConfigMaps, then makes
        its JobSet: the later look knows a run that wrote before this plan, and one that writes after it changes the
        version.
        """
        names = {run.name for run in self.runs}
        kept = tuple(item for item in now.leftovers if item in self.leftovers)
        return Plan(kept, tuple(run for run in now.runs if run.name in names))


def find(api: Api, runs: Iterable[Seen], environments: Iterable[str], *, unreadable: bool = False) -> Plan:
    """Return what ended runs of some environments left. `runs` are those of all: they may share a namespace.

    `unreadable` says that an entry of the ledger cannot be read: it may be of a run that is about to use any scripts.
    """
    everything, environments = list(runs), tuple(environments)
    living = {(run.namespace, run.name) for run in everything if not _over(run)}
    mine = {(run.namespace, run.name): run for run in everything if run.environment in environments}
    ended = {place: run for place, run in mine.items() if place not in living}
    found: list[Leftover] = []
    for namespace in sorted({namespace for namespace, _ in ended}):
        over = {name: run for (place, name), run in ended.items() if place == namespace}
        here = [run for run in everything if run.namespace == namespace]
        found += _jobsets(over)
        found += _watchers(api, namespace, over)
        found += _config_maps(api, namespace, over, here, all_known=not unreadable and not _in_preparation(here))
    kept = {leftover.name.removeprefix("run-").removesuffix("-hf") for leftover in found}
    return Plan(tuple(found), tuple(run for (_, name), run in ended.items() if name in kept))


def _over(run: Seen) -> bool:
    """Return whether nothing of a run will be needed any more."""
    if run.unreadable:
        return False
    if run.entry is None:
        return run.ended is not None
    if run.entry.state in UNSTARTED or (run.entry.state is State.REFUSED and not run.entry.uid):
        return False  # a refused one has made nothing, and its namespace may be one that is not ours to read
    if run.jobset is None or run.ended is not None:
        return True
    return run.entry.state is State.STOPPED and bool(run.entry.uid)  # one not recorded may be taken up by a new launch


def _how(run: Seen) -> str:
    if run.ended:
        return "the run has finished" if run.ended["type"] == "Completed" else "the run has failed"
    state = run.entry.state if run.entry else State.LAUNCHED
    if state is State.LAUNCHED:
        return "the run has finished" if run.entry and run.entry.over else "the run is gone"
    return "the run has failed" if state is State.FAILED else f"the run is {state}"


def _jobsets(mine: dict[str, Seen]) -> Iterator[Leftover]:
    for name, run in mine.items():
        if run.jobset and not run.jobset["metadata"].get("deletionTimestamp"):
            listed = "" if run.entry else ", in no ledger"
            yield Leftover("JobSet", run.namespace, name, run.jobset["metadata"]["uid"], _how(run) + listed)


def _watchers(api: Api, namespace: str, mine: dict[str, Seen]) -> Iterator[Leftover]:
    for found in api.items(deployments(namespace), labelSelector="renderer/experiment"):
        name = found["metadata"]["name"]
        if name.removesuffix("-hf") in mine:
            why = f"{_how(mine[name.removesuffix('-hf')])}; it converts no checkpoint after this"
            yield Leftover("Deployment", namespace, name, found["metadata"]["uid"], why)


def _config_maps(
    api: Api, namespace: str, mine: dict[str, Seen], here: list[Seen], *, all_known: bool
) -> Iterator[Leftover]:
    used = set().union(*(_mounted(run.jobset) for run in here if not _over(run)))
    for found in api.items(core(namespace, "configmaps")):
        name, uid, version = (found["metadata"][key] for key in ("name", "uid", "resourceVersion"))
        if name in used:
            continue
        if name.startswith("run-") and name.removeprefix("run-") in mine:
            yield Leftover("ConfigMap", namespace, name, uid, _how(mine[name.removeprefix("run-")]), version)
        elif all_known and _is_scripts(found):
            yield Leftover("ConfigMap", namespace, name, uid, "no living run uses these pod scripts", version)


def _in_preparation(here: Iterable[Seen]) -> bool:
    """Return whether a run is about to use scripts that no JobSet names yet."""
    return any(run.entry and run.entry.state in UNSTARTED for run in here)


def _mounted(jobset: Object | None) -> set[str]:
    """Return the names of the ConfigMaps that a JobSet's pods mount."""
    jobs = ((jobset or {}).get("spec") or {}).get("replicatedJobs") or ()
    volumes = [volume for job in jobs for volume in job["template"]["spec"]["template"]["spec"].get("volumes") or ()]
    return {volume["configMap"].get("name", "") for volume in volumes if "configMap" in volume}


def _is_scripts(config_map: Object) -> bool:
    """Return whether a ConfigMap is one of pod scripts, as apply makes them."""
    name, data = config_map["metadata"]["name"], config_map.get("data") or {}
    return bool(_SCRIPTS.fullmatch(name)) and "bootstrap.sh" in data


def delete(api: Api, plan: Plan) -> Iterator[Leftover]:
    """Delete what a second look left of a plan, and yield each object that was there. Raises ApiError.

    That a launched run has finished or failed is recorded first: the JobSet that shows it is about to go.
    """
    for run in plan.runs:
        if run.entry and run.entry.state is State.LAUNCHED and run.ended:
            _record(Store(api, run.environment), run.entry, run.ended)
    for leftover in sorted(plan.leftovers, key=lambda item: bool(_SCRIPTS.fullmatch(item.name))):
        if api.delete(leftover.path, uid=leftover.uid, version=leftover.version):
            yield leftover


def _record(store: Store, entry: Entry, ended: Object) -> None:
    since = f"{OVER}{ended.get('lastTransitionTime', 'an unknown time')}"
    if ended["type"] == "Completed":
        store.change(entry, reason=f"{since}: finished")
    else:
        store.change(entry, state=State.FAILED, reason=f"{since}: failed: {ended.get('message', '')}")


def unused_pools(clusters: Clusters, plan: Plan, runs: Iterable[Seen]) -> list[str]:
    """Return how to delete the node pools that the plan's runs used and that none of the other `runs` uses."""
    used = _slices(run for run in runs if run not in plan.runs)
    lines: list[str] = []
    for cluster in {item.name: item for item in clusters.by_environment.values()}.values():
        mine = [run for run in plan.runs if clusters.by_environment.get(run.environment) == cluster]
        lines += _pool_commands(cluster, [slice_ for slice_ in _slices(mine) if slice_ not in used])
    return lines


def _slices(runs: Iterable[Seen]) -> list[Slice]:
    """Return the slices whose nodes runs asked for, each once; of runs whose JobSet is there."""
    found: dict[Slice, None] = {}
    for run in runs:
        try:
            need = needs(run.jobset, None) if run.jobset else None
        except DAMAGED:
            continue
        slice_ = slice_of_labels(need.accelerator, need.topology) if need else None
        found |= {slice_: None} if slice_ else {}
    return list(found)


def _pool_commands(cluster: Cluster, unused: Iterable[Slice]) -> list[str]:
    """Return how to delete the node pools of slices, which gives their reservation back. Regional: no --zone."""
    place = [f"--cluster={cluster.cluster}", f"--region={cluster.region}", f"--project={cluster.project}"]
    names = dict.fromkeys(pool_name(cluster, slice_) for slice_ in unused)
    lines = [long_command(f"gcloud container node-pools delete {name}", [*place, "--quiet"]) for name in names]
    return [*lines, command("gcloud", "container", "node-pools", "list", *place)] if lines else []
