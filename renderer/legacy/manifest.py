"""Reads what a JobSet manifest says about its job: one normal form for recorded manifests and for ours."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from renderer.location import Location
from renderer.names import QUEUE_LABEL
from renderer.problem import refuse

_ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def documents(text: str, source: str) -> list[dict[str, Any]]:
    """Return the objects in a manifest stream as kubectl reads it (YAML 1.1). Raises RefusedError for other text."""
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    try:
        found = list(yaml.load_all(io.StringIO(text)))
    except RecursionError:
        refuse("legacy-manifest", Location(source), "is nested too deep")
    except (YAMLError, ValueError, TypeError, AttributeError, IndexError, NotImplementedError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        refuse("legacy-manifest", Location(source), f"is not YAML: {reason}")
    objects = [item for document in found for item in _items(document) if item is not None]
    for item in objects:
        if not isinstance(item, dict):
            refuse("legacy-manifest", Location(source), "holds a document that is not a Kubernetes object")
        check(item, source)
    return objects


_POD: Mapping[str, Any] = {
    "nodeSelector": {},
    "volumes": [{"name": str, "persistentVolumeClaim": {}, "configMap": {}}],
    "containers": [
        {
            "command": [],
            "args": [],
            "env": [{"name": str, "valueFrom": {"secretKeyRef": {}}}],
            "resources": {"limits": {}},
            "volumeMounts": [{"name": str, "mountPath": str}],
        }
    ],
}
_JOB: Mapping[str, Any] = {"template": {"spec": {"template": {"spec": _POD}}}}
_METADATA: Mapping[str, Any] = {"labels": {}, "annotations": {}}
_SHAPES: Mapping[str, Any] = {
    "JobSet": {"metadata": _METADATA, "spec": {"failurePolicy": {}, "replicatedJobs": [_JOB]}},
    "Deployment": {"metadata": _METADATA, "spec": {"template": {"spec": _POD}}},
    "ConfigMap": {"metadata": _METADATA, "data": {}},
}
"""What is read of each kind: mappings, lists with the shape of their items, and texts that must be there."""


def check(item: Mapping[str, Any], source: str) -> None:
    """Raise RefusedError for an object in which a mapping, list or text that is read is none."""
    kind = item.get("kind")
    wrong = _wrong(item, _SHAPES.get(kind, {}) if isinstance(kind, str) else {}, "")
    if wrong:
        refuse("legacy-manifest", Location(source), f"must be {wrong[1]}", path=wrong[0])


def _wrong(value: Any, shape: Any, path: str) -> tuple[str, str] | None:
    """Return the first place where `value` has another shape, with what it must be there; null is an absent value."""
    if shape is str:
        return None if isinstance(value, str) else (path, "text")
    if value is None:
        return None
    if not isinstance(value, type(shape)):
        return path, "a list" if isinstance(shape, list) else "a mapping"
    if isinstance(shape, dict):
        parts = [(value.get(key), inner, f"{path}.{key}".lstrip(".")) for key, inner in shape.items()]
    else:
        parts = [(child, inner, f"{path}[{index}]") for inner in shape for index, child in enumerate(value)]
        if any(child is None for child, *_ in parts):
            return path, "a list without empty items"
    return next((found for part in parts if (found := _wrong(*part))), None)


def _items(document: Any) -> list[Any]:
    """Return the objects of a List, as `kubectl get -o yaml` prints several, else the document itself."""
    if isinstance(document, dict) and document.get("kind") == "List":
        items = document.get("items") or []
        return list(items) if isinstance(items, list) else [items]
    return [document]


def dump(item: Mapping[str, Any]) -> str:
    """Return an object as JSON, which kubectl reads too."""
    return json.dumps(item, default=str)


def job_sets(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the JobSets among `objects`."""
    return [item for item in objects if item.get("kind") == "JobSet"]


