"""The plan over records alone: what only a ledger knows, and names that look like others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from renderer.names import without_attempt
from renderer.plan import Action, Effect, asked, plan
from renderer.runs import Committed, Ledger, Live, Recorded, Snapshot, recorded

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


def live(*names: str) -> dict[str, tuple[Live, ...]]:
    return {"m/run": tuple(Live(name, "test") for name in names)}


def test_a_pending_run_brings_the_stops_of_its_launch() -> None:
    """The commit that changed the content is the base by now: only the ledger knows what was replaced."""
    ledger = Ledger(frozenset({RUN.name}), live(RUN.name), pending=frozenset({CHANGED.name}))
    for old in (RUN, CHANGED):
        retry, stop = planned(old, CHANGED, ledger)
        assert (retry.effect, retry.run) == (Effect.RETRY, CHANGED.name)
        assert retry.reason == f"an earlier launch did not get through; {RUN.name} is stopped first"
        assert (stop.effect, stop.run, stop.reason, stop.then) == (Effect.STOP, RUN.name, "superseded", CHANGED.name)


def test_a_pending_run_lets_the_kept_run_go_on() -> None:
    ledger = Ledger(frozenset({RUN.name}), live(RUN.name), pending=frozenset({CHANGED.name}))
    kept = replace(CHANGED, supersede="keep")
    reason = f"an earlier launch did not get through; {RUN.name} goes on"
    assert told(planned(kept, kept, ledger)) == [("retry", CHANGED.name, reason)]


def test_a_held_run_is_finished_and_stops_nothing_of_itself() -> None:
    ledger = recorded([Recorded(RUN.name, "m/run", "test", "held")])
    assert told(planned(RUN, RUN, ledger)) == [("retry", RUN.name, "an earlier launch did not get through")]
    assert told(planned(None, RUN, ledger)) == [("retry", RUN.name, "an earlier launch did not get through")]
    assert told(planned(RUN, None, ledger)) == [("stop", RUN.name, "its file was removed")]


def test_a_held_run_that_is_replaced_is_stopped_whatever_becomes_of_started_ones() -> None:
    ledger = recorded([Recorded(RUN.name, "m/run", "test", "held")])
    kept = replace(CHANGED, supersede="keep")
    assert told(planned(RUN, kept, ledger)) == [
        ("launch", CHANGED.name, "its content changed"),
        ("stop", RUN.name, "it was not started yet"),
    ]


def test_a_pending_attempt_still_waits_for_the_earlier_one() -> None:
    again = replace(RUN, attempt=2, name=f"{RUN.name}-a2")
    ledger = Ledger(frozenset({RUN.name}), live(RUN.name), pending=frozenset({again.name}))
    (retry,) = planned(again, again, ledger)
    assert (retry.effect, retry.condition) == (Effect.RETRY, f"refused while {RUN.name} lives")


def test_a_refused_run_whose_file_says_now_what_becomes_of_the_old_one() -> None:
    old, new = (replace(run, environment="prod") for run in (RUN, CHANGED))
    there = {"m/run": (Live(RUN.name, "prod"),)}
    (refusal,) = planned(old, new, Ledger(frozenset({RUN.name}), there))
    assert refusal.effect is Effect.REFUSE
    ledger = Ledger(frozenset({RUN.name}), there, refused=frozenset({CHANGED.name}))
    launch, stop = planned(new, replace(new, source="3", supersede="stop"), ledger)
    assert (launch.effect, stop.effect, stop.run) == (Effect.LAUNCH, Effect.STOP, RUN.name)


def test_what_was_launched_by_the_same_commit_is_not_stopped_when_it_is_applied_again() -> None:
    """An apply broke off before the marker moved."""
    ledger = Ledger(frozenset({RUN.name, CHANGED.name}), live(CHANGED.name))
    assert {action.effect for action in planned(RUN, CHANGED, ledger)} == {Effect.NOTHING}
    moved = replace(CHANGED, environment="prod")
    there = Ledger(frozenset({CHANGED.name}), {"m/run": (Live(CHANGED.name, "prod"),)})
    assert {action.effect for action in planned(RUN, moved, there)} == {Effect.NOTHING}


def test_files_that_could_not_be_launched_are_launched_once_they_can() -> None:
    broken = replace(RUN, problem="its rendered files are those of other content: run renderer render")
    reason = "before, its rendered files are those of other content"
    assert told(planned(broken, RUN, Ledger())) == [("launch", RUN.name, reason)]
    assert planned(broken, RUN, Ledger(frozenset({RUN.name})))[0].effect is Effect.NOTHING


def test_what_the_policy_limits_leaves_out_retries() -> None:
    actions = planned(RUN, CHANGED)
    assert asked(actions) == {"launches": 1, "stops": 1, "chips": 64}
    retried = planned(RUN, RUN, Ledger(pending=frozenset({RUN.name})))
    assert asked(retried) == {"launches": 0, "stops": 0, "chips": 0}


def test_a_finished_run_is_known_but_does_not_live() -> None:
    states = ("pending", "held", "launched", "refused", "stopped", "failed", "ended")
    ledger = recorded(Recorded(state, "m/run", "test", state) for state in states)
    assert ledger.known == {"launched", "stopped", "failed", "ended"}
    assert [run.name for run in ledger.live["m/run"]] == ["held", "launched"]
    assert (ledger.pending, ledger.refused) == ({"pending", "held"}, {"refused"})


def test_a_slash_at_its_end_makes_no_other_directory() -> None:
    old = replace(RUN, environment="prod", run_name="mine")
    new = replace(CHANGED, environment="prod", run_name="mine", supersede="keep", output="gs://b/m/")
    (refusal,) = planned(old, new)
    reason = f"supersede: keep, but {RUN.name} writes to gs://b/m/mine too: stop it, or change run_name"
    assert told([refusal]) == [("refuse", CHANGED.name, reason)]
