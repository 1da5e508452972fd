"""The ledger: one small object per run in a control namespace, changed by compare-and-swap only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from renderer.cluster.api import Api, ApiError, Object, core
from renderer.cluster.damage import Damaged, UnreadableError
from renderer.runs import State

CONTROL = "renderer-control"
"""The namespace of the ledger, the markers and the output leases; apply, stop and cleanup write there."""

_RUN_LABEL = "renderer/ledger"
ENVIRONMENT_LABEL = "renderer/environment"
ROUNDS = 20
"""How often something is begun again that others change meanwhile."""

OVER = "is over since "
"""How the reason begins of a run that was seen to have ended; one that failed is in the state failed too."""
GONE = "its JobSet finished or was removed before this was recorded"
"""How the reason begins of a launched run whose JobSet was not there any more."""

_MAX_REASON = 2000
_LEFT = "left"
"""The key of the marker's former commit, while what other applies did in the meantime was not looked at."""


BY_HAND = "stopped by "
"""How the reason of a stop begins that a person asked for."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One run.

    `experiment` is <model>/<effective name>, `name` the run's object name, `digest` its content digest, `output` the
    directory it writes to, `uid` its JobSet's once there is one. `commit`, `pull_request` and `actor` say who launched
    it. `created` and `changed` are RFC 3339 in UTC; `version` is the object's resourceVersion.
    """

    experiment: str
    file: str
    environment: str
    namespace: str
    name: str
    digest: str
    attempt: int = 1
    chips: int = 0
    owner: str = ""
    run_name: str = ""
    output: str = ""
    state: State = State.PENDING
    reason: str = ""
    uid: str = ""
    commit: str = ""
    pull_request: str = ""
    actor: str = ""
    created: str = ""
    changed: str = ""
    version: str = ""

    @property
    def swept(self) -> bool:
        """Whether apply dropped the run before it was ever made: no person stopped it, so it may be wanted again."""
        return self.state is State.STOPPED and not self.uid and not self.by_hand

    @property
    def by_hand(self) -> bool:
        """Whether a person stopped it with renderer stop."""
        return self.reason.startswith(BY_HAND)

    @property
    def over(self) -> bool:
        """Whether it was seen to have ended after it was launched."""
        return self.reason.startswith(OVER)

    @property
    def gone(self) -> bool:
        """Whether its JobSet was gone before it was recorded as launched."""
        return self.reason.startswith(GONE)


_DATA = tuple(field.name for field in fields(Entry) if field.name != "version")
_REQUIRED = ("experiment", "environment", "namespace", "name", "digest", "state")
_NUMBERS = ("attempt", "chips")


class Store:
    """The ledger of one environment. Every call raises ApiError; reading also UnreadableError."""

    def __init__(self, api: Api, environment: str) -> None:
        self._api = api
        self.environment = environment

    def entries(self) -> list[Entry]:
        """Return all runs of the environment, by name. Raises UnreadableError for one: it may be any run."""
        entries, damaged = self.readable()
        if damaged:
            raise UnreadableError(*damaged)
        return entries

    def readable(self) -> tuple[list[Entry], list[Damaged]]:
        """Return the runs of the environment that can be read, by name, and what stands there that is no entry."""
        labels = f"{_RUN_LABEL}=run,{ENVIRONMENT_LABEL}={self.environment}"
        entries: list[Entry] = []
        damaged: list[Damaged] = []
        for found in self._api.items(_path(), labelSelector=labels):
            try:
                entries.append(_entry(found))
            except UnreadableError as error:
                damaged += error.damaged
        return sorted(entries, key=lambda entry: entry.name), damaged

    def entry(self, name: str) -> Entry | None:
        """Return the run with this object name."""
        found = self._api.get(_path(name))
        return None if found is None else _entry(found)

    def add(self, entry: Entry) -> Entry | None:
        """Write a new entry; nothing if there is one of this name already."""
        now = _now()
        entry = replace(entry, created=now, changed=now)
        try:
            return _entry(self._api.create(_path(), _object(entry)))
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                return None
            raise

    def change(self, entry: Entry, **changes: Any) -> Entry | None:
        """Write `entry` with these fields changed; nothing if someone else changed it since: read it again."""
        changed = replace(entry, **changes, changed=_now())
        try:
            return _entry(self._api.replace(_path(entry.name), _object(changed)))
        except ApiError as error:
            if error.status in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                return None
            raise

    def read_marker(self) -> str | None:
        """Return the last commit that was applied to the environment, nothing before the first."""
        found = self._api.get(_path(self._marker))
        return None if found is None else _commit(found)

    def read_unsettled(self) -> str:
        """Return which commit the marker left, until `settle` was called after that; empty afterwards."""
        found = self._api.get(_path(self._marker))
        return str((found.get("data") or {}).get(_LEFT, "")) if found else ""

    def move_marker(self, old: str | None, new: str) -> bool:
        """Move the marker from commit `old` (None: there is none) to `new`; False if it is another by now."""
        found = self._api.get(_path(self._marker))
        if (None if found is None else _commit(found)) != old:
            return found is not None and _commit(found) == new
        try:
            self._write_marker(found, {"commit": new, **({_LEFT: old} if old else {})})
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                return self.read_marker() == new
            raise
        return True

    def settle(self, commit: str) -> None:
        """Record that nothing is left to look at of what other applies did while the marker moved to `commit`."""
        found = self._api.get(_path(self._marker))
        if found is None or _commit(found) != commit or _LEFT not in found["data"]:
            return
        try:
            self._write_marker(found, {"commit": commit})
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:  # moved on by another apply, which settles it
                raise

    def _write_marker(self, found: Object | None, data: Mapping[str, str]) -> None:
        labels = {_RUN_LABEL: "marker", ENVIRONMENT_LABEL: self.environment}
        body = _config_map({"name": self._marker, "labels": labels}, data)
        if found is None:
            self._api.create(_path(), body)
        else:
            body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
            self._api.replace(_path(self._marker), body)

    @property
    def _marker(self) -> str:
        return f"marker-{self.environment}"


