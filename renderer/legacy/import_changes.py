"""Writes differences between a recording and an experiment down as keys of the experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from renderer.compare import ABSENT
from renderer.legacy.check import Outcome
from renderer.legacy.difference import Difference
from renderer.legacy.import_presets import NOT_WRITTEN, PLACEHOLDER
from renderer.legacy.ours import Ours
from renderer.legacy.waivers import is_default
from renderer.merge import Leaf
from renderer.yaml_io import REMOVED

_DEPLOY = {
    "job.max_restarts": "K8S_MAX_RESTARTS",
    "job.priority": "PRIORITY_CLASS",
    "job.namespace": "K8S_NAMESPACE",
    "job.bucket": "GCS_BUCKET",
    "job.service_account": "SERVICE_ACCOUNT",
    "job.queue": "QUEUE",
    "job.secret": "GITHUB_TOKEN_SECRET",
    "job.repository": "GIT_REPOSITORY",
    "job.ttl_seconds": "TTL_SECONDS",
    "job.grace_seconds": "GRACE_SECONDS",
    "program.version": "MAXTEXT_VERSION",
    "maxtext.model_name": "MAXTEXT_MODEL",
}
"""The deploy key that decides a path."""
_MAPS = {"flags": "LIBTPU_INIT_ARGS", "env": "ENV"}
_RUNTIME = ("JAX_", "TPU_", "XLA_", "TF_", "PJRT_", "LIBTPU_", "MEGASCALE_")
"""Variables that the trainer itself reads, whatever the script does with them."""
_VOLUMES = "job.volumes."
_OWN_VOLUMES = ("configMap", "emptyDir")


@dataclass(frozen=True, slots=True)
class Change:
    """An experiment in the making; `examples` are the entries whose recorded value is a placeholder."""

    launch: Mapping[str, Any]
    deploy: Mapping[str, Any] = field(default_factory=dict)
    maxtext: Mapping[str, Any] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)
    examples: tuple[str, ...] = ()


def changes(before: Change, outcome: Outcome, reads: frozenset[str]) -> Change:
    """Return the experiment with every difference that a key can take away written down.

    Left out are MaxText's own defaults, and variables (of `reads`) that only handed a value on to the pod script.
    """
    mine = outcome.ours
    deploy: dict[str, Any] = {
        key: dict(item) if isinstance(item, dict) else item for key, item in before.deploy.items()
    }
    maxtext, examples = dict(before.maxtext), list(before.examples)
    for item in outcome.differences:
        namespace, _, name = item.path.partition(".")
        if isinstance(item.recorded, str) and PLACEHOLDER.search(item.recorded) and item.path not in _DEPLOY:
            if namespace == "env":
                deploy.setdefault("ENV", {}).setdefault(name, _example(mine, name))
                examples.append(f"ENV.{name}")
        elif item.path in _DEPLOY:
            deploy[_DEPLOY[item.path]] = REMOVED if item.recorded is ABSENT else item.recorded
        elif namespace in _MAPS and not (name in reads and not name.startswith(_RUNTIME)):
            deploy.setdefault(_MAPS[namespace], {})[name] = REMOVED if item.recorded is ABSENT else item.recorded
        elif item.path.startswith(_VOLUMES) and not {item.recorded, item.ours} & set(_OWN_VOLUMES):
            mount = item.path.removeprefix(_VOLUMES)
            deploy.setdefault("VOLUMES", {})[mount] = REMOVED if item.recorded is ABSENT else item.recorded
        elif item.path.startswith("job.watcher.") and item.recorded is ABSENT:
            deploy["ENABLE_HF_CONVERSION"] = False
        elif item.recorded is ABSENT and _rule(item, mine):
            rules = deploy.get("DERIVATIONS", _rules(mine))
            deploy["DERIVATIONS"] = [rule for rule in rules if rule != _rule(item, mine)]
        elif namespace == "maxtext" and _can_be_written(name, item, mine) and not is_default(item, outcome.context):
            maxtext[name] = _removed(name, mine) if item.recorded is ABSENT else item.recorded
            if name == "base_output_directory":
                deploy.update(_bucket(str(item.recorded), outcome))
    return replace(before, deploy=deploy, maxtext=maxtext, examples=tuple(dict.fromkeys(examples)))


def _rule(item: Difference, mine: Ours) -> str:
    """Return which of D1 to D5 made our value, if one did."""
    rule = mine.origins.get(item.path, "").partition(":")[0]
    return rule if rule in _rules(mine) else ""


def _rules(mine: Ours) -> list[str]:
    leaf = mine.configuration.leaf("deploy", "DERIVATIONS")
    return list(leaf.node.value) if leaf else []


def _removed(name: str, mine: Ours) -> Any:
    """Return what takes a preset's key away: for a mesh axis its default, because the checks want axes written."""
    default = mine.configuration.snapshot.base_default(name)
    return default if name.startswith("ici_") and default == -1 else REMOVED


def _bucket(folder: str, outcome: Outcome) -> dict[str, str]:
    """Return the bucket that an output folder lies in, where the recording does not say it itself."""
    if "bucket" in outcome.recorded.resolved.states or not folder.startswith("gs://"):
        return {}
    return {"GCS_BUCKET": folder.removeprefix("gs://").partition("/")[0]}


def _example(mine: Ours, name: str) -> str:
    folder = str(mine.resolved.maxtext.get("base_output_directory", "gs://example-maxtext-test"))
    return f"{folder}/{name.lower().removesuffix('_dir')}s" if name.endswith("_DIR") else folder


def _can_be_written(name: str, item: Difference, mine: Ours) -> bool:
    """Whether `maxtext:` may hold the key: MaxText must know it, and what is removed must have been written."""
    if name in NOT_WRITTEN - {"base_output_directory"} or name not in mine.configuration.snapshot.keys:
        return False
    if item.recorded is not ABSENT:
        return True
    if name == "base_output_directory":
        return False  # a run has to write somewhere, so the preset's folder stays
    written = mine.configuration.maxtext.get(name)
    return isinstance(written, Leaf) and not written.removed
