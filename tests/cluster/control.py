"""A control namespace, and the client that renderer/ uses, for tests."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from renderer.cluster import ledger
from renderer.cluster.api import Api, connect
from renderer.cluster.ledger import Entry
from tests.cluster.plane import ControlPlane


@contextmanager
def control_namespace(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield a new namespace that takes the place of renderer-control, and let kubeconfig be the control plane's."""
    name = f"test-control-{secrets.token_hex(4)}"
    plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    monkeypatch.setattr(ledger, "CONTROL", name)
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    try:
        yield name
    finally:
        plane.api.delete(f"/api/v1/namespaces/{name}")


def client(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Api:
    """Return the client that the commands would use on the control plane."""
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    return connect()


def entry(name: str = "run-64c-11111111", **fields: Any) -> Entry:
    """Return an entry of the ledger as a run of experiments/m/run.yml in test would have."""
    default = {
        "experiment": "m/run",
        "file": "experiments/m/run.yml",
        "environment": "test",
        "namespace": "default",
        "digest": "1" * 64,
        "chips": 64,
    }
    return Entry(name=name, **(default | fields))
