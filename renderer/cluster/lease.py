"""Output leases: two live runs never write to one directory."""

from __future__ import annotations

import hashlib
from http import HTTPStatus

from renderer.cluster import ledger
from renderer.cluster.api import Api, ApiError, Object, core, jobsets
from renderer.cluster.conditions import ended
from renderer.cluster.labels import JOBSET_LABEL, content_digest_of
from renderer.cluster.ledger import Entry, Store
from renderer.runs import ALIVE, State

_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


def find_jobset(api: Api, entry: Entry) -> Object | None:
    """Return the JobSet that an entry records, by uid; another of the same name is none.

    A launched run without a uid was adopted before its JobSet was made: that is known by its content.
    """
    if not entry.uid and entry.state is not State.LAUNCHED:
        return None
    found = api.get(jobsets(entry.namespace, entry.name))
    if found is None:
        return None
    ours = found["metadata"]["uid"] == entry.uid if entry.uid else content_digest_of(found) == entry.digest
    return found if ours else None


def lives(api: Api, entry: Entry) -> bool:
    """Return whether a run may write: it is held or launched, and its JobSet has not ended or a pod of it goes on.

    A pod writes its last checkpoint in its grace period, when the JobSet may have failed or be deleted.
    """
    if entry.state not in ALIVE:
        return False
    found = find_jobset(api, entry)
    return (found is not None and not ended(found)) or _has_pods(api, entry)


def _has_pods(api: Api, entry: Entry) -> bool:
    """Return whether a pod of a run has not ended."""
    selector = {"labelSelector": f"{JOBSET_LABEL}={entry.name}", "fieldSelector": _NOT_ENDED, "limit": "1"}
    return bool(api.call("GET", core(entry.namespace, "pods"), selector)["items"])


def holder(api: Api, store: Store, entry: Entry) -> str:
    """Return which other run holds a run's output directory and may write to it, empty if none does.

    Raises ApiError and LedgerError.
    """
    found = api.get(_path(_name(entry.output))) if entry.output else None
    return _other(api, store, entry, found) if found else ""


def take(api: Api, store: Store, entry: Entry) -> str:
    """Give a run its output directory; return which other run keeps it, empty if it is the run's now.

    A pending run counts as one that writes: it may be on its way to it in another apply. Raises
    ApiError and LedgerError.
    """
    if not entry.output:
        return ""
    name = _name(entry.output)
    for _ in range(ledger.ROUNDS):
        try:
            api.create(_path(), _lease(name, entry, {}))
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        else:
            return ""
        found = api.get(_path(name))
        if found is None:
            continue
        if found["spec"].get("holderIdentity") == entry.name:
            return ""
        if other := _other(api, store, entry, found):
            return other
        if _replaced(api, _lease(name, entry, {"resourceVersion": found["metadata"]["resourceVersion"]})):
            return ""
    raise ApiError(0, "", f"others keep changing lease {name} in {ledger.CONTROL}")


def _other(api: Api, store: Store, entry: Entry, lease: Object) -> str:
    name = str(lease["spec"].get("holderIdentity") or "")
    other = store.entry(name) if name and name != entry.name else None
    return name if other and (other.state is State.PENDING or lives(api, other)) else ""


def _replaced(api: Api, lease: Object) -> bool:
    try:
        api.replace(_path(lease["metadata"]["name"]), lease)
    except ApiError as error:
        if error.status not in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
            raise
        return False
    return True


def _name(output: str) -> str:
    return f"output-{hashlib.sha256(output.encode()).hexdigest()[:16]}"


def _path(name: str = "") -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{ledger.CONTROL}/leases/{name}".rstrip("/")


def _lease(name: str, entry: Entry, version: Object) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "annotations": {"renderer/output": entry.output}, **version},
        "spec": {"holderIdentity": entry.name},
    }
