"""Reads a run that this tool rendered (`renderer manifests`) as a recording: its run.yml lies in a ConfigMap."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pod.derivations import DerivationError, Override, derive
from renderer.legacy import manifest
from renderer.legacy.resolved import JOBSET_FIELDS, OWN_ENVIRONMENT, Resolved, flags
from renderer.legacy.values import typed
from renderer.legacy.versions import snapshot_of
from renderer.location import Location
from renderer.manifest_yaml import load
from renderer.manifests import HOLD_QUEUE
from renderer.problem import refuse
from renderer.schema import Snapshot


def run_of(objects: Sequence[Mapping[str, Any]]) -> Mapping[str, str] | None:
    """Return the data of the ConfigMap that holds run.yml and derive.json, nothing where there is none."""
    for item in objects:
        data = item.get("data") or {}
        if item.get("kind") == "ConfigMap" and {"run.yml", "derive.json"} <= set(data):
            return dict(data)
    return None


def resolve(objects: list[dict[str, Any]], data: Mapping[str, str], source: str, extended: Snapshot | None) -> Resolved:
    """Return what a rendered run comes to, its derived arguments included. Raises RefusedError for damaged files."""
    job_sets = manifest.job_sets(objects)
    if len(job_sets) != 1:
        refuse("legacy-manifest", Location(source), f"{len(job_sets)} JobSets: one is expected")
    try:
        config, facts = load(data["run.yml"]), json.loads(data["derive.json"])
        base = str(config.pop("base_config"))
        snapshot = snapshot_of(facts["maxtext_version"], source, extended)
        model_file = snapshot.models.get(facts["model"])
        defaults = {key: snapshot.base_default(key) for key in snapshot.keys}
        outcome = derive(config, facts, model_file=model_file, defaults=defaults)
    except (ValueError, KeyError, TypeError, AttributeError, DerivationError) as error:
        refuse("legacy-manifest", Location(source), f"run.yml or derive.json is damaged: {error}")
    values = config | {item.key: item.value for item in outcome if isinstance(item, Override)}
    container = manifest.container(job_sets[0], source)
    env = manifest.environment(container)
    return Resolved(
        source=source,
        version=facts["maxtext_version"],
        module=facts["trainer"],
        config=base,
        maxtext={key: typed(snapshot.keys.get(key), value) for key, value in values.items()},
        flags=flags(env.pop("LIBTPU_INIT_ARGS", ""), source),
        env={name: text for name, text in env.items() if name not in OWN_ENVIRONMENT},
        job={
            **_queued(manifest.job(job_sets[0], source)),
            **manifest.watcher(objects),
            **{field: env.get(name) for name, field in OWN_ENVIRONMENT.items()},
            **_bootstrap([str(word) for word in container.get("args") or ()]),
        },
        states=JOBSET_FIELDS,
    )


def _queued(job: dict[str, Any]) -> dict[str, Any]:
    """Return the job without the queue that only holds it until it is released."""
    return {**job, "queue": None} if job["queue"] == HOLD_QUEUE else job


def _bootstrap(arguments: Sequence[str]) -> dict[str, str]:
    """Return the job fields that the arguments of bootstrap.sh say."""
    said = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if said.get("--mode") != "source":
        return {"before": "", "after": ""}
    before = f"bootstrap.sh --deps-command {said.get('--deps-command', '')}"
    return {
        "repository": said.get("--repository", ""),
        "branch": said.get("--branch", ""),
        "before": before,
        "after": "",
    }
