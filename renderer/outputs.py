"""From a run to its files: names, digests and bytes, the same on every machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from renderer import names
from renderer.jobset import Names, jobset_yml, pod_scripts, watcher_yml
from renderer.layers import RENDERED, rendered_folder
from renderer.manifest_yaml import load
from renderer.run_file import derive_json, run_yml
from renderer.run_spec import Run
from renderer.run_text import CONTENT_DIGEST, value

RUN_FILES = ("derive.json", "jobset.yml", "run.yml", "watcher.yml")
REQUIRED = ("derive.json", "jobset.yml", "run.yml")
"""The files without which there is no run."""

CONFIG_MAP_FILES = ("derive.json", "run.yml")
"""What the run's ConfigMap carries into the pod."""

POD_SCRIPTS = f"{RENDERED}/_pod"
"""Where the pod scripts lie, in a folder per digest of theirs."""

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a committed file raises that is not what the renderer wrote."""


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
    return scripts_digest(pod_scripts())


def scripts_digest(scripts: Mapping[str, bytes]) -> str:
    """Return 12 hex digits over pod scripts by name. Raises ValueError if one is no text."""
    return names.digest({name: data.decode() for name, data in scripts.items()})[:12]


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
    folder = rendered_folder(run.environment, run.model, stem)
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
_DERIVED_ANNOTATIONS = frozenset({names.CONTENT_DIGEST, names.EXPERIMENT_DIGEST, names.FILES_DIGEST})
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


class Parsed(NamedTuple):
    """A run's files as data; `watcher` is None where there is none."""

    jobset: Any
    run_data: Any
    derive: Any
    watcher: Any

    @property
    def content_digest(self) -> str:
        """The content digest that follows from the data. Raises one of DAMAGED."""
        return content_digest(*self)


def parse(files: Mapping[str, bytes]) -> Parsed:
    """Return a run's files as data. Raises one of DAMAGED if they are no run's."""
    jobset, run_data = load(files["jobset.yml"].decode()), load(files["run.yml"].decode())
    if jobset is None:
        raise ValueError("jobset.yml is empty")
    watcher = load(files["watcher.yml"].decode()) if "watcher.yml" in files else None
    return Parsed(jobset, run_data, json.loads(files["derive.json"]), watcher)


def recompute_digest(files: Mapping[str, bytes]) -> str:
    """Return the content digest of committed files. Raises ValueError if they are no run's."""
    try:
        return parse(files).content_digest
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a run's files: {error}") from error


def carries_its_digest(files: Mapping[str, bytes]) -> bool:
    """Return whether jobset.yml carries the content digest of the files; files that are no run's never do."""
    try:
        return value(CONTENT_DIGEST, files["jobset.yml"]) == parse(files).content_digest
    except DAMAGED:
        return False


def pod_files() -> dict[str, bytes]:
    """Return the pod scripts by their path under the root."""
    return {f"{POD_SCRIPTS}/{pod_digest()}/{name}": data for name, data in pod_scripts().items()}


def pod_spec(jobset: Any) -> Any:
    """Return the spec of a JobSet's pods. Raises LookupError or TypeError if it is no run's."""
    return jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def mounted(jobset: Any) -> dict[str, str]:
    """Return the names of the ConfigMaps that a JobSet's pods mount, by volume. Raises like `pod_spec`."""
    return {item["name"]: item["configMap"]["name"] for item in pod_spec(jobset)["volumes"] if "configMap" in item}


def config_map_data(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return what a run's own ConfigMap holds of its files."""
    return {name: files[name] for name in CONFIG_MAP_FILES}


def digest_of_pod(jobset: Any) -> str:
    """Return the digest in the name of the ConfigMap that the volume `pod` holds. Raises one of DAMAGED."""
    found = [item["configMap"]["name"] for item in pod_spec(jobset)["volumes"] if item["name"] == "pod"]
    match = re.fullmatch(r"pod-([0-9a-f]{12})", found[0]) if len(found) == 1 else None
    if match is None:
        raise ValueError("its volume pod does not name one ConfigMap pod-<digest>")
    return match[1]
