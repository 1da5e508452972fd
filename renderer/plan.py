"""What a merge does to the runs: the one function that the report and `apply` both follow. Pure; no file, no git."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_WHOLE = re.compile(r"(.*-[0-9a-f]{8})-a[0-9]{1,2}")


def without_attempt(name: str) -> str:
    """Return an object name without -a<n>; a digest that begins with a is none."""
    match = _WHOLE.fullmatch(name)
    return match[1] if match else name


@dataclass(frozen=True, slots=True)
class Committed:
    """One experiment and its rendered run, as a commit holds them.

    `experiment` is <model>/<effective name>, which stays the same when the file is renamed. `name` is the run's object
    name, empty where nothing is rendered; `content` its content digest, `own` the digest of the experiment's own data,
    `source` identifies the file's bytes. `problem` says why the rendered files cannot be launched, or is empty.
    """

    experiment: str
    file: str
    environment: str
    source: str = ""
    name: str = ""
    content: str = ""
    own: str = ""
    attempt: int = 1
    run_name: str = ""
    output: str = ""
    chips: int = 0
    owner: str = ""
    checkpoints: bool = True
    resume: str = ""
    supersede: str = ""
    stopped: bool = False
    problem: str = ""

    @property
    def whole_name(self) -> str:
        """The run's name without its attempt: what the attempts of one content share."""
        return without_attempt(self.name)

    @property
    def named_by_person(self) -> bool:
        """Whether maxtext.run_name is not the name that follows from the content."""
        return bool(self.name) and self.run_name != self.whole_name


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The experiments of one commit. Those that two commits hold alike may be left out of both."""

    runs: tuple[Committed, ...] = ()

    def by_experiment(self) -> dict[str, Committed]:
        """Return the first of each name: equal names are an error that `plan` reports."""
        found: dict[str, Committed] = {}
        for run in self.runs:
            found.setdefault(run.experiment, run)
        return found


@dataclass(frozen=True, slots=True)
class Live:
    """A run that was launched and not stopped since."""

    name: str
    environment: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What was launched before, by object name. `live` goes by experiment; pending runs are to be tried again."""

    known: frozenset[str] = frozenset()
    live: Mapping[str, tuple[Live, ...]] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


def assumed(base: Snapshot, known: Iterable[str] = ()) -> Ledger:
    """Return the ledger where every merge was applied: what `base` holds was launched, unless stopped."""
    runs = [run for run in base.runs if run.name and not run.stopped]
    live = {run.experiment: (Live(run.name, run.environment),) for run in runs}
    return Ledger(frozenset(known) | {run.name for run in runs}, live)


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
    elif old is None or not old.name:
        yield from _launch(old, new, ledger, _new(new, gone))
    elif old.environment != new.environment:
        yield from _launch(old, new, ledger, f"moved from {old.environment} to {new.environment}")
        yield from _stops(old, new, ledger, f"moved to {new.environment}")
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
    found = list(_stops(old, old, ledger, "its file was removed"))
    yield from found or [_nothing(old, "its file was removed; no run of it is known to live")]


def _stopped(old: Committed | None, new: Committed, ledger: Ledger) -> Iterator[Action]:
    found = list(_stops(old or new, new, ledger, "state: stopped"))
    yield from found or [_nothing(new, "state: stopped, and no run of it is known to live")]


def _same_run(old: Committed, new: Committed, ledger: Ledger) -> Iterator[Action]:
    if new.name in ledger.pending:
        yield _launched(Effect.RETRY, old, new, ledger, "an earlier launch did not get through")
    elif new.name in ledger.refused and new.source != old.source:
        yield _launched(Effect.LAUNCH, old, new, ledger, "it was refused before, and its file changed")
    elif old.stopped:
        yield from _launch(old, new, ledger, "no longer stopped")
    elif new.file != old.file:
        yield _nothing(new, f"renamed from {old.file}; the run stays the same")
    else:
        yield _nothing(new, "its content did not change")


def _attempt(old: Committed, new: Committed, ledger: Ledger) -> Iterator[Action]:
    if new.attempt <= old.attempt:
        yield _nothing(new, f"attempt lowered from {old.attempt} to {new.attempt}")
    elif new.name in ledger.known:
        yield _nothing(new, _known(new))
    else:
        live = ", ".join(run.name for run in _live(old, ledger))
        condition = f"refused while {live} lives" if live else ""
        reason = f"attempt raised from {old.attempt} to {new.attempt}"
        yield _launched(Effect.RELAUNCH, old, new, ledger, reason, condition)


def _changed(old: Committed, new: Committed, ledger: Ledger) -> Iterator[Action]:
    live = _live(old, ledger)
    if new.name in ledger.known:
        yield _nothing(new, f"reverted to earlier content: {_known(new)}")
        if new.supersede != "keep":
            yield from _stops(old, new, ledger, "its content was reverted")
        return
    supersede = new.supersede or ("stop" if new.environment == "test" else "")
    if live and not supersede:
        yield _refuse(new, f"launch.supersede must say what becomes of {_names(live)}: keep or stop")
    elif live and supersede == "keep" and _same_output(old, new):
        place = f"{new.output.rstrip('/')}/{new.run_name}"
        yield _refuse(new, f"supersede: keep, but {_names(live)} writes to {place} too: stop it, or change run_name")
    else:
        what = "goes on" if supersede == "keep" else "is stopped first"
        reason = f"its content changed; {_names(live)} {what}" if live else "its content changed"
        yield from _launch(old, new, ledger, reason)
        if supersede == "stop":
            yield from _stops(old, new, ledger, "superseded", then=new.name)


def _same_output(old: Committed, new: Committed) -> bool:
    return (old.output, old.run_name) == (new.output, new.run_name)


def _launch(old: Committed | None, new: Committed, ledger: Ledger, reason: str) -> Iterator[Action]:
    if new.name in ledger.pending:
        yield _launched(Effect.RETRY, old, new, ledger, "an earlier launch did not get through")
    elif new.name in ledger.known:
        yield _nothing(new, _known(new))
    else:
        yield _launched(Effect.LAUNCH, old, new, ledger, reason)


def _launched(
    effect: Effect, old: Committed | None, new: Committed, ledger: Ledger, reason: str, condition: str = ""
) -> Action:
    return Action(effect, new.name, new.environment, reason, new, _starts(old, new, ledger), condition)


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
    if any(without_attempt(name) == new.whole_name for name in ledger.known - {new.name}):
        return f"continues {new.run_name}"
    return "starts at step 0"


def _stops(old: Committed, new: Committed, ledger: Ledger, reason: str, then: str = "") -> Iterator[Action]:
    """Yield a stop per live run of the experiment but the new one; `old` says what is known of them."""
    for run in _live(old, ledger):
        if run.name != then:
            yield Action(Effect.STOP, run.name, run.environment, reason, new, then=then)


def _live(old: Committed, ledger: Ledger) -> tuple[Live, ...]:
    return ledger.live.get(old.experiment, ())


def _names(live: Iterable[Live]) -> str:
    return ", ".join(run.name for run in live)


def _known(new: Committed) -> str:
    return f"{new.name} was launched before; raise launch.attempt to run it again"


def _nothing(state: Committed, reason: str) -> Action:
    return Action(Effect.NOTHING, state.name, state.environment, reason, state)


def _refuse(state: Committed, reason: str) -> Action:
    return Action(Effect.REFUSE, state.name, state.environment, reason, state)
