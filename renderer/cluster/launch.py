"""Launches one run exactly once: each step is recorded in the ledger, and begins where an earlier apply broke off."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NoReturn

from renderer.cluster import lease
from renderer.cluster.api import FIELD_MANAGER, Api, ApiError, Object, core, deployments, jobsets
from renderer.cluster.labels import content_digest_of
from renderer.cluster.ledger import GONE, ROUNDS, Entry, Store
from renderer.cluster.objects import Objects
from renderer.cluster.stop import delete_jobset, stop
from renderer.names import QUEUE_LABEL
from renderer.runs import ALIVE, State


class RefusedRunError(Exception):
    """The run may not be launched; the text says why. Final until its files change or someone applies again."""


class WaitingError(Exception):
    """The run cannot be launched yet; the text says why. The next apply goes on."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A run to launch: what it consists of, the runs it replaces, and the Kueue queue it is handed to, if any."""

    objects: Objects
    replaced: tuple[Entry, ...]
    queue: str


class Launcher:
    """Launches runs of one environment. Safe for several threads, each with other runs, and beside other applies.

    Every run has to be recorded before the first one is launched: they share one write of the pod scripts.
    """

    def __init__(self, api: Api, store: Store, *, kueue: bool) -> None:
        self._api = api
        self._store = store
        self._kueue = kueue
        self._shared: set[str] = set()
        self._sharing = threading.Lock()

    def run(self, entry: Entry, launch: Launch) -> Entry:
        """Take a pending or held run as far as it goes, and return its entry.

        Raises ApiError, LedgerError, RefusedRunError, WaitingError and NotStoppedError; the entry then stays as it is.
        """
        resumed = entry.state is State.HELD
        for _ in range(ROUNDS):
            if entry.state is State.PENDING:
                entry = self._hold(entry, launch)
            elif entry.state is State.HELD:
                entry = self._release(entry, launch, resumed=resumed)
            else:
                return entry
        raise WaitingError("others keep changing its entry in the ledger")

    def try_out(self, entry: Entry, launch: Launch, ending: Collection[str]) -> None:
        """Check what only the API server can, without writing; the runs `ending` are stopped before it is launched.

        Raises ApiError, LedgerError and RefusedRunError.
        """
        self._examine(launch.objects)
        other = lease.holder(self._api, self._store, entry)
        if other and other not in ending:
            _keeps(other, entry)

    def _hold(self, entry: Entry, launch: Launch) -> Entry:
        """Create the run held, and record it: what is not recorded cannot start."""
        self._examine(launch.objects)
        self._lease(entry, launch)
        self._config_maps(entry, launch.objects)
        uid = self._create(launch.objects)
        held = self._store.change(entry, state=State.HELD, uid=uid, reason="")
        if held:
            return held
        found = self._read(entry)
        if found.state is State.PENDING:
            with self._sharing:
                self._shared.clear()  # the run may have been recorded anew since the scripts were written
        elif found.state not in ALIVE or found.uid != uid:
            delete_jobset(self._api, found, uid)
        return found

    def _examine(self, objects: Objects) -> None:
        """Let the API server and its webhooks judge what is to be created."""
        try:
            self._api.create(jobsets(objects.namespace), objects.held(kueue=self._kueue), dry_run=True)
        except ApiError as error:
            if not _exists(error):
                raise
        if objects.watcher:
            self._api.apply(_deployment(objects.watcher), objects.watcher, dry_run=True)

    def _lease(self, entry: Entry, launch: Launch) -> None:
        """Take the output directory, unless a run has it that is stopped before this one starts."""
        replaced = {one.name for one in launch.replaced}
        if replaced and lease.holder(self._api, self._store, entry) in replaced:
            return
        other = lease.take(self._api, self._store, entry)
        if other:
            _keeps(other, entry)

    def _config_maps(self, entry: Entry, objects: Objects) -> None:
        """Apply the run's files and the pod scripts, so that they change even if they are there already.

        A cleanup that found them unused cannot delete them then; one that looks after this reads the run's entry.
        """
        path = core(objects.namespace, "configmaps", objects.run_config_map["metadata"]["name"])
        try:
            self._api.apply(path, _marked(objects.run_config_map, entry))
        except ApiError as error:
            if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            self._api.delete(path)  # immutable, and from files of the same content that said it in other bytes
            self._api.apply(path, _marked(objects.run_config_map, entry))
        path = core(objects.namespace, "configmaps", objects.pod_config_map["metadata"]["name"])
        with self._sharing:
            if path not in self._shared:
                self._api.apply(path, _marked(objects.pod_config_map, entry))
                self._shared.add(path)

    def _create(self, objects: Objects) -> str:
        """Create the held JobSet and return its uid; one that is there already must be this run's."""
        path = jobsets(objects.namespace)
        try:
            return str(self._api.create(path, objects.held(kueue=self._kueue))["metadata"]["uid"])
        except ApiError as error:
            if not _exists(error):
                raise
        found = self._api.get(jobsets(objects.namespace, objects.name))
        if found is None or found["metadata"].get("deletionTimestamp"):
            raise WaitingError(f"an earlier JobSet {objects.name} is being deleted")
        if content_digest_of(found) != objects.digest or not _ours(found):
            raise RefusedRunError(f"another JobSet is called {objects.name} in {objects.namespace}")
        return str(found["metadata"]["uid"])

    def _release(self, entry: Entry, launch: Launch, *, resumed: bool) -> Entry:
        """Let a held run start, once the runs it replaces are gone, and record that."""
        kueue = self._kueue
        if resumed:
            jobset = lease.find_jobset(self._api, entry)
            if jobset is None:
                return self._launched(entry, launch, GONE)
            kueue = kueue or QUEUE_LABEL in jobset["metadata"].get("labels", {})  # it was there when this was held
        if resumed or launch.replaced:
            for one in launch.replaced:
                stop(self._api, self._store, one, f"superseded by {entry.name}")
            other = lease.take(self._api, self._store, entry)
            if other:
                raise WaitingError(f"{other} writes to {entry.output}")
            entry = self._read(entry)
            if entry.state is not State.HELD:
                return entry
        if not self._start(entry, launch, kueue=kueue):
            return self._launched(entry, launch, GONE)
        return self._launched(entry, launch, "")

    def _start(self, entry: Entry, launch: Launch, *, kueue: bool) -> bool:
        """Hand the JobSet to its queue, or unsuspend it; return whether it is there."""
        path, uid, queue = jobsets(entry.namespace, entry.name), {"uid": entry.uid}, launch.queue
        changes: list[Object] = []
        if kueue:
            changes.append({"metadata": {**uid, "labels": {QUEUE_LABEL: queue or None}}})
        if not queue:  # in a step of its own, or Kueue refuses
            changes.append({"metadata": uid, "spec": {"suspend": False}})
        try:
            for change in changes:
                self._api.merge(path, change)
        except ApiError as error:
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                raise
            if lease.find_jobset(self._api, entry):
                raise WaitingError(f"releasing it failed: {error}") from error
            return False
        return True

    def _launched(self, entry: Entry, launch: Launch, reason: str) -> Entry:
        """Record that the run was released; its watcher comes first, so that a break in between is made up for."""
        watcher = launch.objects.watcher
        if watcher:
            reason = "; ".join(filter(None, (reason, self._watch(watcher))))
        launched = self._store.change(entry, state=State.LAUNCHED, reason=reason)
        if launched is None:
            return self._read(entry)
        self._tell(launched)
        return launched

    def _watch(self, watcher: Object) -> str:
        """Apply the watcher; return why it is not there, empty if it is."""
        try:
            self._api.apply(_deployment(watcher), watcher)
        except ApiError as error:
            if error.passing:
                raise
            return f"its converter was not applied: {error}"
        return ""

    def _tell(self, entry: Entry) -> None:
        """Leave an event at the JobSet. The ledger is the record; a run does not fail for want of an event."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        reference = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "uid": entry.uid}
        event: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{entry.name}.launched", "namespace": entry.namespace},
            "involvedObject": {**reference, "name": entry.name, "namespace": entry.namespace},
            "reason": "Launched",
            "type": "Normal",
            "message": f"launched by {entry.actor}, commit {entry.commit}, pull request {entry.pull_request}",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
        }
        try:
            self._api.create(core(entry.namespace, "events"), event)
        except ApiError:
            return

    def _read(self, entry: Entry) -> Entry:
        found = self._store.entry(entry.name)
        if found is None:
            raise WaitingError("its entry is gone from the ledger")
        return found


def _marked(config_map: Object, entry: Entry) -> Object:
    """Return a ConfigMap with a mark that no two writes share."""
    mark = {"renderer/used-by": f"{entry.name} {secrets.token_hex(4)}"}
    return {**config_map, "metadata": {**config_map["metadata"], "annotations": mark}}


def _ours(jobset: Object) -> bool:
    """Whether this package created a JobSet: what another hand made may be other than what was reviewed."""
    return any(field.get("manager") == FIELD_MANAGER for field in jobset["metadata"].get("managedFields") or ())


def _exists(error: ApiError) -> bool:
    return error.status == HTTPStatus.CONFLICT and error.reason == "AlreadyExists"


def _keeps(other: str, entry: Entry) -> NoReturn:
    raise RefusedRunError(f"{other} writes to {entry.output} and has not ended")


def _deployment(watcher: Object) -> str:
    metadata = watcher["metadata"]
    return deployments(metadata["namespace"], metadata["name"])
