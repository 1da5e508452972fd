"""What an apply has to do, by commits and the ledger: also where an earlier one broke off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from renderer.cluster import planning
from renderer.cluster.api import Api, Object
from renderer.cluster.ledger import Entry, State
from renderer.cluster.planning import Work, work
from tests.cluster_unit.committed_repo import CommittedRepo
from tests.repository import MODEL, PROD

NO_API = cast(Api, None)
"""The cluster is asked only whether launched runs live, and how held ones stand: see `living` and `jobset`."""

Living = Callable[[Iterable[Entry]], None]
Held = Callable[[Object | None], None]

SUSPENDED: Object = {"metadata": {"labels": {}}, "spec": {"suspend": True}}


@pytest.fixture(autouse=True)
def jobset(monkeypatch: pytest.MonkeyPatch) -> Held:
    """Say how the JobSet of a held run stands; without it, it is held."""

    def say(found: Object | None) -> None:
        monkeypatch.setattr(planning, "find_jobset", lambda _api, _entry: found)

    say(SUSPENDED)
    return say


@pytest.fixture
def living(monkeypatch: pytest.MonkeyPatch) -> Living:
    """Say which launched runs live; without it none may be asked about."""

    def say(entries: Iterable[Entry]) -> None:
        names = {entry.name for entry in entries}
        monkeypatch.setattr(planning, "lives", lambda _api, entry: entry.name in names)

    return say


def plan(repo: CommittedRepo, entries: Iterable[Entry], marker: str | None, head: str, **given: Any) -> Work:
    return work(NO_API, repo.history, "test", entries, marker, head, **given)


def told(todo: Work) -> list[tuple[str, str, str]]:
    """Return effect, run's attempt-free experiment name and reason of every action."""
    return [(action.effect.value, action.state.file.split("/")[-1], action.reason) for action in todo.actions]


def test_nothing_new_is_nothing_to_do(repo: CommittedRepo) -> None:
    head = repo.merge()
    assert plan(repo, [], head, head).empty
    assert plan(repo, [], head, repo.commit("docs")).empty


def test_a_new_run_is_launched_in_its_environment_only(repo: CommittedRepo) -> None:
    base = repo.commit()
    head = repo.merge(message="A run (#5)")
    todo = plan(repo, [], base, head)
    assert told(todo) == [("launch", "run.yml", "new experiment")]
    assert (todo.pull_requests, todo.asked) == (
        {(MODEL, "run"): "5"},
        {"launches": 1, "stops": 0, "chips": 64},
    )
    other = work(NO_API, repo.history, "prod", [], base, head)
    assert (other.empty, other.asked) == (True, {"launches": 0, "stops": 0, "chips": 0})


def test_without_a_marker_everything_is_new(repo: CommittedRepo) -> None:
    repo.merge()
    head = repo.merge("other")
    assert [action.effect for action in plan(repo, [], None, head).actions] == ["launch", "launch"]


@pytest.mark.parametrize("state", [State.PENDING, State.HELD])
def test_a_run_that_was_not_started_is_taken_up_again(repo: CommittedRepo, state: State) -> None:
    head = repo.merge()
    later = repo.commit()
    todo = plan(repo, [repo.entry(head, state)], later, later)
    assert told(todo) == [("retry", "run.yml", "an earlier launch did not get through")]
    assert (todo.swept, todo.empty) == ((), False)


@pytest.mark.parametrize("state", [State.PENDING, State.HELD])
def test_a_run_that_was_not_started_and_is_not_wanted_any_more_is_swept(repo: CommittedRepo, state: State) -> None:
    old = repo.merge()
    entry = repo.entry(old, state)
    head = repo.merge(maxtext={"steps": 7})
    (sweep,) = plan(repo, [entry], old, head).swept
    assert (sweep.entry, sweep.state) == (entry, State.STOPPED)
    (launch,) = plan(repo, [entry], old, head).launches
    assert launch.reason == "its content changed"


def test_a_run_of_neither_commit_is_swept(repo: CommittedRepo) -> None:
    entry = repo.entry(repo.merge(), State.PENDING)
    head = repo.unmerge()
    (sweep,) = plan(repo, [entry], head, head).swept
    assert (sweep.entry, sweep.reason) == (entry, "no longer wanted by the applied commit")


