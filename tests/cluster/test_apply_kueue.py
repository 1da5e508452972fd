"""Launches where Kueue is installed: with a queue, without one, and where a queue named default would catch the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.api import wait_for
from tests.cluster.applied import Applied, applying
from tests.cluster.queues import add_queue
from tests.cluster.sandbox import QUEUE, Sandbox

pytestmark = pytest.mark.cluster

TOPOLOGY = "2x2x1"


@pytest.fixture
def applied(sandbox_with_kueue: Sandbox, control_with_kueue: str, tmp_path: Path) -> Iterator[Applied]:
    with applying(sandbox_with_kueue, tmp_path) as found:
        yield found


@pytest.fixture
def queued(sandbox_with_kueue: Sandbox, control_with_kueue: str, tmp_path: Path) -> Iterator[Applied]:
    """Runs that ask for the queue training, which has chips for one of them."""
    sandbox_with_kueue.pool(TOPOLOGY)
    sandbox_with_kueue.pool(TOPOLOGY)
    add_queue(sandbox_with_kueue, "training", TOPOLOGY, 4)
    with applying(sandbox_with_kueue, tmp_path, {"QUEUE": "training"}) as found:
        yield found


def labels(applied: Applied) -> list[str | None]:
    return [item["metadata"]["labels"].get(QUEUE) for item in applied.sandbox.jobsets()]


def test_a_run_without_a_queue_starts(applied: Applied) -> None:
    applied.merge()
    assert applied.apply() == [("launched", "run", "new experiment")]
    assert (labels(applied), applied.started()) == ([None], [applied.only().name])


def test_a_run_without_a_queue_goes_to_the_default_one_where_there_is_one(applied: Applied) -> None:
    """Kueue lets no JobSet of the namespace go without."""
    applied.sandbox.pool(TOPOLOGY)
    add_queue(applied.sandbox, "default", TOPOLOGY, 4)
    applied.merge()
    ran = applied.run()
    assert (ran.code, ran.err) == (0, ""), ran.out
    space = applied.sandbox.namespace
    warning = f"warning: LocalQueue default of {space} takes every JobSet without a queue, and the run names none"
    assert warning in ran.out
    assert "in queue default" in ran.out
    assert labels(applied) == ["default"]
    wait_for("the admitted run", lambda: applied.started() == [applied.only().name])


def test_runs_are_handed_to_their_queue(queued: Applied) -> None:
    queued.write("second")
    queued.merge("first")
    assert [found[:2] for found in queued.apply()] == [("queued", "first"), ("queued", "second")]
    assert labels(queued) == ["training", "training"]
    wait_for("the admitted run", lambda: len(queued.started()) == 1)
    assert queued.apply() == []
    queued.remove("first")
    queued.remove("second")
    assert [found[:2] for found in queued.apply()] == [("stopped", "first"), ("stopped", "second")]
    assert queued.sandbox.jobsets() == []


def test_a_queue_that_does_not_exist_is_a_refusal(applied: Applied) -> None:
    applied.merges.content.edit("presets/qwen3-0.6b/environment/test.yml", "deploy:\n", "deploy:\n  QUEUE: none-such\n")
    applied.merge()
    ((verdict, _, reason),) = applied.apply(code=1)
    assert verdict == "refused"
    assert "none-such" in reason
    assert applied.sandbox.jobsets() == []
