"""The RBAC manifests against the code that needs them and the presets that name the namespaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import yaml
from content import SHIPPED

from renderer.cluster.ledger import CONTROL
from renderer.cluster.permissions import of_control, of_runs

Object = dict[str, Any]
READING = {"get", "list"}


def documents(who: str) -> list[Object]:
    return list(yaml.safe_load_all((SHIPPED / f"rbac/{who}.yml").read_text()))


def find(who: str, kind: str, name: str) -> Object:
    (found,) = [item for item in documents(who) if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    return found


def allowed(rules: Iterable[Object]) -> list[tuple[str, str, str]]:
    """Return group, resource and verb of everything that rules allow."""
    return [
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def namespaces() -> dict[str, set[str]]:
    """Return the namespaces of runs by environment, as the presets have them."""
    found: dict[str, set[str]] = {}
    for path in SHIPPED.glob("presets/*/environment/*.yml"):
        found.setdefault(path.stem, set()).add(yaml.safe_load(path.read_text())["deploy"]["K8S_NAMESPACE"])
    return found


@pytest.mark.parametrize("who", ["apply", "read"])
def test_every_namespace_of_runs_is_bound_and_no_other(who: str) -> None:
    bound: dict[str, set[str]] = {}
    for item in documents(who):
        if item["kind"] == "RoleBinding" and item["metadata"]["namespace"] != CONTROL:
            environment = item["metadata"]["labels"]["renderer/environment"]
            assert item["roleRef"]["name"] == f"renderer-{who}"
            bound.setdefault(environment, set()).add(item["metadata"]["namespace"])
    assert bound == namespaces()


@pytest.mark.parametrize("who", ["apply", "read"])
def test_each_environment_has_subjects_of_its_own(who: str) -> None:
    for item in documents(who):
        if item["kind"].endswith("Binding"):
            environment = item["metadata"]["labels"]["renderer/environment"]
            assert item["metadata"]["name"] == f"renderer-{who}-{environment}"
            assert item["subjects"][0]["name"].startswith(f"renderer-{who}-{environment}@")


def test_apply_may_write_what_launching_needs_and_nothing_else() -> None:
    runs = allowed(find("apply", "ClusterRole", "renderer-apply")["rules"])
    needed = {(item.group, item.resource, item.verb) for item in of_runs("n")}
    assert needed <= set(runs)
    assert {item for item in set(runs) - needed if item[2] not in READING} == set()
    control = allowed(find("apply", "Role", "renderer-apply")["rules"])
    assert sorted(control) == sorted((item.group, item.resource, item.verb) for item in of_control(CONTROL))


def test_reading_writes_nothing() -> None:
    rules = [rule for item in documents("read") for rule in item.get("rules", ())]
    assert {verb for _, _, verb in allowed(rules)} == READING


@pytest.mark.parametrize("who", ["apply", "read"])
def test_nothing_is_allowed_twice_by_wildcard_or_of_secrets(who: str) -> None:
    for item in documents(who):
        found = allowed(item.get("rules", ()))
        assert len(found) == len(set(found))
        assert not {"*", "secrets"} & {word for entry in found for word in entry}


def test_both_may_ask_the_same_of_the_cluster() -> None:
    apply, read = (find(who, "ClusterRole", f"renderer-{who}-cluster")["rules"] for who in ("apply", "read"))
    assert apply == read
    assert {verb for _, _, verb in allowed(read)} == READING