def test_a_pending_run_whose_files_were_damaged_is_refused(repo: CommittedRepo) -> None:
    old = repo.merge()
    entry = repo.entry(old, State.PENDING)
    repo.content.edit(f"experiments/{MODEL}/run.yml", '"team"', '"team"\n  attempt: 2')
    head = repo.commit()
    (sweep,) = plan(repo, [entry], old, head).swept
    assert (sweep.state, sweep.reason) == (
        State.REFUSED,
        "its rendered files are not those of attempt 2: run renderer render",
    )


def test_a_refusal_stands_until_the_files_change(repo: CommittedRepo) -> None:
    base = repo.commit()
    first = repo.merge()
    refused = repo.entry(first, State.REFUSED, reason="no nodes")
    assert told(plan(repo, [refused], base, repo.commit("docs"))) == [("refuse", "run.yml", "no nodes")]
    assert plan(repo, [refused], first, repo.commit("docs")).empty
    head = repo.merge(launch={"owner": "another"})
    assert told(plan(repo, [refused], first, head)) == [("retry", "run.yml", "an earlier launch did not get through")]


def test_the_marker_s_own_commit_again_tries_refused_runs_again(repo: CommittedRepo) -> None:
    head = repo.merge()
    refused = repo.entry(head, State.REFUSED)
    assert told(plan(repo, [refused], head, head)) == [("retry", "run.yml", "an earlier launch did not get through")]


def test_a_finished_run_is_not_stopped(repo: CommittedRepo, living: Living) -> None:
    old = repo.merge()
    entry = repo.entry(old, State.LAUNCHED)
    head = repo.unmerge()
    living([entry])
    assert told(plan(repo, [entry], old, head)) == [("stop", "run.yml", "its file was removed")]
    living([])
    assert plan(repo, [entry], old, head).empty


def test_only_runs_of_touched_experiments_are_looked_at(repo: CommittedRepo) -> None:
    old = repo.merge()
    head = repo.merge("other")
    assert len(plan(repo, [repo.entry(old, State.LAUNCHED)], old, head).launches) == 1


def test_a_run_that_was_launched_before_the_marker_moved_is_planned_from_its_commit(
    repo: CommittedRepo, living: Living
) -> None:
    marker = repo.commit()
    entry = repo.entry(repo.merge(), State.LAUNCHED)
    living([entry])
    assert told(plan(repo, [entry], marker, repo.commit("docs"))) == []
    changed = repo.merge(maxtext={"steps": 7})
    launch, stop = plan(repo, [entry], marker, changed).actions
    assert (launch.effect, stop.effect, stop.run, stop.then) == ("launch", "stop", entry.name, launch.run)
    assert told(plan(repo, [entry], marker, repo.unmerge())) == [("stop", "run.yml", "its file was removed")]


def test_of_two_commits_after_the_marker_the_newest_counts(repo: CommittedRepo, living: Living) -> None:
    marker = repo.commit()
    first = repo.entry(repo.merge(), State.LAUNCHED)
    second = repo.entry(repo.merge(launch={"supersede": "keep"}, maxtext={"steps": 7}), State.LAUNCHED)
    living([first, second])
    assert told(plan(repo, [first, second], marker, repo.commit("docs"))) == []
    todo = plan(repo, [second, first], marker, repo.unmerge())
    assert [action.run for action in todo.actions] == [second.name, first.name]


def test_what_a_newer_commit_launched_is_left_alone(repo: CommittedRepo, living: Living) -> None:
    marker = repo.commit()
    older = repo.merge()
    newer = repo.merge(maxtext={"steps": 7})
    for state in (State.LAUNCHED, State.HELD, State.PENDING):
        entry = repo.entry(newer, state)
        living([entry])
        todo = plan(repo, [entry], marker, older)
        assert (todo.actions, todo.swept, todo.empty) == ((), (), False)
        assert todo.blocked == {
            f"{MODEL}/run": f"{entry.name} was recorded from commit {newer[:12]}, which is no ancestor of "
            f"{older[:12]}: apply the newest commit, or stop that run"
        }


