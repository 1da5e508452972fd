"""Ports of parallel control planes."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from tests.cluster import ports as ports_module
from tests.cluster.ports import SIZE, reserved


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep clear of control planes that run at the same time."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(ports_module, "FIRST", random.randrange(30000, 31900, SIZE))
    monkeypatch.setattr(ports_module, "LAST", 32700)


def test_two_at_a_time_get_different_ports() -> None:
    with reserved() as one, reserved() as other:
        assert set(one).isdisjoint(other)


def test_a_port_that_is_taken_is_passed_over() -> None:
    with reserved() as ports:
        first = next(ports)
    with socket.create_server(("127.0.0.1", first + SIZE - 1)), reserved() as ports:
        assert first not in ports


def test_ports_are_given_back() -> None:
    with reserved() as ports:
        first = next(ports)
    with reserved() as ports:
        assert next(ports) == first
