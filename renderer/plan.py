"""What a merge does to the runs: the one function that the report and `apply` both follow. Pure; no file, no git."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from renderer.names import without_attempt
from renderer.runs import Committed, Ledger, Live, Snapshot, assumed


class Effect(StrEnum):
    """What happens to a run."""

    LAUNCH = "launch"
    RELAUNCH = "relaunch"
    RETRY = "retry"
    STOP = "stop"
    REFUSE = "refuse"
    NOTHING = "nothing"


LAUNCHES = frozenset({Effect.LAUNCH, Effect.RELAUNCH, Effect.RETRY})


@dataclass(frozen=True, slots=True)
class Action:
    """One effect of the merge. `run` is the object launched or stopped.

    `state` is the head's experiment, the base's for one that is gone. A launch `starts` with words such as "starts at
    step 0"; `condition` says what may still refuse it. `then` is the run that a stop makes way for: it is held until
    the stopped run's pods are gone.
    """

    effect: Effect
    run: str
    environment: str
    reason: str
    state: Committed
    starts: str = ""
    condition: str = ""
    then: str = ""


def asked(actions: Iterable[Action], refused: Collection[str] = ()) -> dict[str, int]:
    """Return what the policy limits: launches, stops and chips of a merge.

    A retry, with the stops that it brings, was one of an earlier merge's; that of a run that was `refused` counts anew.
    """
    actions = list(actions)
    retried = {action.run for action in actions if action.effect is Effect.RETRY and action.run not in refused}
    launches = [action for action in actions if action.effect in LAUNCHES and action.run not in retried]
    stops = sum(action.effect is Effect.STOP and action.then not in retried for action in actions)
    return {"launches": len(launches), "stops": stops, "chips": sum(action.state.chips for action in launches)}


def plan(base: Snapshot, head: Snapshot, ledger: Ledger | None = None) -> list[Action]:
    """Return what merging `head` into `base` does, by experiment; a launch comes before the stops it brings.

    Without a ledger, every run that `base` holds counts as launched. The rules are docs/report.md's table.
    """
    known = assumed(base) if ledger is None else ledger
    old, new = base.by_experiment(), head.by_experiment()
    gone = {run.own: run.experiment for key, run in old.items() if key not in new and run.own}
    actions: list[Action] = []
    for experiment in sorted({*old, *new}):
        actions += _experiment(old.get(experiment), new.get(experiment), known, gone)
    return actions + list(_twice(head, new))


def _twice(head: Snapshot, taken: Mapping[str, Committed]) -> Iterator[Action]:
    for run in head.runs:
        first = taken[run.experiment]
        if run is not first:
            yield _refuse(run, f"its name {run.experiment} is that of {first.file} too")


def _experiment(
    old: Committed | None, new: Committed | None, ledger: Ledger, gone: Mapping[str, str]
) -> Iterator[Action]:
    """Yield the actions of one experiment; `gone` names the removed experiments by the digest of their own data."""
    if new is None:
        if old is not None:
            yield from _removed(old, ledger)
    elif new.stopped:
        yield from _stopped(old, new, ledger)
    elif new.problem:
        yield _refuse(new, new.problem)
    else:
        yield from _wanted(old, new, ledger, gone)
        elsewhere = [run for run in _live(new, ledger) if run.environment != new.environment]
        yield from _stops(elsewhere, new, f"moved to {new.environment}")


def _wanted(old: Committed | None, new: Committed, ledger: Ledger, gone: Mapping[str, str]) -> Iterator[Action]:
    """Yield what becomes of an experiment that the head wants to run, in its environment."""
    if old is not None and old.name and old.environment != new.environment:
        yield from _launch(old, new, ledger, f"moved from {old.environment} to {new.environment}")
    elif new.name not in ledger.known and (later := _later_attempt(new, ledger)):
        yield _nothing(new, f"attempt lowered from {later} to {new.attempt}")
    elif old is None or not old.name or new.name in ledger.pending:
        yield from _launch(old, new, ledger, _new(new, gone))
    elif new.name == old.name:
        yield from _same_run(old, new, ledger)
    elif new.content == old.content:
        yield from _attempt(old, new, ledger)
    else:
        yield from _changed(old, new, ledger)


def _new(new: Committed, gone: Mapping[str, str]) -> str:
    former = gone.get(new.own)
    if former is None:
        return "new experiment"
    name = former.partition("/")[2]
    return f"new experiment with the content of {former}, which was removed (launch.name: {name} would keep its run)"


def _removed(old: Committed, ledger: Ledger) -> Iterator[Action]:
    found = list(_stops(_live(old, ledger), old, "its file was removed"))
    yield from found or [_nothing(old, "its file was removed; no run of it is known to live")]


def _stopped(old: Committed | None, new: Committed, ledger: Ledger) -> Iterator[Action]:
    found = list(_stops(_live(old or new, ledger), new, "state: stopped"))
    yield from found or [_nothing(new, "state: stopped, and no run of it is known to live")]


def _same_run(old: Committed, new: Committed, ledger: Ledger) -> Iterator[Action]:
    if new.name in ledger.refused and new.source != old.source:
        yield from _start(Effect.LAUNCH, old, new, ledger, "it was refused before, and its file changed")
    elif old.stopped:
        yield from _launch(old, new, ledger, "no longer stopped")
    elif old.problem and new.name not in ledger.known | ledger.refused:
        yield from _start(Effect.LAUNCH, old, new, ledger, f"before, {old.problem.partition(':')[0]}")
    elif new.file != old.file:
        yield _nothing(new, f"renamed from {old.file}; the run stays the same")
    else:
        yield _nothing(new, "its content did not change")


def _attempt(old: Committed, new: Committed, ledger: Ledger) -> Iterator[Action]:
    if new.attempt <= old.attempt:  # one whose later attempt was never launched
        yield _nothing(new, f"attempt lowered from {old.attempt} to {new.attempt}")
    elif new.name in ledger.known:
        yield _nothing(new, _known(new))
    else:
        reason = f"attempt raised from {old.attempt} to {new.attempt}"
        yield from _start(Effect.RELAUNCH, old, new, ledger, reason)


def _changed(old: Committed, new: Committed, ledger: Ledger) -> Iterator[Action]:
    if new.name in ledger.known:
        yield _nothing(new, f"reverted to earlier content: {_known(new)}")
        if new.supersede != "keep":
            yield from _stops(_others(new, ledger), new, "its content was reverted")
        return
    yield from _launch(old, new, ledger, "its content changed")


def _launch(old: Committed | None, new: Committed, ledger: Ledger, reason: str) -> Iterator[Action]:
    if new.name in ledger.pending:
        yield from _start(Effect.RETRY, old, new, ledger, "an earlier launch did not get through")
    elif new.name in ledger.known:
        yield _nothing(new, _known(new))
    else:
        yield from _start(Effect.LAUNCH, old, new, ledger, reason)


def _start(effect: Effect, old: Committed | None, new: Committed, ledger: Ledger, reason: str) -> Iterator[Action]:
    """Yield a launch and the stops it brings: what becomes of the run that it replaces is `supersede`'s to say.

    Earlier attempts of the same content are never stopped for it: they have to have ended.
    """
    others = _others(new, ledger)
    earlier = [run for run in others if without_attempt(run.name) == new.whole_name and run.name not in ledger.pending]
    replaced = [run for run in others if without_attempt(run.name) != new.whole_name and not _kept(run, old, ledger)]
    started = [run for run in replaced if run.name not in ledger.pending]
    supersede = new.supersede or ("stop" if new.environment == "test" else "")
    if started and not supersede:
        yield _refuse(new, f"launch.supersede must say what becomes of {_names(started)}: keep or stop")
        return
    if supersede == "keep" and old is not None and old.name in {run.name for run in started} and _same_output(old, new):
        place = new.directory or new.run_name
        yield _refuse(new, f"supersede: keep, but {old.name} writes to {place} too: stop it, or change run_name")
        return
    if started:
        reason = f"{reason}; {_names(started)} {'goes on' if supersede == 'keep' else 'is stopped first'}"
    condition = f"refused while {_names(earlier)} lives" if earlier else ""
    yield Action(effect, new.name, new.environment, reason, new, _starts(old, new, ledger), condition)
    if supersede == "stop":
        yield from _stops(replaced, new, "superseded", then=new.name)
    else:
        yield from _stops([run for run in replaced if run not in started], new, "it was not started yet")


def _kept(run: Live, old: Committed | None, ledger: Ledger) -> bool:
    """Return whether a run outlived the launch of `old`, which was told to keep it."""
    return old is not None and old.name in ledger.known and without_attempt(run.name) != old.whole_name


def _later_attempt(new: Committed, ledger: Ledger) -> int:
    """Return the highest attempt of the same content that was launched, if it is above this one."""
    return max((attempt for attempt in ledger.attempts.get(new.whole_name, ()) if attempt > new.attempt), default=0)


def _same_output(old: Committed, new: Committed) -> bool:
    return (old.directory or old.run_name) == (new.directory or new.run_name)


def _starts(old: Committed | None, new: Committed, ledger: Ledger) -> str:
    """Return where the run starts, as far as the commits and the ledger tell."""
    if not new.checkpoints:
        ignored = f", so {new.resume} is not continued" if new.resume else ""
        return f"starts at step 0 (checkpoints are off{ignored})"
    if new.resume:
        return f"continues {new.resume}"
    if new.named_by_person:
        if old is not None and old.name in ledger.known and _same_output(old, new):
            return f"continues {new.run_name}"
        return f"continues {new.run_name} if that has checkpoints, else starts at step 0"
    if any(attempt != new.attempt for attempt in ledger.attempts.get(new.whole_name, ())):
        return f"continues {new.run_name}"
    return "starts at step 0"


def _stops(runs: Iterable[Live], state: Committed, reason: str, then: str = "") -> Iterator[Action]:
    for run in runs:
        yield Action(Effect.STOP, run.name, run.environment, reason, state, then=then)


def _live(run: Committed, ledger: Ledger) -> tuple[Live, ...]:
    return ledger.live.get(run.experiment, ())


def _others(new: Committed, ledger: Ledger) -> list[Live]:
    """Return the experiment's other live runs in its environment."""
    return [run for run in _live(new, ledger) if run.name != new.name and run.environment == new.environment]


def _names(live: Iterable[Live]) -> str:
    return ", ".join(run.name for run in live)


def _known(new: Committed) -> str:
    return f"{new.name} was launched before; raise launch.attempt to run it again"


def _nothing(state: Committed, reason: str) -> Action:
    return Action(Effect.NOTHING, state.name, state.environment, reason, state)


def _refuse(state: Committed, reason: str) -> Action:
    return Action(Effect.REFUSE, state.name, state.environment, reason, state)
