"""Applies that break off after any write, and applies beside each other: the next one makes up for all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from renderer.cluster.api import Api, ApiError, connect, jobsets
from renderer.cluster.apply import Request, Result, apply
from renderer.cluster.history import History
from renderer.cluster.ledger import GONE, State, Store
from tests.cluster.applied import Applied

pytestmark = pytest.mark.cluster

MOST = 40


class BrokenOffError(BaseException):
    """The process ends here: nothing catches this."""


@contextmanager
def broken_off_after(count: int) -> Iterator[list[str]]:
    """Let the process end after so many writes; yield the writes that were sent."""
    original: Callable[..., Any] = Api.call
    writes: list[str] = []

    def call(self: Api, method: str, path: str, query: Any, *rest: Any, **named: Any) -> Any:
        writing = method != "GET" and "dryRun" not in query and "reviews" not in path
        if len(writes) >= count:
            raise BrokenOffError
        if writing:
            writes.append(f"{method} {path}")
        return original(self, method, path, query, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "call", call)
        yield writes


def break_off(applied: Applied, count: int) -> bool:
    """Apply until the process ends after so many writes; return whether it did."""
    with broken_off_after(count):
        try:
            applied.run()
        except BrokenOffError:
            return True
    return False


def test_a_launch_that_breaks_off_anywhere_is_made_up_for(applied: Applied) -> None:
    for count in range(MOST):
        applied.merge(f"run{count}")
        broke = break_off(applied, count)
        applied.apply()
        entry = next(entry for entry in applied.store.entries() if entry.file.endswith(f"/run{count}.yml"))
        assert (entry.state, entry.name in applied.started()) == (State.LAUNCHED, True), count
        assert len(applied.started()) == count + 1
        assert applied.apply() == []
        if not broke:
            return
    raise AssertionError("an apply never ended")


def test_a_run_that_is_replaced_in_one_directory_is_gone_before_the_other_starts(
    applied: Applied, control: str
) -> None:
    applied.merge(run_name="shared")
    applied.apply()
    for count in range(MOST):
        applied.merge(run_name="shared", steps=count + 1)
        broke = break_off(applied, count)
        assert len(applied.started()) <= 1, count
        applied.apply()
        assert len(applied.started()) == 1, count
        assert len(applied.sandbox.jobsets()) == 1
        (lease,) = applied.api.items(f"/apis/coordination.k8s.io/v1/namespaces/{control}/leases")
        assert lease["spec"]["holderIdentity"] == applied.started()[0], count
        if not broke:
            return
    raise AssertionError("an apply never ended")


def test_a_run_that_was_held_and_is_gone_is_recorded_and_never_created_again(applied: Applied) -> None:
    """It may have run to its end before its launch was recorded, or have been removed before it started."""
    recorded = 0
    for count in range(MOST):
        applied.merge(f"run{count}")
        broke = break_off(applied, count)
        held = {entry.name for entry in applied.store.entries() if entry.state is State.HELD}
        gone = held | {entry.name for entry in applied.store.entries() if entry.state is State.LAUNCHED}
        for name in gone & existing(applied):
            applied.api.delete(jobsets(applied.sandbox.namespace, name))
        found = applied.apply()
        assert gone & existing(applied) == set(), count
        assert {applied.entries()[name].state for name in gone} <= {State.LAUNCHED}
        if held:
            assert found == [("recorded", f"run{count}", GONE)], count
        recorded += len(held)
        if not broke:
            assert recorded > 1, "an apply that breaks off before and after the release"
            return
    raise AssertionError("an apply never ended")


def existing(applied: Applied) -> set[str]:
    return {item["metadata"]["name"] for item in applied.sandbox.jobsets()}


def test_the_api_server_fails_for_one_run_only(applied: Applied) -> None:
    applied.write("poor")
    applied.merge("sound")
    original = Api.create

    def create(self: Api, path: str, body: Any, **given: Any) -> Any:
        if "jobsets" in path and body["metadata"]["name"].startswith("poor") and not given.get("dry_run"):
            raise ApiError(503, "ServiceUnavailable", "later")
        return original(self, path, body, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "create", create)
        assert applied.apply(code=1) == [("launched", "sound", "new experiment"), ("pending", "poor", "later")]
    assert {entry.state for entry in applied.store.entries()} == {State.LAUNCHED, State.PENDING}
    assert applied.apply() == [("launched", "poor", "an earlier launch did not get through")]
    assert len(applied.started()) == 2


def test_two_applies_at_once_launch_each_run_once(applied: Applied) -> None:
    names = [f"run{number}" for number in range(6)]
    for name in names:
        applied.write(name)
    applied.merges.commit()
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(call_apply, applied) for _ in range(2)]
        found = [result.result() for result in results]
    assert len(applied.started()) == len(names)
    assert set(applied.states()) == {"launched"}
    assert any(result.good for result in found)
    assert applied.apply() == []


def call_apply(applied: Applied) -> Result:
    """Apply without the command line, whose streams two threads cannot share."""
    with closing(connect()) as api:
        return apply(api, History(applied.merges.content.root), Request("test", "me"), lambda _done, _total: None)


def test_an_apply_that_was_overtaken_launches_nothing(applied: Applied) -> None:
    """While an older commit is applied, a newer one without the run is applied whole."""
    older = applied.merge()
    newer = applied.remove()
    applied.merges.git("checkout", "--quiet", older)
    original = Store.read_marker
    calls = []

    def read_marker(self: Store) -> str | None:
        calls.append(1)
        if len(calls) == 2:  # the entries are written: now the marker counts
            self.move_marker(original(self), newer)
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "read_marker", read_marker)
        ran = applied.run()
    assert ran.code == 1
    assert "another apply moved the marker meanwhile; apply again" in ran.out
    assert applied.sandbox.jobsets() == []
    applied.merges.git("checkout", "--quiet", "main")
    assert applied.apply() == [("stopped", "run", "its file was removed; no run of it is known to live")]
    assert applied.states() == ["stopped"]


def test_what_another_apply_recorded_late_of_an_earlier_commit_is_stopped(applied: Applied) -> None:
    """An older apply launches a run after the newer one has read the ledger, which sees to it at its end."""
    older = applied.merge()
    applied.remove()
    original = Store.move_marker

    def move_marker(self: Store, old: str | None, new: str) -> bool:
        applied.merges.git("checkout", "--quiet", older)
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Store, "move_marker", lambda _self, _old, _new: False)
            assert len(call_apply(applied).outcomes) == 1
        applied.merges.git("checkout", "--quiet", "main")
        assert len(applied.started()) == 1
        return original(self, old, new)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "move_marker", move_marker)
        assert applied.apply() == [("stopped", "run", "its file was removed")]
    assert (applied.states(), applied.sandbox.jobsets()) == (["stopped"], [])


def test_a_stop_that_takes_too_long_is_left_to_the_next_apply(
    applied: Applied, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something keeps the JobSet: the run that replaces it stays held, and the marker waits for a removal."""
    monkeypatch.setattr("renderer.cluster.stop.MARGIN", -294)  # with the 300 s of grace: 6 s
    applied.merge()
    applied.apply()
    old = applied.only()
    path = jobsets(applied.sandbox.namespace, old.name)
    applied.api.merge(path, {"metadata": {"finalizers": ["example.com/keep"]}})
    before = applied.merge(steps=7)
    reason = "its JobSet is still there after 6 s; its deletion goes on"
    assert applied.apply(code=1) == [("held", "run", reason)]
    assert applied.store.read_marker() == before
    assert applied.started() == [old.name]
    applied.merge(launch={"state": "stopped"}, steps=7)
    assert [found[0] for found in applied.apply(code=1)] == ["stopped", "failed"]
    assert applied.store.read_marker() == before
    applied.api.merge(path, {"metadata": {"finalizers": None}})
    applied.apply()
    assert applied.store.read_marker() != before
    assert applied.sandbox.jobsets() == []


def test_a_held_run_starts_when_what_it_replaces_is_gone(applied: Applied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("renderer.cluster.stop.MARGIN", -294)
    applied.merge(run_name="shared")
    applied.apply()
    old = applied.only()
    path = jobsets(applied.sandbox.namespace, old.name)
    applied.api.merge(path, {"metadata": {"finalizers": ["example.com/keep"]}})
    applied.merge(run_name="shared", steps=7)
    assert [found[:2] for found in applied.apply(code=1)] == [("held", "run")]
    applied.api.merge(path, {"metadata": {"finalizers": None}})
    assert [found[:2] for found in applied.apply()] == [("launched", "run")]
    assert applied.started() != [old.name]
    assert len(applied.started()) == 1
