"""Every shipped run is what the real API server and JobSet's webhooks accept."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from renderer.manifest_yaml import load
from tests.cluster.api import jobsets
from tests.cluster.plane import ControlPlane
from tests.cluster.runs import ROOT, manifests, shipped

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("folder", shipped(), ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_it_is_accepted_strictly_and_stays_held(control_plane: ControlPlane, folder: Path) -> None:
    jobset = load((folder / "jobset.yml").read_text())
    name, namespace = jobset["metadata"]["name"], jobset["metadata"]["namespace"]
    if not control_plane.api.exists(f"/api/v1/namespaces/{namespace}"):
        control_plane.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    try:
        done = _apply(control_plane, manifests(folder))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[2] == f"jobset.jobset.x-k8s.io/{name} serverside-applied"
        assert control_plane.api.get(jobsets(namespace, name))["spec"]["suspend"] is True
        again = _apply(control_plane, manifests(folder))
        assert (again.returncode, again.stderr) == (0, "")
    finally:
        control_plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=manifests(folder))


def test_a_mistake_is_refused_by_name(control_plane: ControlPlane) -> None:
    text = manifests(ROOT / "rendered/test/qwen3-0.6b/smoke-64").replace("backoffLimit:", "backofLimit:")
    done = control_plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        '.spec.replicatedJobs[name="slice-job"].template.spec.backofLimit: field not declared in schema\n'
    )


def _apply(plane: ControlPlane, text: str) -> CompletedProcess[str]:
    return plane.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=text)
