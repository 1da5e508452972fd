"""What in a cluster is not as it was applied: changed, vanished, unlisted and unstopped runs. Only reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from renderer.cluster.api import Api, Object, core, deployments
from renderer.cluster.committed_runs import CommittedRuns
from renderer.cluster.fields import ABSENT, Difference, differences
from renderer.cluster.ledger import Entry
from renderer.cluster.objects import Objects
from renderer.cluster.observe import Seen
from renderer.manifest_yaml import load
from renderer.outputs import DAMAGED
from renderer.runs import ALIVE, State


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference. `run` is the run's object name, `about` the object or what else is meant, such as JobSet."""

    run: str
    environment: str
    namespace: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """All drift, what could not be compared, and how many living runs were."""

    found: tuple[Drift, ...]
    unknown: tuple[Drift, ...]
    compared: int


def find(api: Api, runs: Iterable[Seen], committed: CommittedRuns, now: datetime | None = None) -> Result:
    """Compare the cluster's runs with their committed files. Raises ApiError."""
    finder = _Finder(api, committed, now or datetime.now(UTC))
    for run in runs:
        finder.look(run)
    return Result(tuple(finder.found), tuple(finder.unknown), finder.compared)


class _Finder:
    def __init__(self, api: Api, committed: CommittedRuns, now: datetime) -> None:
        self._api, self._committed, self._now = api, committed, now
        self.found: list[Drift] = []
        self.unknown: list[Drift] = []
        self.compared = 0
        self._scripts: set[tuple[str, str]] = set()

    def look(self, run: Seen) -> None:
        entry = run.entry
        if run.unreadable:
            self._unknown(run, "cannot be compared: its entry in the ledger cannot be read")
        elif entry is None:
            self._say(run, "JobSet", "no ledger knows it: apply did not launch it")
        elif entry.state not in ALIVE:
            if run.jobset and not run.ended and entry.state is not State.PENDING:
                self._say(run, "JobSet", f"lives, but the ledger says {entry.state}")
        elif run.jobset is None:
            self._vanished(run, entry)
        elif not run.ended:
            self._unstopped(run, entry)
            self._compare(run, entry, run.jobset)

    def _say(self, run: Seen, about: str, text: str) -> None:
        self.found.append(Drift(run.name, run.environment, run.namespace, about, text))

    def _unstopped(self, run: Seen, entry: Entry) -> None:
        experiment = self._committed.experiment(entry)
        if experiment is None:
            self._say(run, "experiment", f"{entry.experiment} is not at HEAD any more, but the run lives")
        elif experiment.stopped:
            self._say(run, "experiment", f"{experiment.file} says state: stopped, but the run lives")
        elif experiment.environment != entry.environment:
            self._say(run, "experiment", f"{experiment.file} is for {experiment.environment} now, but the run lives")

    def _vanished(self, run: Seen, entry: Entry) -> None:
        """Say that a launched run's JobSet is gone, unless it may have finished and been removed by its TTL."""
        if entry.over or not entry.uid:  # without uid: it was over when the ledger began
            return
        objects = self._committed.objects(entry)
        if isinstance(objects, str):
            self._unknown(run, f"its JobSet is gone; whether it has a time to live is not known: {objects}")
            return
        seconds = objects.jobset["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            self._say(run, "JobSet", "is gone, nothing shows that it finished, and it has no time to live")
        elif not entry.gone and _age(entry.changed, self._now) < seconds:
            self._say(run, "JobSet", f"is gone before its time to live of {seconds} s can have passed: it was deleted")

    def _unknown(self, run: Seen, text: str) -> None:
        self.unknown.append(Drift(run.name, run.environment, run.namespace, "JobSet", text))

    def _compare(self, run: Seen, entry: Entry, jobset: Object) -> None:
        objects = self._committed.objects(entry)
        if isinstance(objects, str):
            self._unknown(run, f"cannot be compared: {objects}")
            return
        self.compared += 1
        for difference in differences(objects.jobset, jobset):
            self._say(run, "JobSet", str(difference))
        for kind, manifest in self._others(objects):
            self._compare_other(run, kind, manifest)

    def _others(self, objects: Objects) -> Iterator[tuple[str, Object]]:
        yield "ConfigMap", objects.run_config_map
        scripts = (objects.namespace, objects.pod_config_map["metadata"]["name"])
        if scripts not in self._scripts:  # many runs share them
            self._scripts.add(scripts)
            yield "ConfigMap", objects.pod_config_map
        if objects.watcher:
            yield "Deployment", objects.watcher

    def _compare_other(self, run: Seen, kind: str, manifest: Object) -> None:
        name = manifest["metadata"]["name"]
        live = self._api.get(
            core(run.namespace, "configmaps", name) if kind == "ConfigMap" else deployments(run.namespace, name)
        )
        if live is None:
            self._say(run, f"{kind} {name}", "is missing")
            return
        found = config_map_differences(manifest, live) if kind == "ConfigMap" else differences(manifest, live)
        for difference in found:
            self._say(run, f"{kind} {name}", str(difference))


def config_map_differences(manifest: Object, live: Object) -> list[Difference]:
    """Return what differs in a ConfigMap: of YAML and JSON files by key, of others only that they differ."""
    found: list[Difference] = []
    mine, theirs = manifest["data"], live.get("data") or {}
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name) != theirs.get(name):
            found += _file(name, mine.get(name), theirs.get(name))
    return found


def _file(name: str, mine: str | None, theirs: str | None) -> list[Difference]:
    try:
        old, new = (_data(name, text) for text in (mine, theirs))
    except DAMAGED:
        return [Difference(name, _size(mine), _size(theirs))]
    return [
        Difference(f"{name}: {key}", old.get(key, ABSENT), new.get(key, ABSENT))
        for key in sorted(old.keys() | new.keys())
        if old.get(key, ABSENT) != new.get(key, ABSENT)
    ]


def _data(name: str, text: str | None) -> Object:
    """Return the keys of a file. Raises one of DAMAGED if it has none, or others than texts."""
    data = None if text is None else json.loads(text) if name.endswith(".json") else load(text)
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise ValueError("no mapping of keys")
    return data


def _size(text: str | None) -> Any:
    return ABSENT if text is None else f"{len(text)} characters"


def _age(since: str, now: datetime) -> float:
    return (now - datetime.fromisoformat(since)).total_seconds() if since else float("inf")
