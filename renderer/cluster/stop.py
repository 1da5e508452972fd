"""Stops a run: its JobSet and what belongs to it are deleted, its pods are gone, then the ledger says so."""

from __future__ import annotations

import time
from dataclasses import replace
from http import HTTPStatus

from renderer.cluster.api import Api, ApiError, Object, core, deployments, jobsets
from renderer.cluster.labels import JOBSET_LABEL, content_digest_of
from renderer.cluster.lease import find_jobset
from renderer.cluster.ledger import ROUNDS, Entry, Store
from renderer.outputs import DAMAGED, pod_spec
from renderer.runs import ALIVE, State

MARGIN = 60
"""Seconds that pods get to end in, beyond their grace period, before a stop is left to the next one."""

_GRACE = 30


class NotStoppedError(Exception):
    """A run could not be stopped yet; the text says why. Stopping it again goes on."""


def stop(api: Api, store: Store, entry: Entry, reason: str, state: State = State.STOPPED, *, commit: str = "") -> Entry:
    """Stop a run and return its entry; one that the ledger has as stopped or failed is returned as it is.

    A launched run whose JobSet has ended is deleted and becomes stopped too: who wants it kept must not ask. `state`
    is what the entry of a run that has not started becomes; refusing a run that another apply has launched meanwhile
    does nothing. `commit` is the one whose files are refused. Raises ApiError, LedgerError and NotStoppedError.
    """
    commit = commit or entry.commit
    for _ in range(ROUNDS):
        if entry.state in {State.PENDING, State.REFUSED}:  # a refused run would be tried again
            changed = store.change(entry, state=state, reason=reason, commit=commit)
            if changed:
                _delete_stray(api, changed)
        elif entry.state in ALIVE and not (entry.state is State.LAUNCHED and state is not State.STOPPED):
            _delete(api, entry)
            final = state if entry.state is State.HELD else State.STOPPED
            changed = store.change(entry, state=final, reason=reason, commit=commit)
        else:
            return entry
        if changed:
            return changed
        found = store.entry(entry.name)
        if found is None:
            return replace(entry, state=state, reason="its entry is gone from the ledger")
        entry = found
    raise NotStoppedError("others keep changing its entry in the ledger")


def delete_jobset(api: Api, entry: Entry, uid: str) -> None:
    """Delete the JobSet with this uid, its Jobs and pods with it."""
    api.delete(jobsets(entry.namespace, entry.name), uid=uid, propagation="Foreground")


def _delete_stray(api: Api, entry: Entry) -> None:
    """Delete a JobSet that was created but never recorded: nothing can release it any more."""
    try:
        found = api.get(jobsets(entry.namespace, entry.name))
    except ApiError as error:  # who may not look has never created one: the run was refused for its namespace
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return
    if found and content_digest_of(found) == entry.digest:
        delete_jobset(api, entry, found["metadata"]["uid"])


def _delete(api: Api, entry: Entry) -> None:
    jobset = find_jobset(api, entry)
    if uid := entry.uid or (jobset["metadata"]["uid"] if jobset else ""):
        _delete_watcher(api, entry)
        delete_jobset(api, entry, uid)
        _wait(api, replace(entry, uid=uid), _grace(jobset) + MARGIN)
    api.delete(core(entry.namespace, "configmaps", f"run-{entry.name}"))


def _delete_watcher(api: Api, entry: Entry) -> None:
    try:
        api.delete(deployments(entry.namespace, f"{entry.name}-hf"))
    except ApiError as error:  # who may not delete one has never made one
        if error.status != HTTPStatus.FORBIDDEN:
            raise


def _grace(jobset: Object | None) -> int:
    """Return the grace period of a JobSet's pods, in seconds."""
    try:
        return int(pod_spec(jobset).get("terminationGracePeriodSeconds", _GRACE)) if jobset else _GRACE
    except DAMAGED:  # not as our template makes it
        return _GRACE


def _wait(api: Api, entry: Entry, seconds: float) -> None:
    end, pause = time.monotonic() + seconds, 0.1
    while left := _left(api, entry):
        if time.monotonic() > end:
            raise NotStoppedError(f"{left} after {seconds:.0f} s; its deletion goes on")
        time.sleep(pause)
        pause = min(2 * pause, 2)


def _left(api: Api, entry: Entry) -> str:
    """Return what is still there of a run that is being deleted, empty if nothing is."""
    found = api.get(jobsets(entry.namespace, entry.name))
    if found and found["metadata"]["uid"] == entry.uid:
        return "its JobSet is still there"
    pods = core(entry.namespace, "pods")
    there = api.call("GET", pods, {"labelSelector": f"{JOBSET_LABEL}={entry.name}", "limit": "1"})
    return "pods of it are still there" if there["items"] else ""
