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
CONFIG_MAP_FILES = ("derive.json", "run.yml")
"""What the run's ConfigMap carries into the pod."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A run and the exact bytes of its files. `folder` is relative to the root, `jobset` the data of jobset.yml."""

    run: Run
    folder: str
    names: Names
    files: Mapping[str, bytes]
    jobset: Mapping[str, Any]


@cache
def pod_digest() -> str:
    """Return 12 hex digits over the pod's scripts: the name of their ConfigMap, and part of every content digest."""
    return names.digest({name: data.decode() for name, data in pod_scripts().items()})[:12]


def render(run: Run, stem: str) -> Rendered:
    """Return the files of `run`; `stem` is the experiment file's, which names the folder."""
    unnamed = _names(run, "", "")
    jobset = load(jobset_yml(run, unnamed).decode())
    digest = content_digest(
        jobset,
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
    jobset["metadata"]["name"] = named.object
    return Rendered(run, folder, named, names.seal(files), jobset)


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
_NAMED_BY_RUN = {"JobSet": frozenset({"RUN_NAME"}), "Deployment": frozenset({"RUN_NAME", "CHECKPOINT_DIRECTORY"})}
"""The environment variables that carry a default run name, by kind of object: in a JobSet others are the user's own."""


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
    variables = _NAMED_BY_RUN.get(manifest["kind"], frozenset()) if default_name else frozenset()
    return {**manifest, "metadata": metadata, "spec": _strip(manifest["spec"], variables)}


def _strip(value: Any, variables: frozenset[str]) -> Any:
    """Leave out, at any depth, the run's ConfigMap and watcher names and the values of these environment variables."""
    if isinstance(value, dict):
        if value.get("name") in variables and "value" in value:
            return {"name": value["name"]}
        if value.get("name") == "run" and "configMap" in value:
            return {"name": "run"}
        return {key: _strip(item, variables) for key, item in value.items() if key != "renderer/watcher"}
    if isinstance(value, list):
        return [_strip(item, variables) for item in value]
    return value


def recompute_digest(files: Mapping[str, bytes]) -> str:
    """Return the content digest of committed files. Raises ValueError if they are no run's."""
    try:
        jobset, run_data = load(files["jobset.yml"].decode()), load(files["run.yml"].decode())
        watcher = load(files["watcher.yml"].decode()) if "watcher.yml" in files else None
        if jobset is None:
            raise ValueError("jobset.yml is empty")
        return content_digest(jobset, run_data, json.loads(files["derive.json"]), watcher)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a run's files: {error}") from error


def pod_files() -> dict[str, bytes]:
    """Return the pod scripts by their path under the root."""
    return {f"rendered/_pod/{pod_digest()}/{name}": data for name, data in pod_scripts().items()}