def test_a_finished_run_of_an_unknown_commit_bars_nothing(repo: CommittedRepo, living: Living) -> None:
    marker = repo.merge()
    entry = replace(repo.entry(marker, State.LAUNCHED), commit="0" * 40)
    living([])
    head = repo.merge(maxtext={"steps": 7})
    assert [action.effect for action in plan(repo, [entry], marker, head).actions] == ["launch"]


def test_late_runs_are_planned_from_their_commit_alone(repo: CommittedRepo, living: Living) -> None:
    marker = repo.commit()
    late = repo.entry(repo.merge(), State.LAUNCHED)
    head = repo.merge(maxtext={"steps": 7})
    ours = repo.entry(head, State.LAUNCHED)
    living([late, ours])
    todo = plan(repo, [late, ours], marker, head, since=[late])
    assert [(action.effect.value, action.run) for action in todo.actions] == [
        ("nothing", ours.name),
        ("stop", late.name),
    ]


@pytest.mark.parametrize(
    ("reason", "effect"),
    [("no longer wanted by the applied commit", "retry"), ("stopped by a@example.com with renderer stop", "nothing")],
)
def test_a_run_that_was_dropped_before_it_was_made_may_be_wanted_again(
    reason: str, effect: str, repo: CommittedRepo
) -> None:
    first = repo.merge()
    dropped = replace(repo.entry(first, State.STOPPED, reason=reason), uid="")
    second = repo.merge(launch={"branch": "other"})
    third = repo.merge()
    assert [action.effect for action in plan(repo, [dropped], second, third).actions] == [effect]


RELEASED = (
    {"metadata": {"labels": {}}, "spec": {}},
    {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "training"}}, "spec": {"suspend": True}},
    None,
)
"""JobSets of runs that were released before an apply broke off; the last has finished and is gone."""


@pytest.mark.parametrize("found", RELEASED)
def test_a_run_that_broke_off_after_its_release_counts_as_launched(
    found: Object | None, repo: CommittedRepo, living: Living, jobset: Held
) -> None:
    old = repo.merge()
    held = repo.entry(old, State.HELD)
    living([held] if found else [])
    jobset(found)
    again = plan(repo, [held], old, old)
    assert told(again) == [("retry", "run.yml", "an earlier launch did not get through")]
    kept = plan(repo, [held], old, repo.merge(launch={"supersede": "keep"}, maxtext={"steps": 7}))
    assert ([action.effect for action in kept.actions], kept.swept) == (["launch"], ())
    (launch,) = plan(repo, [held], old, repo.merge(launch={"attempt": 2})).actions
    assert launch.condition == (f"refused while {held.name} lives" if found else "")


def test_a_released_run_whose_launch_is_refused_meanwhile_is_not_stopped(
    repo: CommittedRepo, living: Living, jobset: Held
) -> None:
    first = repo.merge(launch={**PROD, "supersede": "stop"})
    live = repo.entry(first, State.LAUNCHED)
    held = repo.entry(repo.merge(launch={**PROD, "supersede": "stop"}, maxtext={"steps": 7}), State.HELD)
    living([live, held])
    jobset(RELEASED[0])
    head = repo.merge(launch=PROD, maxtext={"steps": 7})
    todo = work(NO_API, repo.history, "prod", [live, held], first, head)
    assert ([action.effect for action in todo.actions], todo.swept) == (["refuse"], ())


def test_an_attempt_raised_before_the_earlier_one_started_takes_its_place(repo: CommittedRepo) -> None:
    old = repo.merge()
    held = repo.entry(old, State.HELD)
    todo = plan(repo, [held], old, repo.merge(launch={"attempt": 2}))
    assert ([sweep.entry for sweep in todo.swept], [action.condition for action in todo.launches]) == ([held], [""])


@pytest.mark.parametrize("state", [State.STOPPED, State.REFUSED])
def test_a_lowered_attempt_launches_nothing_though_it_never_ran(
    repo: CommittedRepo, living: Living, state: State
) -> None:
    dropped = repo.entry(repo.merge(), state, reason="no longer wanted by the applied commit")
    second = repo.merge(launch={"attempt": 2})
    living([])
    todo = plan(repo, [dropped, repo.entry(second, State.LAUNCHED)], second, repo.merge(launch={"attempt": 1}))
    assert told(todo) == [("nothing", "run.yml", "attempt lowered from 2 to 1")]