def container(job_set: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the one container of the one replicated job. Raises RefusedError where there are more."""
    containers = _pod(job_set, source).get("containers") or []
    if len(containers) != 1:
        refuse("legacy-manifest", Location(source), f"{len(containers)} containers in the pod: one is expected")
    return dict(containers[0])


def environment(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the container's variables that are given as text."""
    return {item["name"]: str(item.get("value", "")) for item in found.get("env") or [] if "valueFrom" not in item}


def job(job_set: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the job fields of a JobSet (resolved.JOBSET_FIELDS without what its shell text does)."""
    replicated, spec, pod = _replicated(job_set, source), _job_spec(job_set, source), _pod(job_set, source)
    metadata, found = job_set.get("metadata") or {}, container(job_set, source)
    selector = pod.get("nodeSelector") or {}
    failure = (job_set.get("spec") or {}).get("failurePolicy") or {}
    resources = (found.get("resources") or {}).get("limits") or {}
    return {
        "name": metadata.get("name") or metadata.get("generateName"),
        "namespace": metadata.get("namespace", "default"),
        "queue": (metadata.get("labels") or {}).get(QUEUE_LABEL),
        "exclusive_topology": (metadata.get("annotations") or {}).get(_EXCLUSIVE),
        "accelerator": selector.get(_ACCELERATOR),
        "topology": selector.get(_TOPOLOGY),
        "completions": spec.get("completions"),
        "parallelism": spec.get("parallelism"),
        "backoff_limit": spec.get("backoffLimit"),
        "slices": replicated.get("replicas", 1),
        "max_restarts": failure.get("maxRestarts", 0),
        "image": found.get("image"),
        "priority": pod.get("priorityClassName"),
        "service_account": pod.get("serviceAccountName"),
        "grace_seconds": pod.get("terminationGracePeriodSeconds"),
        "ttl_seconds": (job_set.get("spec") or {}).get("ttlSecondsAfterFinished"),
        "host_network": pod.get("hostNetwork"),
        "tpus_per_host": resources.get("google.com/tpu"),
        "volumes": dict(_volumes(pod, found)),
        **_secret(found),
    }


def _replicated(job_set: Mapping[str, Any], source: str) -> dict[str, Any]:
    replicated = (job_set.get("spec") or {}).get("replicatedJobs") or []
    if len(replicated) != 1:
        refuse("legacy-manifest", Location(source), f"{len(replicated)} replicated jobs: one is expected")
    return dict(replicated[0])


def _job_spec(job_set: Mapping[str, Any], source: str) -> dict[str, Any]:
    return dict((_replicated(job_set, source).get("template") or {}).get("spec") or {})


def _pod(job_set: Mapping[str, Any], source: str) -> dict[str, Any]:
    return dict((_job_spec(job_set, source).get("template") or {}).get("spec") or {})


def _volumes(pod: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (mount path, what is mounted): a claim by its name, everything else by its kind."""
    sources = {item["name"]: item for item in pod.get("volumes") or []}
    for mount in found.get("volumeMounts") or []:
        volume = sources.get(mount["name"], {})
        kinds = [key for key in volume if key != "name"]
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        part = f" ({mount['subPath']})" if "subPath" in mount else ""
        yield mount["mountPath"], (claim or (kinds[0] if kinds else "nothing")) + part


def config_maps(job_set: Mapping[str, Any], source: str) -> Iterator[tuple[str, str]]:
    """Yield (mount path, name) of the ConfigMaps that the container mounts."""
    sources = {item["name"]: item.get("configMap") for item in _pod(job_set, source).get("volumes") or []}
    for mount in container(job_set, source).get("volumeMounts") or []:
        if sources.get(mount["name"]):
            yield mount["mountPath"], sources[mount["name"]].get("name", "")


def _secret(found: Mapping[str, Any]) -> dict[str, Any]:
    for item in found.get("env") or []:
        reference = (item.get("valueFrom") or {}).get("secretKeyRef")
        if reference and item["name"] == "GITHUB_TOKEN":
            return {"secret": reference.get("name"), "secret_optional": bool(reference.get("optional", False))}
    return {"secret": None, "secret_optional": None}


def watcher(objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the Deployment that converts checkpoints runs, where one is applied beside the JobSet."""
    for item in objects:
        if item.get("kind") == "Deployment":
            pod = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
            container: dict[str, Any] = next(iter(pod.get("containers") or ()), {})
            env = {entry["name"]: str(entry.get("value", "")) for entry in container.get("env") or []}
            kept = {name: text for name, text in env.items() if name not in {"RUN_NAME", "CHECKPOINT_DIRECTORY"}}
            account = pod.get("serviceAccountName")
            return {"watcher": {"image": container.get("image"), "service_account": account, **kept}}
    return {}
