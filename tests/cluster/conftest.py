"""Control planes for the tests, started when a test first asks for one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import plane
from tests.cluster.applied import Applied, applying
from tests.cluster.build import CERTIFICATE, program
from tests.cluster.control import control_namespace
from tests.cluster.plane import GIVEN, ControlPlane
from tests.cluster.rbac_site import Site, installed
from tests.cluster.sandbox import Sandbox
from tests.cluster.sandbox import sandbox as open_sandbox

SIMULATION = ("kwok", "kubectl")
CLUSTER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "jobset")


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with JobSet."""
    _need(*CLUSTER)
    with plane.control_plane(tmp_path_factory.mktemp("control-plane")) as found:
        yield found


@pytest.fixture(scope="session")
def control_plane_with_kueue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Another one, with JobSet and Kueue."""
    _need(*CLUSTER, "kueue")
    with plane.control_plane(tmp_path_factory.mktemp("control-plane-kueue"), kueue=True) as found:
        yield found


@pytest.fixture
def sandbox(control_plane: ControlPlane) -> Iterator[Sandbox]:
    """A namespace of the test's own."""
    with open_sandbox(control_plane) as found:
        yield found


@pytest.fixture
def sandbox_with_kueue(control_plane_with_kueue: ControlPlane) -> Iterator[Sandbox]:
    """A namespace of the test's own where Kueue is."""
    with open_sandbox(control_plane_with_kueue) as found:
        yield found


@pytest.fixture
def control(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A control namespace of the test's own, so that tests which share a control plane do not share a ledger."""
    with control_namespace(sandbox.plane, monkeypatch) as found:
        yield found


@pytest.fixture
def applied(sandbox: Sandbox, control: str, tmp_path: Path) -> Iterator[Applied]:
    """A repository of the test's own whose merges are applied to its namespace."""
    with applying(sandbox, tmp_path) as found:
        yield found


@pytest.fixture
def control_with_kueue(sandbox_with_kueue: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same where Kueue is."""
    with control_namespace(sandbox_with_kueue.plane, monkeypatch) as found:
        yield found


@pytest.fixture
def site(sandbox: Sandbox, control: str, tmp_path: Path) -> Iterator[Site]:
    """The manifests of rbac/ as installed for the sandbox's namespace."""
    with installed(sandbox, control, tmp_path) as found:
        yield found


@pytest.fixture
def only_own() -> None:
    """For tests that restart a control plane or read its record, which they cannot where one was given."""
    if os.environ.get(GIVEN):
        pytest.skip(f"not with {GIVEN}")


def _need(*programs: str) -> None:
    needed = SIMULATION if os.environ.get(GIVEN) else SIMULATION + programs
    absent = [name for name in needed if program(name) is None]
    absent += [] if CERTIFICATE.is_file() else [CERTIFICATE.name]
    if absent:
        words = f"not built: {', '.join(absent)}; make test-cluster builds what is missing"
        (pytest.fail if os.environ.get("REQUIRE_CLUSTER") else pytest.skip)(words)
