"""Checks of the `deploy:` namespace: a closed set of keys, typed, and none of MaxText's among them."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.configure import Configuration
from renderer.key_types import Key, Kind, judge, judge_entry
from renderer.keys import DEPLOY_KEYS, LAUNCH_KEYS
from renderer.merge import Leaf, Tree, leaves, winner
from renderer.problem import Problem
from renderer.schema import nearest

REQUIRED = ("K8S_NAMESPACE", "TPU_TOPOLOGY", "COMPLETIONS", "GCS_BUCKET")


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem per unknown, misplaced, mistyped or missing key."""
    for name, item in configuration.deploy.items():
        if isinstance(item, Leaf) and item.removed:
            continue
        if name in DEPLOY_KEYS:
            yield from _value(DEPLOY_KEYS[name], item)
        else:
            yield from _unknown(configuration, name, item)
    for name in REQUIRED:
        found = configuration.deploy.get(name)
        if found is None or (isinstance(found, Leaf) and found.removed):
            message = f"missing: {DEPLOY_KEYS[name].description}"
            yield Problem("deploy-missing", configuration.start, f"deploy.{name}", message)


def _value(key: Key, item: Leaf | Tree) -> Iterator[Problem]:
    path = f"deploy.{key.name}"
    if isinstance(item, Leaf):
        if key.kind is not Kind.TEXT_MAP:
            yield from judge(key, item.node, path)
        elif item.node.value is not None and item.node.value != {}:
            yield Problem("value-type", item.at, path, f"must be {key.kind.value}")
        return
    for entry, leaf in leaves(item):
        if key.kind is not Kind.TEXT_MAP:
            yield Problem("value-type", leaf.node.key_at, f"{path}.{entry}", f"{key.name} must be {key.kind.value}")
        elif entry in item:
            yield from judge_entry(key, entry, leaf.node, f"{path}.{entry}")
        else:
            yield Problem(
                "value-type",
                leaf.node.key_at,
                f"{path}.{entry}",
                "a mapping inside a mapping: write texts only",
            )


def _unknown(configuration: Configuration, name: str, item: Leaf | Tree) -> Iterator[Problem]:
    leaf = winner(item)
    place = leaf.node.key_at if leaf else configuration.start
    path = f"deploy.{name}"
    native = name.lower()
    if native in configuration.snapshot.keys:
        message = f"is MaxText's {native}: write it under maxtext:"
        yield Problem("namespace", place, path, message)
        return
    near = nearest(name.upper(), DEPLOY_KEYS) or [f"launch.{key}" for key in nearest(native, LAUNCH_KEYS)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(DEPLOY_KEYS)}"
    yield Problem("unknown-deploy-key", place, path, "unknown key", hint)