def test_a_directory_is_kept_by_the_run_that_writes_to_it(repo: CommittedRepo, living: Living) -> None:
    first = repo.entry(repo.merge(launch={"supersede": "keep"}, maxtext={"run_name": "a"}), State.LAUNCHED)
    second = repo.merge(launch={"supersede": "keep"}, maxtext={"run_name": "b", "steps": 7})
    ended = repo.entry(second, State.LAUNCHED)
    living([first])
    head = repo.merge(launch={"supersede": "keep"}, maxtext={"run_name": "b", "steps": 9})
    assert [action.effect for action in plan(repo, [first, ended], second, head).actions] == ["launch"]
    living([first, ended])
    (action,) = plan(repo, [first, ended], second, head).actions
    assert (action.effect, action.reason.partition(" writes")[0]) == ("refuse", f"supersede: keep, but {ended.name}")


def test_a_third_version_stops_the_second_alone_which_kept_the_first(repo: CommittedRepo, living: Living) -> None:
    first = repo.entry(repo.merge(), State.LAUNCHED)
    second = repo.merge(launch={"supersede": "keep"}, maxtext={"steps": 7})
    kept_it = repo.entry(second, State.LAUNCHED)
    living([first, kept_it])
    launch, stop = plan(repo, [first, kept_it], second, repo.merge(maxtext={"steps": 9})).actions
    assert (stop.effect, stop.run, launch.reason) == (
        "stop",
        kept_it.name,
        f"its content changed; {kept_it.name} is stopped first",
    )


def test_a_refused_run_counts_when_it_is_launched(repo: CommittedRepo, living: Living) -> None:
    old = repo.merge(launch=PROD)
    live = repo.entry(old, State.LAUNCHED)
    living([live])
    wanted = repo.merge(launch=PROD, maxtext={"steps": 7})
    first = work(NO_API, repo.history, "prod", [live], old, wanted)
    assert ([action.effect for action in first.actions], first.asked["launches"]) == (["refuse"], 0)
    refused = repo.entry(wanted, State.REFUSED)
    head = repo.merge(launch={**PROD, "supersede": "stop"}, maxtext={"steps": 7})
    again = work(NO_API, repo.history, "prod", [live, refused], wanted, head)
    assert again.asked == {"launches": 1, "stops": 1, "chips": 64}


def test_a_run_left_in_the_environment_that_was_left_is_stopped(repo: CommittedRepo, living: Living) -> None:
    old = repo.merge()
    live = repo.entry(old, State.LAUNCHED)
    living([live])
    repo.content.experiment("run", model=MODEL, launch=PROD)
    damaged = repo.commit("not rendered")
    assert [action.effect for action in plan(repo, [live], old, damaged).actions] == []
    assert told(plan(repo, [live], damaged, repo.merge(launch=PROD))) == [("stop", "run.yml", "moved to prod")]


def test_a_refusal_by_this_very_commit_is_tried_again(repo: CommittedRepo) -> None:
    marker = repo.commit()
    head = repo.merge()
    refused = repo.entry(head, State.REFUSED, reason="no nodes")
    assert [action.effect for action in plan(repo, [refused], marker, head).actions] == ["retry"]


def test_what_a_waiting_apply_will_launch_is_something_to_do(repo: CommittedRepo) -> None:
    marker = repo.commit()
    repo.merge()
    for head in (repo.unmerge(), repo.merge(launch={"state": "stopped"})):
        todo = plan(repo, [], marker, head)
        assert (todo.passed, todo.empty) == (True, False)
        assert work(NO_API, repo.history, "prod", [], marker, head).empty
    assert plan(repo, [], marker, marker).empty


def test_a_refusal_by_a_commit_that_is_gone_bars_nothing(repo: CommittedRepo) -> None:
    marker = repo.commit()
    refused = replace(repo.entry(repo.merge(), State.REFUSED), commit="1" * 40)
    repo.merge("other")
    todo = plan(repo, [refused], marker, repo.commit("docs"))
    assert [action.effect for action in todo.launches] == ["launch", "retry"]
