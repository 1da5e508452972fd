"""Applies of several commits beside each other, and what the next one has to make of what they left."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from renderer.cluster import adopt, facts
from renderer.cluster.api import Api, ApiError, Object, core, jobsets
from renderer.cluster.apply import Result
from renderer.cluster.applying import Applying
from renderer.cluster.launching import Launching
from renderer.cluster.ledger import State, Store
from tests.cluster.api import wait_for
from tests.cluster.applied import Applied, applying
from tests.cluster.components import SIMULATED
from tests.cluster.sandbox import Sandbox
from tests.cluster.test_apply_broken_off import BrokenOffError, call_apply
from tests.cluster.test_apply_kueue import applied as applied_with_kueue
from tests.cluster.test_apply_watcher import DEPLOY
from tests.repository import MODEL

__all__ = ["applied_with_kueue"]

pytestmark = pytest.mark.cluster


@pytest.fixture
def watched(sandbox: Sandbox, control: str, tmp_path: Path) -> Iterator[Applied]:
    """Runs of prod with a converter of checkpoints."""
    with applying(sandbox, tmp_path, DEPLOY) as found:
        path = f"/api/v1/namespaces/{sandbox.namespace}/serviceaccounts"
        sandbox.plane.api.create(path, {"metadata": {"name": "hf-watcher"}})
        assert found.run("--adopt", environment="prod").code == 0
        yield found


@contextmanager
def failing(kind: str) -> Iterator[None]:
    """Let no object of a kind be written for now."""
    create, apply_ = Api.create, Api.apply

    def refused(original: Callable[..., Object]) -> Callable[..., Object]:
        def call(self: Api, path: str, body: Object, *, dry_run: bool = False) -> Object:
            if body["kind"] == kind and not dry_run:
                raise ApiError(503, "ServiceUnavailable", "later")
            return original(self, path, body, dry_run=dry_run)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "create", refused(create))
        patch.setattr(Api, "apply", refused(apply_))
        yield


def apply_older(applied: Applied, commit: str) -> Result:
    """Apply an older commit in between, which does not get as far as the marker."""
    applied.merges.git("checkout", "--quiet", commit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "move_marker", lambda _self, _old, _new: False)
        found = call_apply(applied)
    applied.merges.git("checkout", "--quiet", "main")
    return found


@contextmanager
def before(owner: type, name: str, step: Callable[[], Any]) -> Iterator[None]:
    """Take a step before the first call of a method."""
    original = getattr(owner, name)

    def call(self: Any, *given: Any) -> Any:
        patch.setattr(owner, name, original)
        step()
        return original(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, call)
        yield


def test_a_revert_is_applied_though_its_plan_was_made_before_the_launch(applied: Applied) -> None:
    """The job of the first commit waits for its turn while the second, which takes the run out again, is planned."""
    first = applied.merge()
    applied.remove()
    assert json.loads(applied.run("--dry-run", "--format", "json").out)["empty"] is False
    applied.merges.git("checkout", "--quiet", first)
    assert [verdict for verdict, *_ in applied.apply()] == ["launched"]
    applied.merges.git("checkout", "--quiet", "main")
    assert applied.apply() == [("stopped", "run", "its file was removed")]
    assert json.loads(applied.run("--dry-run", "--format", "json").out)["empty"] is True


def test_a_refused_run_is_something_to_do_until_it_is_tried_again(applied: Applied) -> None:
    applied.merge("old", run_name="shared")
    applied.apply()
    applied.merge(run_name="shared")
    assert [verdict for verdict, *_ in applied.apply(code=1)] == ["refused"]
    applied.merges.content.write("docs/notes.md", "no run")
    applied.merges.commit()
    assert json.loads(applied.run("--dry-run", "--format", "json").out)["empty"] is False
    assert applied.apply() == []
    applied.finish(next(name for name in applied.started() if name.startswith("old")))
    assert applied.apply() == [("launched", "run", "an earlier launch did not get through")]


def test_a_pending_run_that_an_older_apply_drops_is_launched_by_the_next(applied: Applied) -> None:
    applied.merge()
    with failing("JobSet"):
        applied.apply(code=1)
    older = applied.merge(launch={"state": "stopped"})
    applied.merge()
    with before(Launching, "launch", lambda: apply_older(applied, older)):
        ((verdict, _, reason),) = applied.apply(code=1)
    said = "state: stopped, and no run of it is known to live"
    assert (verdict, reason) == ("failed", f"another apply stopped it meanwhile: {said}; apply again")
    assert applied.apply() == [("launched", "run", "an earlier launch did not get through")]


def test_a_dropped_run_that_an_older_apply_launches_is_stopped(applied: Applied) -> None:
    older = applied.merge()
    with failing("JobSet"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "move_marker", lambda _self, _old, _new: False)
        call_apply(applied)
    applied.remove()
    assert applied.states() == ["pending"]
    with before(Store, "move_marker", lambda: apply_older(applied, older)):
        assert [verdict for verdict, *_ in applied.apply()] == ["stopped", "stopped"]
    assert (applied.states(), applied.sandbox.jobsets()) == (["stopped"], [])


@pytest.mark.parametrize("wanted_again", [False, True])
def test_what_an_older_apply_launched_is_the_next_one_s_where_this_one_breaks_off(
    applied: Applied, wanted_again: bool
) -> None:
    """The marker has moved when the ledger cannot be read any more."""
    older = applied.merge()
    head = applied.remove()
    original = Store.move_marker

    def move_marker(self: Store, old: str | None, new: str) -> bool:
        apply_older(applied, older)
        return original(self, old, new)

    def fail(*_given: object) -> None:
        raise ApiError(503, "ServiceUnavailable", "later")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "move_marker", move_marker)
        patch.setattr(Applying, "_settle", fail)
        ran = applied.run()
    assert ran.code == 1
    assert "the marker is moved, but what other applies launched meanwhile could not be looked at: " in ran.out
    assert (applied.store.read_marker(), len(applied.started())) == (head, 1)
    assert json.loads(applied.run("--dry-run", "--format", "json").out)["empty"] is False
    if wanted_again:
        applied.merge()
        assert (applied.apply(), len(applied.started())) == ([], 1)
    else:
        assert applied.apply() == [("stopped", "run", "its file was removed")]
        assert applied.started() == []
    assert applied.store.read_unsettled() == ""


def test_a_run_that_waits_stops_nothing(applied: Applied) -> None:
    """Launches are paused with the third version: the second, launched late, goes on until the third can start."""
    applied.merge()
    applied.apply()
    older = applied.merge(steps=7)
    applied.write(steps=9)
    applied.policy("paused: maintenance\n")
    original = Store.entries

    def entries(self: Store) -> Any:
        patch.setattr(Store, "entries", original)
        found = original(self)
        apply_older(applied, older)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "entries", entries)
        assert [verdict for verdict, *_ in applied.apply(code=1)] == ["pending"]
    assert len(applied.started()) == 1


def test_a_released_run_that_was_not_recorded_is_not_started_again(watched: Applied) -> None:
    """While its launch is not recorded, `supersede` is taken out and put back."""
    keep, prod = {"environment": "prod", "owner": "t", "supersede": "keep"}, {"environment": "prod", "owner": "t"}
    watched.merge(launch=prod, enable_checkpointing=True)
    assert watched.run(environment="prod").code == 0
    watched.merge(launch=keep, enable_checkpointing=True, steps=7)
    with failing("Deployment"):
        watched.run(environment="prod")
    runs = watched.started()
    (held,) = [entry for entry in Store(watched.api, "prod").entries() if entry.state is State.HELD]
    watched.merge(launch=prod, enable_checkpointing=True, steps=7)
    assert "refused" in watched.run(environment="prod").out
    watched.merge(launch={**keep, "owner": "u"}, enable_checkpointing=True, steps=7)
    assert watched.run(environment="prod").code == 0
    assert (watched.started(), len(runs)) == (runs, 2)
    assert watched.sandbox.jobset(held.name)["metadata"]["uid"] == held.uid


def test_a_directory_is_leased_by_the_second_adoption_where_the_first_broke_off(applied: Applied, control: str) -> None:
    applied.api.delete(core(control, "configmaps", "marker-test"))
    applied.merge("alive", run_name="shared")
    made = applied.merges.renderer("manifests", f"{MODEL}/alive")
    assert applied.sandbox.plane.kubectl("apply", "--server-side", "-f", "-", stdin=made.text).returncode == 0
    (jobset,) = applied.sandbox.jobsets()
    applied.sandbox.release(jobset["metadata"]["name"])

    def end(*_given: object) -> None:
        raise BrokenOffError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adopt.lease, "take", end)
        with pytest.raises(BrokenOffError):
            applied.run("--adopt")
    assert applied.run("--adopt").code == 0
    applied.merge("other", run_name="shared")
    assert [verdict for verdict, *_ in applied.apply(code=1)] == ["refused"]


def test_a_pod_that_still_ends_keeps_its_directory(applied: Applied) -> None:
    """Its JobSet was deleted by hand, and the pod is given its grace period to write a checkpoint in."""
    applied.sandbox.pool("2x2x1")
    applied.merge(enable_checkpointing=True)
    applied.apply()
    name, space, kubectl = applied.only().name, applied.sandbox.namespace, applied.sandbox.plane.kubectl
    applied.sandbox.wait_running(name, 1)
    (pod,) = applied.sandbox.pods(name)
    node, (label, value) = f"/api/v1/nodes/{pod['spec']['nodeName']}", SIMULATED.split("=")
    applied.api.merge(node, {"metadata": {"labels": {label: None}}})  # nobody ends its pods now
    assert kubectl("delete", "jobset", name, "-n", space, "--wait=false").returncode == 0
    wait_for("the JobSet's end", lambda: not applied.sandbox.jobsets())
    applied.merge(launch={"attempt": 2}, enable_checkpointing=True)
    assert applied.apply(code=1) == [("refused", "run", "refused while run-4c-(digest) lives")]
    kubectl("delete", "pod", pod["metadata"]["name"], "-n", space, "--force", "--grace-period=0")
    wait_for("the pod's end", lambda: not applied.sandbox.pods(name))
    applied.api.merge(node, {"metadata": {"labels": {label: value}}})
    assert [verdict for verdict, *_ in applied.apply()] == ["launched"]


def test_a_pending_run_is_launched_from_other_bytes_of_the_same_content(applied: Applied) -> None:
    applied.merge()
    with failing("JobSet"):
        applied.apply(code=1)
    content = applied.merges.content
    content.edit(f"presets/{MODEL}/topology/4chips/4k.yml", "  gradient_accumulation_steps: 1\n", "")
    content.edit(f"presets/{MODEL}/model.yml", "maxtext:\n", "maxtext:\n  gradient_accumulation_steps: 1\n")
    assert content.run("render", "--refresh", f"{MODEL}/run").code == 0
    applied.merges.commit()
    assert [verdict for verdict, *_ in applied.apply()] == ["launched"]


def test_after_a_rewritten_branch_nothing_bars_a_run(applied: Applied, control: str) -> None:
    """Its commits are gone: a kept run, and one that was refused, are found by what the new branch holds."""
    applied.merge()
    applied.apply()
    applied.merge(launch={"supersede": "keep"}, steps=7)
    applied.apply()
    applied.merge(launch={"attempt": 2, "supersede": "keep"}, steps=7)
    applied.apply(code=1)
    git = applied.merges.git
    git("reset", "--quiet", "--hard", git("commit-tree", git("rev-parse", "HEAD^{tree}"), "-m", "rewritten"))
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "--quiet", "--prune=now")
    applied.api.delete(core(control, "configmaps", "marker-test"))
    assert applied.run("--adopt").code == 0
    applied.remove()
    assert {verdict for verdict, *_ in applied.apply()} == {"stopped"}
    assert applied.started() == []


def test_a_dry_run_counts_on_the_stops_that_come_before_a_launch(applied: Applied) -> None:
    applied.merge("old", run_name="shared")
    applied.apply()
    applied.merges.remove("old")
    applied.merge("new", run_name="shared")
    dry = applied.apply("--dry-run")
    assert sorted(found[:2] for found in dry) == [("launched", "new"), ("stopped", "old")]
    assert sorted(found[:2] for found in applied.apply()) == sorted(found[:2] for found in dry)


def test_a_run_held_for_kueue_starts_where_kueue_is_gone_and_comes_back(applied_with_kueue: Applied) -> None:
    applied = applied_with_kueue
    applied.merge()

    def fail(*_given: object) -> None:
        raise ApiError(503, "ServiceUnavailable", "later")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "merge", fail)
        assert [verdict for verdict, *_ in applied.apply(code=1)] == ["held"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facts, "read_kueue", lambda _api: None)
        applied.apply()
    time.sleep(2)  # Kueue would suspend it again
    assert applied.started() == [applied.only().name]
    found = applied.api.get(jobsets(applied.sandbox.namespace, applied.only().name))
    assert found is not None
    assert "kueue.x-k8s.io/queue-name" not in found["metadata"]["labels"]
