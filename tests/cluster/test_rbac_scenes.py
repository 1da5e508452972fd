"""rbac/*.yml on a real API server, by the commands: with them the identities can do their work, and no other's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.merges import APPLY, Merges, make_repository
from tests.cluster.node_logs import node_logs
from tests.cluster.rbac_site import Site
from tests.content import Ran

pytestmark = pytest.mark.cluster

POLICY = """\
environments:
  test:
    namespaces: [{test}]
  prod:
    namespaces: [{prod}]
"""


@pytest.fixture
def merges(site: Site, tmp_path: Path) -> Merges:
    """A repository whose runs of test may be in the sandbox's namespace; those of prod would be in another."""
    sandbox = site.sandbox
    made = make_repository(tmp_path / "repository", sandbox.plane, sandbox.namespace)
    policy = POLICY.format(test=sandbox.namespace, prod=site.other.namespace)
    made.content.write("presets/policy.yml", policy)
    made.commit()
    return made


@dataclass(frozen=True, slots=True)
class Scene:
    """The repository of runs, with a run in its first commit after the marker."""

    site: Site
    merges: Merges
    name: str
    monkeypatch: pytest.MonkeyPatch

    def run(self, who: str, *words: str) -> Ran:
        """Run the renderer as one of the identities."""
        self.monkeypatch.setenv("KUBECONFIG", str(self.site.kubeconfigs[who]))
        return self.merges.content.run(*words)

    def well(self, who: str, *words: str) -> str:
        """Run the renderer, which must do what it is asked, and return what it prints."""
        ran = self.run(who, *words)
        assert ran.code == 0, ran.out + ran.err
        return ran.out

    def launch(self) -> None:
        """Apply the run, and wait until it is running."""
        self.well("apply", *APPLY)
        self.site.sandbox.wait_running(self.name, 1)


@pytest.fixture
def scene(site: Site, merges: Merges, monkeypatch: pytest.MonkeyPatch) -> Scene:
    site.sandbox.pool("2x2x1")
    adopted = Scene(site, merges, "", monkeypatch)
    adopted.well("apply", *APPLY, "--adopt")
    merges.add(["one"])
    return Scene(site, merges, merges.names["one"], monkeypatch)


def test_apply_launches_stops_and_cleans_up(scene: Scene) -> None:
    assert "0 errors" in scene.well("apply", "preflight", "--environment", "test")
    assert scene.name in scene.well("apply", *APPLY, "--dry-run")
    scene.launch()
    assert "Launched" in scene.site.sandbox.events(scene.name)
    scene.well("apply", "stop", scene.name, "--yes")
    assert scene.site.sandbox.jobsets() == []
    scene.well("apply", "cleanup", "--environment", "test", "--yes")
    assert "nothing to do" in scene.well("apply", *APPLY)


def test_reading_watches_a_run_and_cannot_stop_it(scene: Scene, tmp_path: Path) -> None:
    sandbox = scene.site.sandbox
    scene.launch()
    assert scene.name in scene.well("read", "status", "--environment", "test")
    with node_logs(sandbox, tmp_path) as nodes:
        nodes.of(sandbox.pods(scene.name)[0]).write("completed step: 3")
        assert "completed step: 3" in scene.well("read", "logs", scene.name)
    scene.well("read", "drift", "--environment", "test")
    assert scene.run("read", "stop", scene.name, "--yes").code == 1
    assert len(sandbox.jobsets()) == 1


def test_reading_can_plan_and_cannot_apply(scene: Scene) -> None:
    assert scene.name in scene.well("read", *APPLY, "--dry-run")
    assert scene.run("read", *APPLY).code == 1
    assert scene.site.sandbox.jobsets() == []
