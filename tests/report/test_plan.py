"""The plan over records alone: what only a ledger knows, and names that look like others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from renderer.plan import Action, Committed, Effect, Ledger, Live, Snapshot, plan, without_attempt

RUN = Committed(
    experiment="m/run",
    file="experiments/m/run.yml",
    environment="test",
    source="1",
    name="run-64c-11111111",
    content="1" * 64,
    own="2" * 64,
    run_name="run-64c-11111111",
    output="gs://b/m",
    chips=64,
)
CHANGED = replace(RUN, source="2", name="run-64c-22222222", content="2" * 64, run_name="run-64c-22222222")


def planned(old: Committed | None, new: Committed | None, ledger: Ledger | None = None) -> list[Action]:
    sides = (Snapshot((run,) if run else ()) for run in (old, new))
    return plan(*sides, ledger)


def told(actions: list[Action]) -> list[tuple[str, str, str]]:
    return [(action.effect.value, action.run, action.reason) for action in actions]


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("run-64c-11111111", "run-64c-11111111"),
        ("run-64c-11111111-a2", "run-64c-11111111"),
        ("run-64c-a4478636", "run-64c-a4478636"),
        ("run-64c-a4478636-a99", "run-64c-a4478636"),
        ("mine", "mine"),
    ],
)
def test_an_attempt_is_told_from_a_digest(name: str, whole: str) -> None:
    assert without_attempt(name) == whole


def test_nothing_on_either_side() -> None:
    assert planned(None, None) == []


def test_a_pending_run_is_tried_again_though_nothing_changed() -> None:
    actions = planned(RUN, RUN, Ledger(pending=frozenset({RUN.name})))
    assert told(actions) == [("retry", RUN.name, "an earlier launch did not get through")]


def test_a_refused_run_is_tried_again_only_when_its_file_changes() -> None:
    ledger = Ledger(refused=frozenset({RUN.name}))
    assert told(planned(RUN, RUN, ledger)) == [("nothing", RUN.name, "its content did not change")]
    again = planned(RUN, replace(RUN, source="2"), ledger)
    assert told(again) == [("launch", RUN.name, "it was refused before, and its file changed")]


def test_every_live_run_of_the_ledger_is_stopped() -> None:
    live = (Live("run-64c-00000000", "prod"), Live(RUN.name, "test"))
    ledger = Ledger(frozenset(run.name for run in live), {"m/run": live})
    actions = planned(RUN, replace(RUN, stopped=True), ledger)
    assert [(action.run, action.environment) for action in actions] == [(run.name, run.environment) for run in live]
    assert {action.effect for action in actions} == {Effect.STOP}


def test_what_the_ledger_does_not_know_to_live_is_not_stopped() -> None:
    assert told(planned(RUN, None, Ledger())) == [
        ("nothing", RUN.name, "its file was removed; no run of it is known to live")
    ]
    assert told(planned(RUN, CHANGED, Ledger())) == [("launch", CHANGED.name, "its content changed")]


def test_a_launched_run_is_held_until_the_old_one_is_gone() -> None:
    launch, stop = planned(RUN, CHANGED)
    assert (launch.effect, launch.run, stop.effect, stop.run, stop.then) == (
        Effect.LAUNCH,
        CHANGED.name,
        Effect.STOP,
        RUN.name,
        CHANGED.name,
    )


def test_a_person_s_run_name_continues_the_old_run_s_checkpoints() -> None:
    old, new = (replace(run, run_name="mine") for run in (RUN, CHANGED))
    assert planned(old, new)[0].starts == "continues mine"
    fresh = planned(None, new)[0]
    assert fresh.starts == "continues mine if that has checkpoints, else starts at step 0"


def test_without_checkpoints_nothing_is_continued() -> None:
    run = replace(RUN, checkpoints=False, resume="other-64c-33333333")
    starts = "starts at step 0 (checkpoints are off, so other-64c-33333333 is not continued)"
    assert planned(None, run)[0].starts == starts


def test_a_second_attempt_of_what_was_never_launched_starts_at_step_0() -> None:
    run = replace(RUN, attempt=2, name=f"{RUN.name}-a2")
    assert planned(None, run)[0].starts == "starts at step 0"
