"""Runs as a cluster would show them, for tests without a cluster."""

from __future__ import annotations

from typing import Any

from renderer.cluster.api import Object
from renderer.cluster.ledger import Entry, State
from renderer.cluster.observe import Seen

NAME = "run-64c-11111111"
UID = "11111111-0000"


def entry(name: str = NAME, **fields: Any) -> Entry:
    """Return the entry of a launched run of experiments/m/run.yml."""
    default: dict[str, Any] = {
        "experiment": "m/run",
        "file": "experiments/m/run.yml",
        "environment": "test",
        "namespace": "ns",
        "digest": "1" * 64,
        "chips": 8,
        "state": State.LAUNCHED,
        "uid": UID,
        "created": "2026-11-29T10:00:00Z",
        "changed": "2026-11-29T10:00:00Z",
    }
    return Entry(name=name, **(default | fields))


def jobset(
    name: str = NAME, *, queue: str = "", suspend: bool = False, ended: Object | None = None, **status: Any
) -> Object:
    """Return a JobSet of two pods."""
    labels = {"renderer/environment": "test", "renderer/experiment": "run", "renderer/model": "m"}
    job = {"parallelism": 2, "template": {"spec": {}}}
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": UID,
            "labels": labels | ({"kueue.x-k8s.io/queue-name": queue} if queue else {}),
            "creationTimestamp": "2026-11-29T10:00:01Z",
        },
        "spec": {
            "suspend": suspend,
            "failurePolicy": {"maxRestarts": 3},
            "replicatedJobs": [{"name": "slice-job", "replicas": 1, "template": {"spec": job}}],
        },
        "status": {**status, "conditions": [ended] if ended else []},
    }


def ended(kind: str, message: str = "") -> Object:
    """Return a JobSet's condition that it is Completed or Failed."""
    return {"type": kind, "status": "True", "message": message, "lastTransitionTime": "2026-11-29T11:00:00Z"}


def pod(phase: str = "Running", index: int = 0, **status: Any) -> Object:
    """Return a pod of the run."""
    metadata = {
        "name": f"{NAME}-slice-job-0-{index}-abcde",
        "namespace": "ns",
        "uid": f"pod-{index}",
        "labels": {"batch.kubernetes.io/job-completion-index": str(index)},
        "creationTimestamp": "2026-11-29T10:00:02Z",
    }
    return {"metadata": metadata, "status": {"phase": phase, **status}}


def workload(name: str, *, queue: str = "training", priority: int = 0, created: str = "1", **conditions: str) -> Object:
    """Return Kueue's workload that waits for the reasons in `conditions`, each a message by its kind."""
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": created},
        "spec": {"queueName": queue, "priority": priority},
        "status": {
            "conditions": [
                {"type": kind, "status": "True" if kind in {"Evicted", "Admitted"} else "False", "message": message}
                for kind, message in conditions.items()
            ]
        },
    }


def seen(entry: Entry | None, jobset: Object | None = None, *pods: Object, workload: Object | None = None) -> Seen:
    """Return a run with its pods and its workload."""
    return Seen(entry, jobset, pods, workload)
