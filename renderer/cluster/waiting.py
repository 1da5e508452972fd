"""Why a run waits in a Kueue queue, and at which place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from renderer.cluster.api import Api, ApiError, Object
from renderer.cluster.conditions import condition
from renderer.manifests import HOLD_QUEUE

_VISIBILITY = "/apis/visibility.kueue.x-k8s.io"
_VISIBILITY_VERSIONS = ("v1beta2", "v1beta1")


@dataclass(frozen=True, slots=True)
class Place:
    """The place in a queue, from 1, and how many wait there.

    `overall` is the place in its ClusterQueue, which other namespaces share; only Kueue's visibility API tells it.
    """

    queue: str
    position: int
    waiting: int
    overall: int | None = None

    def __str__(self) -> str:
        words = f"{self.position} of {self.waiting} in queue {self.queue}"
        return words if self.overall is None else f"{words}, {self.overall} in its cluster queue"


def reason(workload: Object | None) -> str:
    """Return Kueue's words for why a workload waits, nothing where it gives none."""
    if workload is None or condition(workload, "Admitted"):
        return ""
    found = {item["type"]: item for item in (workload.get("status") or {}).get("conditions") or ()}
    wanted = {"Evicted": "True", "QuotaReserved": "False", "Admitted": "False"}
    told = [
        found[kind].get("message") for kind, status in wanted.items() if found.get(kind, {}).get("status") == status
    ]
    return "; ".join(dict.fromkeys(filter(None, told)))


def places(api: Api, workloads: Iterable[Object]) -> dict[str, Place]:
    """Return the place of every waiting workload by its uid, as Kueue's visibility API counts where it is installed."""
    found: dict[str, Place] = {}
    for (namespace, queue), waiting in _queues(workloads).items():
        found |= _exact(api, namespace, queue, waiting) or dict(_counted(queue, waiting))
    return found


def _queues(workloads: Iterable[Object]) -> dict[tuple[str, str], list[Object]]:
    found: dict[tuple[str, str], list[Object]] = {}
    for workload in filter(_waits, workloads):
        key = (workload["metadata"]["namespace"], workload["spec"]["queueName"])
        found.setdefault(key, []).append(workload)
    return found


def _waits(workload: Object) -> bool:
    """Return whether a workload waits for its turn in a queue that exists."""
    spec = workload.get("spec") or {}
    if spec.get("queueName", "") in {"", HOLD_QUEUE} or spec.get("active") is False:
        return False
    return not condition(workload, "QuotaReserved") and not condition(workload, "Finished")


def _counted(queue: str, waiting: list[Object]) -> Iterator[tuple[str, Place]]:
    """Yield places by Kueue's default order, the highest priority first, then the oldest, within one LocalQueue."""
    ordered = sorted(
        waiting, key=lambda item: (-item["spec"].get("priority", 0), item["metadata"]["creationTimestamp"])
    )
    for position, workload in enumerate(ordered, start=1):
        yield workload["metadata"]["uid"], Place(queue, position, len(ordered))


def _exact(api: Api, namespace: str, queue: str, waiting: list[Object]) -> dict[str, Place]:
    """Return the places that the visibility API gives, none where it does not answer."""
    by_name = {workload["metadata"]["name"]: workload["metadata"]["uid"] for workload in waiting}
    for version in _VISIBILITY_VERSIONS:
        path = f"{_VISIBILITY}/{version}/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
        try:
            items: list[Any] = (api.get(path) or {}).get("items") or []
        except ApiError:  # a forbidden or absent API, or one whose server is down: the places are counted then
            continue
        if items:
            told = {item["metadata"]["name"]: _told(queue, item, len(items)) for item in items}
            return {uid: told[name] for name, uid in by_name.items() if name in told}
    return {}


def _told(queue: str, item: Object, waiting: int) -> Place:
    return Place(queue, item["positionInLocalQueue"] + 1, waiting, item["positionInClusterQueue"] + 1)
