"""From a run to its files: names, digests and bytes, the same on every machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from renderer import names
from renderer.jobset import Names, jobset_yml, pod_scripts, watcher_yml
from renderer.run_file import derive_json, run_yml
from renderer.run_spec import Run
from renderer.yaml_io import load

RUN_FILES = ("derive.json", "jobset.yml", "run.yml", "watcher.yml")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A run and the exact bytes of its files. `folder` is relative to the root."""

    run: Run
    folder: str
    names: Names
    files: Mapping[str, bytes]


@cache
def pod_digest() -> str:
    """Return 12 hex digits over the pod's scripts: the name of their ConfigMap, and part of every content digest."""
    return names.digest({name: data.decode() for name, data in pod_scripts().items()})[:12]


def render(run: Run, stem: str) -> Rendered:
    """Return the files of `run`; `stem` is the experiment file's, which names the folder."""
    unnamed = _names(run, "", "")
    digest = content_digest(
        load(jobset_yml(run, unnamed).decode()),
        {
            **run.maxtext,
            "base_config": "base.yml",
            "model_name": run.maxtext_model,
            "run_name": run.run_name or "",
        },
        dict(run.derive),
        load(watcher_yml(run, unnamed).decode()) if run.watcher else None,
    )
    name = names.run_name(run.name, run.chips, digest, run.slice.hosts)
    named = _names(run, name, digest)
    files = {
        "derive.json": derive_json(run),
        "jobset.yml": jobset_yml(run, named),
        "run.yml": run_yml(run, named.run),
    }
    if run.watcher:
        files["watcher.yml"] = watcher_yml(run, named)
    folder = f"rendered/{run.environment}/{run.model}/{stem}"
    return Rendered(run, folder, named, names.seal(files))


def _names(run: Run, name: str, digest: str) -> Names:
    return Names(
        object=names.object_name(name, run.attempt),
        run=run.run_name or name,
        pod_config_map=f"pod-{pod_digest()}",
        content_digest=digest,
        experiment_digest=run.experiment_digest,
        base_output_directory=str(run.maxtext.get("base_output_directory") or ""),
    )


def content_digest(jobset: Any, run_data: Any, derive: Any, watcher: Any) -> str:
    """Return the digest of a run's data, without the closed set of derived fields.

    The pod scripts count through the name of their ConfigMap. The arguments are parsed jobset.yml, run.yml,
    derive.json and watcher.yml (None where there is none).
    """
    default_name = not derive["run_name_explicit"]
    if default_name:
        run_data = {key: value for key, value in run_data.items() if key != "run_name"}
    data = [without_derived(jobset, default_name), run_data, derive, without_derived(watcher, default_name)]
    return names.digest(data)


_DERIVED = frozenset({"renderer/experiment", "renderer/owner"})
_DERIVED_ANNOTATIONS = frozenset({"renderer/content-digest", "renderer/experiment-digest", names.FILES_DIGEST})
_NAMED_BY_RUN = ("RUN_NAME", "CHECKPOINT_DIRECTORY")


def without_derived(manifest: Any, default_name: bool) -> Any:
    """Return a copy of `manifest` without object names, owner and experiment labels, and our own annotations."""
    if manifest is None:
        return None
    metadata = dict(manifest["metadata"])
    del metadata["name"]
    metadata["labels"] = {key: value for key, value in metadata["labels"].items() if key not in _DERIVED}
    if "annotations" in metadata:
        kept = {key: value for key, value in metadata["annotations"].items() if key not in _DERIVED_ANNOTATIONS}
        metadata["annotations"] = kept
    return {**manifest, "metadata": metadata, "spec": _strip(manifest["spec"], default_name)}


def _strip(value: Any, default_name: bool) -> Any:
    """Leave out, at any depth, the run's ConfigMap and watcher names and the default run name in the environment."""
    if isinstance(value, dict):
        if value.get("name") in _NAMED_BY_RUN and "value" in value and default_name:
            return {"name": value["name"]}
        if value.get("name") == "run" and "configMap" in value:
            return {"name": "run"}
        return {key: _strip(item, default_name) for key, item in value.items() if key != "renderer/watcher"}
    if isinstance(value, list):
        return [_strip(item, default_name) for item in value]
    return value


def recompute_digest(files: Mapping[str, bytes]) -> str:
    """Return the content digest of committed files. Raises ValueError, KeyError, TypeError if they are no run's."""
    watcher = load(files["watcher.yml"].decode()) if "watcher.yml" in files else None
    return content_digest(
        load(files["jobset.yml"].decode()),
        load(files["run.yml"].decode()),
        json.loads(files["derive.json"]),
        watcher,
    )


def pod_files() -> dict[str, bytes]:
    """Return the pod scripts by their path under the root."""
    return {f"rendered/_pod/{pod_digest()}/{name}": data for name, data in pod_scripts().items()}
