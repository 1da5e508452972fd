"""What the identity that applies must be allowed to do, and what of it the caller is not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from renderer.cluster.api import Api, ApiError

_REVIEWS = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one kind of object; `group` is empty for core ones, `namespace` for what lies in none."""

    verb: str
    group: str
    resource: str
    namespace: str = ""

    @property
    def kind(self) -> str:
        """The resource as kubectl takes it, such as jobsets.jobset.x-k8s.io."""
        return f"{self.resource}.{self.group}".rstrip(".")

    def __str__(self) -> str:
        return f"{self.verb} {self.kind}" + (f" in {self.namespace}" if self.namespace else "")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Takes the place of what the caller may not read; `permission` is what it would take."""

    permission: Permission


def readable[T](read: Callable[[], T], permission: Permission) -> T | Unknown:
    """Return what `read` returns, Unknown if the API server forbids it. Raises ApiError for any other failure."""
    try:
        return read()
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            return Unknown(permission)
        raise


_Table = Mapping[tuple[str, str], tuple[str, ...]]

WATCHER = ("apps", "deployments")
"""The kind of the watcher: only runs that have one need to write it."""

_RUN: _Table = {
    ("", "configmaps"): ("create", "delete", "patch"),
    ("", "events"): ("create",),
    ("", "pods"): ("list",),
    ("jobset.x-k8s.io", "jobsets"): ("create", "delete", "get", "patch"),
    WATCHER: ("create", "delete", "patch"),
}
_CONTROL: _Table = {
    ("", "configmaps"): ("create", "get", "list", "update"),
    ("coordination.k8s.io", "leases"): ("create", "get", "update"),
}


def of_runs(namespace: str) -> list[Permission]:
    """Return what applying needs in a namespace of runs."""
    return _permissions(_RUN, namespace)


def of_control(namespace: str) -> list[Permission]:
    """Return what applying needs in the namespace of the ledger."""
    return _permissions(_CONTROL, namespace)


def _permissions(table: _Table, namespace: str) -> list[Permission]:
    return [Permission(verb, *kind, namespace) for kind, verbs in table.items() for verb in verbs]


def only_reads(denied: Collection[Permission], needed: Iterable[Permission]) -> bool:
    """Return whether of what is needed nothing that writes is allowed: the caller is not who applies."""
    return all(item in denied for item in needed if item.verb not in {"get", "list"})


def denied(api: Api, permissions: Iterable[Permission]) -> tuple[Permission, ...]:
    """Return which of the permissions, all in one namespace, the caller lacks. Raises ApiError.

    One request tells what RBAC allows. What it does not name is asked for one by one: other authorizers, such as
    Google's IAM, are in no list.
    """
    permissions = list(permissions)
    spec = {"namespace": permissions[0].namespace}
    rules = _review(api, "SelfSubjectRulesReview", spec).get("resourceRules") or []
    unnamed = [permission for permission in permissions if not any(_allows(rule, permission) for rule in rules)]
    return tuple(permission for permission in unnamed if not _allowed(api, permission))


def _allows(rule: Mapping[str, Any], permission: Permission) -> bool:
    if rule.get("resourceNames"):
        return False
    asked = {"verbs": permission.verb, "apiGroups": permission.group, "resources": permission.resource}
    return all({value, "*"} & set(rule.get(key) or ()) for key, value in asked.items())


def _allowed(api: Api, permission: Permission) -> bool:
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "namespace": permission.namespace,
    }
    return bool(_review(api, "SelfSubjectAccessReview", {"resourceAttributes": attributes})["allowed"])


def _review(api: Api, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    status: dict[str, Any] = api.call("POST", f"{_REVIEWS}/{kind.lower()}s", {}, body)["status"]
    return status