def export(entries: Iterable[Entry]) -> dict[str, list[dict[str, str]]]:
    """Return the ledger as `renderer report --ledger` reads it."""
    kept = ("name", "experiment", "environment", "state", "namespace", "uid", "reason", "commit", "changed")
    return {"runs": [{key: str(getattr(entry, key)) for key in kept} for entry in entries]}


def _path(name: str = "") -> str:
    return core(CONTROL, "configmaps", name)


def _config_map(metadata: Object, data: Mapping[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _object(entry: Entry) -> Object:
    labels = {_RUN_LABEL: "run", ENVIRONMENT_LABEL: entry.environment}
    metadata: Object = {"name": entry.name, "namespace": CONTROL, "labels": labels}
    if entry.version:
        metadata["resourceVersion"] = entry.version
    data = {key: str(getattr(entry, key)) for key in _DATA}
    return _config_map(metadata, data | {"reason": entry.reason[:_MAX_REASON]})


def _entry(found: Object) -> Entry:
    """Return the entry that an object is. Raises UnreadableError if it is none."""
    metadata, data = found["metadata"], found.get("data") or {}
    try:
        texts = {key: data[key] for key in _DATA if key in data or key in _REQUIRED}
        numbers = {key: int(data[key]) for key in _NUMBERS if key in data}
        values: dict[str, Any] = {**texts, **numbers, "state": State(data["state"])}
        entry = Entry(**values, version=metadata["resourceVersion"])
        _verify(entry, metadata)
    except (KeyError, ValueError) as error:
        reason = f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise UnreadableError(_no_entry(str(metadata["name"]), reason)) from error
    return entry


def _verify(entry: Entry, metadata: Object) -> None:
    """Raise ValueError for an entry that stands under another name or environment than its own, or has no times."""
    labels = metadata.get("labels") or {}
    if labels.get(_RUN_LABEL) != "run" or entry.name != metadata["name"]:
        raise ValueError("its name or its label is another")
    if labels.get(ENVIRONMENT_LABEL) != entry.environment:
        raise ValueError(f"its label {ENVIRONMENT_LABEL} is another than its environment")
    for time in filter(None, (entry.created, entry.changed)):
        if not _is_moment(time):
            raise ValueError(f"{time!r} is no time in RFC 3339")


def _is_moment(time: str) -> bool:
    try:
        return datetime.fromisoformat(time).tzinfo is not None
    except ValueError:
        return False


def _no_entry(name: str, reason: str) -> Damaged:
    mend = (
        f"put back what was changed: kubectl edit configmap {name} -n {CONTROL}\n"
        f"or, if no run was ever recorded in it: kubectl label configmap {name} -n {CONTROL} {_RUN_LABEL}-"
    )
    return Damaged("ConfigMap", CONTROL, name, f"is no entry of the ledger: {reason}", mend)


def _commit(marker: Object) -> str:
    commit = (marker.get("data") or {}).get("commit", "")
    if not commit:
        name = str(marker["metadata"]["name"])
        mend = f"put the last applied commit back, as data.commit: kubectl edit configmap {name} -n {CONTROL}"
        raise UnreadableError(Damaged("ConfigMap", CONTROL, name, "names no commit", mend))
    return str(commit)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
