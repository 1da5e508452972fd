"""Kueue's queues and quotas of TPU chips, and which of them a run may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from renderer.cluster.api import Api, Object, whole
from renderer.cluster.needs import TPU
from renderer.cluster.permissions import Permission, Unknown, readable

GROUP = "kueue.x-k8s.io"
DEFAULT = "default"
"""The LocalQueue that Kueue gives every JobSet which names none, when it is created."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The TPU chips that a ClusterQueue has of one flavor.

    `borrowing` is the most it may borrow from its cohort, None without a limit. `path` is the quota's JSON pointer.
    """

    flavor: str
    chips: int
    borrowing: int | None
    reserved: int
    path: str


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A ClusterQueue.

    `selector` says which namespaces it serves, None for none; `quotas` are those of TPU chips, in Kueue's order;
    `group` is the resource group they lie in, None if it has none for TPUs; `inactive` is why it admits nothing, or
    empty.
    """

    selector: Mapping[str, Any] | None
    quotas: tuple[Quota, ...] = ()
    group: int | None = None
    cohort: str = ""
    inactive: str = ""

    def serves(self, labels: Mapping[str, str]) -> bool:
        """Return whether it admits runs of a namespace with these labels."""
        if self.selector is None:
            return False
        wanted = self.selector.get("matchLabels") or {}
        expressions = self.selector.get("matchExpressions") or ()
        return wanted.items() <= labels.items() and all(_holds(item, labels) for item in expressions)


@dataclass(frozen=True, slots=True)
class Kueue:
    """An installed Kueue: the API version to use, its ClusterQueues, and the node labels of its ResourceFlavors."""

    version: str
    queues: Mapping[str, ClusterQueue] | Unknown
    flavors: Mapping[str, Mapping[str, str]] | Unknown


def read_kueue(api: Api) -> Kueue | None:
    """Return Kueue, nothing where it is not installed. Raises ApiError."""
    found = api.get(f"/apis/{GROUP}")
    if found is None:
        return None
    group_version = str(found["preferredVersion"]["groupVersion"])
    path = f"/apis/{group_version}"
    return Kueue(
        group_version,
        readable(
            lambda: {item["metadata"]["name"]: _queue(item) for item in api.items(f"{path}/clusterqueues")},
            Permission("list", GROUP, "clusterqueues"),
        ),
        readable(
            lambda: {
                item["metadata"]["name"]: item["spec"].get("nodeLabels", {})
                for item in api.items(f"{path}/resourceflavors")
            },
            Permission("list", GROUP, "resourceflavors"),
        ),
    )


def fitting(
    queue: ClusterQueue, flavors: Mapping[str, Mapping[str, str]], selector: Mapping[str, str]
) -> Iterator[Quota]:
    """Yield the quotas whose flavor runs pods with this node selector.

    As Kueue 0.17 decides: of the selector only labels count that some flavor of the same group has.
    """
    known = [quota for quota in queue.quotas if quota.flavor in flavors]
    keys = {key for quota in known for key in flavors[quota.flavor]}
    asked = {key: value for key, value in selector.items() if key in keys}
    return (quota for quota in known if asked.items() <= flavors[quota.flavor].items())


def _queue(found: Object) -> ClusterQueue:
    spec, status = found["spec"], found.get("status") or {}
    reserved = {
        flavor["name"]: whole(resource["total"])
        for flavor in status.get("flavorsReservation") or ()
        for resource in flavor["resources"]
        if resource["name"] == TPU
    }
    groups = enumerate(spec.get("resourceGroups") or ())
    group = next((number for number, item in groups if TPU in item["coveredResources"]), None)
    quotas = () if group is None else tuple(_quotas(spec["resourceGroups"][group], group, reserved))
    states = (item for item in status.get("conditions") or () if item["type"] == "Active")
    inactive = next((str(item["message"]) for item in states if item["status"] == "False"), "")
    cohort = spec.get("cohortName") or spec.get("cohort") or ""
    return ClusterQueue(spec.get("namespaceSelector"), quotas, group, cohort, inactive)


def _quotas(group: Mapping[str, Any], number: int, reserved: Mapping[str, int]) -> Iterator[Quota]:
    for index, flavor in enumerate(group["flavors"]):
        for place, resource in enumerate(flavor["resources"]):
            if resource["name"] == TPU:
                name, limit = flavor["name"], resource.get("borrowingLimit")
                path = f"/spec/resourceGroups/{number}/flavors/{index}/resources/{place}/nominalQuota"
                borrowing = None if limit is None else whole(limit)
                yield Quota(name, whole(resource["nominalQuota"]), borrowing, reserved.get(name, 0), path)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:  # DoesNotExist
            return key not in labels
