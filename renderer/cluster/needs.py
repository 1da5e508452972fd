"""What a rendered run needs of the cluster, read from its manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from renderer.names import QUEUE_LABEL

TPU = "google.com/tpu"
ACCELERATOR_LABEL = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
_GCS_FUSE = "gke-gcsfuse/volumes"


@dataclass(frozen=True, slots=True)
class SecretKey:
    """A secret whose entry `key` pods read; without a required one they do not start."""

    name: str
    key: str
    required: bool


@dataclass(frozen=True, slots=True)
class Needs:
    """What one run needs.

    `name` is its JobSet's, `api_version` the JobSet's too. `selector` is the pods' node selector with `accelerator` and
    `topology` in it; `hosts` pods ask for `chips` TPU chips together. `bucket` is the run's GCS_BUCKET. Texts are empty
    where nothing is asked for. `service_accounts` are the pods' and the watcher's; `watcher` says whether there is one.
    """

    name: str
    api_version: str
    namespace: str
    selector: Mapping[str, str]
    hosts: int
    chips: int
    claims: tuple[str, ...] = ()
    gcs_fuse: bool = False
    bucket: str = ""
    secrets: tuple[SecretKey, ...] = ()
    queue: str = ""
    priority_class: str = ""
    service_accounts: tuple[str, ...] = ()
    watcher: bool = False

    @property
    def accelerator(self) -> str:
        """The value of GKE's accelerator label, empty if the pods do not say."""
        return self.selector.get(ACCELERATOR_LABEL, "")

    @property
    def topology(self) -> str:
        """The value of GKE's topology label, empty if the pods do not say."""
        return self.selector.get(TOPOLOGY_LABEL, "")


def needs(jobset: Mapping[str, Any], watcher: Mapping[str, Any] | None) -> Needs:
    """Return what a run needs. Raises ValueError, LookupError, TypeError or AttributeError for no manifest of a run."""
    metadata = jobset["metadata"]
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    template = job["template"]
    pod = template["spec"]
    pods = [pod] if watcher is None else [pod, watcher["spec"]["template"]["spec"]]
    hosts = job["completions"]
    found = Needs(
        name=metadata["name"],
        api_version=jobset["apiVersion"],
        namespace=metadata["namespace"],
        selector=dict(pod.get("nodeSelector", {})),
        hosts=hosts,
        chips=hosts * _chips(pod),
        claims=_unique(claim for spec in pods for claim in _claims(spec)),
        gcs_fuse=template.get("metadata", {}).get("annotations", {}).get(_GCS_FUSE) == "true",
        bucket=_value(pod, "GCS_BUCKET"),
        secrets=_unique(secret for spec in pods for secret in _secrets(spec)),
        queue=metadata.get("labels", {}).get(QUEUE_LABEL, ""),
        priority_class=pod.get("priorityClassName", ""),
        service_accounts=_unique(spec["serviceAccountName"] for spec in pods if "serviceAccountName" in spec),
        watcher=watcher is not None,
    )
    _refuse_other_types(found)
    return found


def _refuse_other_types(found: Needs) -> None:
    """Raise ValueError unless all names are texts, and the namespace is one that may stand in a path."""
    names = [found.name, found.api_version, found.bucket, found.queue, found.priority_class, *found.claims]
    names += [*found.selector.values(), *found.service_accounts]
    names += [text for secret in found.secrets for text in (secret.name, secret.key)]
    if not all(isinstance(name, str) for name in names):
        raise ValueError("a name in it is no text")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", found.namespace):
        raise ValueError("its namespace has no such name")
    if type(found.hosts) is not int:
        raise ValueError("its completions are no number")


def _unique[T](found: Iterator[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(found))


def _chips(pod: Mapping[str, Any]) -> int:
    return sum(int(container["resources"]["requests"][TPU]) for container in pod["containers"])


def _claims(pod: Mapping[str, Any]) -> Iterator[str]:
    for volume in pod.get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]


def _secrets(pod: Mapping[str, Any]) -> Iterator[SecretKey]:
    """Yield the secrets that containers read as environment: the templates use no other form."""
    for _, entry in _environment(pod):
        reference = entry.get("valueFrom", {}).get("secretKeyRef")
        if reference:
            yield SecretKey(reference["name"], reference["key"], not reference.get("optional", False))


def _value(pod: Mapping[str, Any], name: str) -> str:
    return next((entry.get("value", "") for key, entry in _environment(pod) if key == name), "")


def _environment(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for container in pod["containers"]:
        for entry in container.get("env", ()):
            yield entry["name"], entry
