"""Where runs go: presets/clusters.yml, a reviewed file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from renderer import tables
from renderer.content_files import read_optional
from renderer.key_types import Form, Key, Kind, judge_text
from renderer.layers import ENVIRONMENTS
from renderer.location import Location
from renderer.problem import Problem
from renderer.schema import nearest
from renderer.yaml_io import Node

FILE = "presets/clusters.yml"
_CODE = "clusters-file"
_NAME = Form(r"[a-z](?:[-a-z0-9]*[a-z0-9])?", "a name: lower-case letters, digits and -")
_UID = Form(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a UID, as 123e4567-e89b-12d3-a456-426614174000")
_POOL = Form(r"[a-z0-9{][-a-z0-9{}]*", "a name with the fields {accelerator}, {topology} and {chips}")

_TEXTS = (
    Key("project", Kind.TEXT, "the Google Cloud project", form=_NAME),
    Key("region", Kind.TEXT, "the region, such as us-central1", form=_NAME),
    Key("zone", Kind.TEXT, "the zone, such as us-central1-c", form=_NAME),
    Key("cluster", Kind.TEXT, "the GKE cluster's name", form=_NAME),
    Key("identity", Kind.TEXT, "the UID of the cluster's kube-system namespace", form=_UID),
    Key("node_pool", Kind.TEXT, "how node pools are named", form=_POOL),
)
_KEYS = tuple(key.name for key in _TEXTS)


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster.

    `identity` is the UID of its kube-system namespace: two clusters never share it, whatever they are called.
    `reservations` are by PriorityClass; `node_pool` names pools, with {accelerator}, {topology} and {chips} filled in.
    """

    name: str
    project: str
    region: str
    zone: str
    cluster: str
    identity: str
    node_pool: str
    reservations: Mapping[str, str]
    place: Location


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters by name, and the one each environment uses."""

    by_name: Mapping[str, Cluster] = field(default_factory=dict)
    by_environment: Mapping[str, Cluster] = field(default_factory=dict)


def load(root: Path, problems: list[Problem]) -> Clusters:
    """Return the clusters of the content under `root`, none without the file; append what is wrong to `problems`."""
    node = read_optional(root, FILE, problems)
    if node is None:
        return Clusters()
    tables.known(node.value, ("clusters", "environments"), "", _CODE, problems)
    empty = Node(None, node.at)
    entries = tables.mapping(node.value.get("clusters", empty), "clusters", _CODE, problems)
    by_name = {name: found for name, child in entries.items() if (found := _cluster(name, child, problems))}
    chosen = tables.mapping(node.value.get("environments", empty), "environments", _CODE, problems)
    tables.known(chosen, ENVIRONMENTS, "environments", _CODE, problems)
    return Clusters(by_name, _chosen(chosen, by_name, entries, problems))


def _cluster(name: str, node: Node, problems: list[Problem]) -> Cluster | None:
    path, before = f"clusters.{name}", len(problems)
    entries = dict(tables.mapping(node, path, _CODE, problems))
    reservations = _reservations(entries.pop("reservations", Node(None, node.at)), f"{path}.reservations", problems)
    texts: dict[str, Any] = tables.read(
        Node(entries, node.at, node.key_at), _TEXTS, path, _CODE, problems, required=_KEYS
    )
    if len(problems) > before:
        return None
    return Cluster(name=name, **texts, reservations=reservations, place=node.key_at)


def _reservations(node: Node, path: str, problems: list[Problem]) -> dict[str, str]:
    found = {}
    for priority, child in tables.mapping(node, path, _CODE, problems).items():
        problems.extend(judge_text(child, f"{path}.{priority}", _NAME))
        found[priority] = str(child.value)
    return found


def _chosen(
    chosen: Mapping[str, Node], by_name: Mapping[str, Cluster], entries: Mapping[str, Node], problems: list[Problem]
) -> dict[str, Cluster]:
    found = {}
    for environment, node in chosen.items():
        name = str(node.value)
        if name in by_name:
            found[environment] = by_name[name]
        elif name not in entries:
            known = ", ".join(nearest(name, entries) or entries) or "none"
            message = f"no cluster {name}"
            problems.append(Problem(_CODE, node.at, f"environments.{environment}", message, f"clusters: {known}"))
    return found
