"""The converter of checkpoints: judged before the launch, applied after it, deleted with the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from renderer.cluster.api import Api, ApiError, Object
from renderer.cluster.ledger import State
from tests.cluster.applied import Applied, applying
from tests.cluster.sandbox import Sandbox

pytestmark = pytest.mark.cluster

DEPLOY = {
    "ENABLE_HF_CONVERSION": "true",
    "HF_OUTPUT_DIRECTORY": "gs://example-maxtext-test/hf",
    "HF_WATCHER_IMAGE": "registry.example.com/hf-watcher:1",
    "HF_SERVICE_ACCOUNT": "hf-watcher",
}


@pytest.fixture
def applied(sandbox: Sandbox, control: str, tmp_path: Path) -> Iterator[Applied]:
    with applying(sandbox, tmp_path, DEPLOY) as found:
        path = f"/api/v1/namespaces/{sandbox.namespace}/serviceaccounts"
        sandbox.plane.api.create(path, {"metadata": {"name": "hf-watcher"}})
        yield found


def watchers(applied: Applied) -> list[Object]:
    return list(applied.api.items(f"/apis/apps/v1/namespaces/{applied.sandbox.namespace}/deployments"))


def test_it_is_applied_after_the_launch_and_deleted_with_the_run(applied: Applied) -> None:
    applied.merge(enable_checkpointing=True)
    assert applied.apply("--dry-run") == [("launched", "run", "new experiment")]
    assert watchers(applied) == []
    applied.apply()
    (watcher,) = watchers(applied)
    assert watcher["metadata"]["name"] == f"{applied.only().name}-hf"
    applied.remove()
    applied.apply()
    assert (watchers(applied), applied.states()) == ([], ["stopped"])


def test_what_the_api_server_does_not_take_is_a_refusal_before_the_launch(applied: Applied) -> None:
    applied.merge(enable_checkpointing=True)
    applied.api.delete(f"/api/v1/namespaces/{applied.sandbox.namespace}/serviceaccounts/hf-watcher")
    space = applied.sandbox.namespace
    assert applied.apply(code=1) == [("refused", "run", f"service account hf-watcher does not exist in {space}")]
    assert (watchers(applied), applied.sandbox.jobsets()) == ([], [])


def test_a_failure_after_the_launch_is_made_up_for(applied: Applied) -> None:
    """The run is on, but not recorded as launched: the next apply goes on from there."""
    applied.merge(enable_checkpointing=True)
    original = Api.apply

    def fail(self: Api, path: str, body: Object, *, dry_run: bool = False) -> Object:
        if body["kind"] == "Deployment" and not dry_run:
            raise ApiError(503, "ServiceUnavailable", "later")
        return original(self, path, body, dry_run=dry_run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "apply", fail)
        assert applied.apply(code=1) == [("held", "run", "later")]
    started = applied.started()
    assert (len(started), watchers(applied)) == (1, [])
    assert applied.apply() == [("launched", "run", "an earlier launch did not get through")]
    assert (applied.started(), len(watchers(applied))) == (started, 1)


def test_a_converter_that_is_refused_does_not_take_back_the_launch(applied: Applied) -> None:
    applied.merge(enable_checkpointing=True)
    original = Api.apply

    def refuse(self: Api, path: str, body: Object, *, dry_run: bool = False) -> Object:
        if body["kind"] == "Deployment" and not dry_run:
            raise ApiError(403, "Forbidden", "quota")
        return original(self, path, body, dry_run=dry_run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "apply", refuse)
        assert applied.apply() == [("launched", "run", "its converter was not applied: quota")]
    assert applied.only().state is State.LAUNCHED
