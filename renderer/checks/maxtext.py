"""Checks of the `maxtext:` namespace against the schema snapshot of the pinned MaxText."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.configure import Configuration
from renderer.keys import DEPLOY_KEYS, LAUNCH_KEYS
from renderer.maxtext_types import judge
from renderer.merge import Leaf, Tree, values, winner
from renderer.mesh import maxtext_model
from renderer.problem import Problem
from renderer.schema import known_elsewhere, nearest

# What a value under maxtext: may not be, because the renderer or MaxText's loader owns it.
_OWNED = {
    "base_config": "run.yml always starts from base.yml",
    "model_name": "it comes from launch.model (or deploy.MAXTEXT_MODEL)",
    "override_model_config": "it is passed by the pod exactly where an override needs it (D6)",
}

MAX_SEARCHES = 50
"""A search for the nearest key takes a millisecond: a file of nothing but unknown keys gets this many."""


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem per unknown key, per value the pinned MaxText would refuse, and for an unknown model."""
    yield from _model(configuration)
    known = configuration.snapshot.keys
    unknown = 0
    for key, item in configuration.maxtext.items():
        if isinstance(item, Leaf):
            if item.removed:
                continue
            value, text = item.node.value, item.node.text
        else:
            value, text = values(item), None
        if key in _OWNED:
            yield _at(item, configuration, "owned-key", key, f"is not written: {_OWNED[key]}")
        elif key not in known:
            unknown += 1
            yield _unknown(configuration, key, item, search=unknown <= MAX_SEARCHES)
        elif message := judge(known[key], value, text):
            yield _wrong(configuration, key, item, message)


def _model(configuration: Configuration) -> Iterator[Problem]:
    """The pod's D6 reads the model's file; only a fork's, which extensions.yml declares, may be unknown here."""
    entry = configuration.snapshot.keys.get("model_name", {})
    model = maxtext_model(configuration)
    if judge(entry, model):
        leaf = configuration.leaf("deploy", "MAXTEXT_MODEL")
        place, path = (
            (leaf.at, "deploy.MAXTEXT_MODEL") if leaf else (configuration.launch.place("model"), "launch.model")
        )
        message = f"MaxText {configuration.snapshot.version} knows no model {model}"
        near = nearest(model, configuration.snapshot.models)
        nearby = f"did you mean {' or '.join(near)} (deploy.MAXTEXT_MODEL)? " if near else ""
        hint = f"{nearby}A fork's model is declared under enums: model_name: in extensions.yml"
        yield Problem("maxtext-model", place, path, message, hint)


def _wrong(configuration: Configuration, key: str, item: Leaf | Tree, message: str) -> Problem:
    leaf = winner(item)
    return Problem("maxtext-value", leaf.at if leaf else configuration.start, f"maxtext.{key}", message)


def _unknown(configuration: Configuration, key: str, item: Leaf | Tree, *, search: bool) -> Problem:
    snapshot = configuration.snapshot
    elsewhere = known_elsewhere(snapshot, key)
    near = nearest(key, snapshot.keys) if search else []
    hints = [elsewhere] if elsewhere else []
    if key.upper() in DEPLOY_KEYS:
        hints.append(f"write it under deploy: as {key.upper()}")
    elif key in LAUNCH_KEYS:
        hints.append("write it under launch:")
    elif near and not elsewhere.startswith(("renamed", "named")):
        hints.append(f"did you mean {' or '.join(near)}?")
    message = f"MaxText {snapshot.version} knows no such key"
    return _at(item, configuration, "unknown-maxtext-key", key, message, "; ".join(hints))


def _at(item: Leaf | Tree, configuration: Configuration, code: str, key: str, message: str, hint: str = "") -> Problem:
    leaf = winner(item)
    place = leaf.node.key_at if leaf else configuration.start
    return Problem(code, place, f"maxtext.{key}", message, hint)
