"""Checks that no value is a credential, in whichever layer it stands: whatever is committed can be read by many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from renderer.configure import Configuration
from renderer.location import Location
from renderer.merge import Leaf, Tree, history
from renderer.problem import Problem
from renderer.secrets import Secret, find


class Found(NamedTuple):
    """A credential, and the value it stands in."""

    place: Location
    path: str
    secret: Secret


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem per credential. Its text is in no message."""
    for place, path, secret in found(configuration):
        message = f"looks like a secret ({secret.kind}, {len(secret.value)} characters, not shown): never commit one"
        hint = (
            "put it into a Kubernetes Secret (deploy.GITHUB_TOKEN_SECRET, or one the image reads), and revoke this one"
        )
        yield Problem("secret", place, path, message, hint)


def found(configuration: Configuration) -> Iterator[Found]:
    """Yield every credential among the values, including those that a higher layer replaced."""
    if configuration.experiment:
        for key, node in configuration.experiment.launch.items():
            yield from _in_value(key, node.value, node.at, f"launch.{key}")
    for namespace, tree in (("deploy", configuration.deploy), ("maxtext", configuration.maxtext)):
        for key, item in tree.items():
            yield from _in_item(key, item, f"{namespace}.{key}")


def _in_item(key: str, item: Leaf | Tree, path: str) -> Iterator[Found]:
    if isinstance(item, dict):
        for name, child in item.items():
            yield from _in_item(name, child, f"{path}.{name}")
        return
    for leaf in history(item) if item.previous is not None else (item,):
        yield from _in_value(key, leaf.node.value, leaf.node.at, path)


# The names of Kubernetes Secrets, not secrets.
_NAMES_ONLY = {"deploy.GITHUB_TOKEN_SECRET"}


def _in_value(key: str, value: object, place: Location, path: str) -> Iterator[Found]:
    if isinstance(value, str):
        if len(value) >= _SHORTEST and path not in _NAMES_ONLY:
            for secret in find(key, value):
                yield Found(place, path, secret)
    elif isinstance(value, list):
        for item in value:
            yield from _in_value(key, item, place, path)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _in_value(str(name), item, place, f"{path}.{name}")


_SHORTEST = 8
"""No detector knows a shorter credential that a URL with a password in it: `x://a:b@`."""
