"""One apply at work: what was planned is recorded, stopped and launched, each run on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from renderer.cluster.api import Api, ApiError
from renderer.cluster.damage import LedgerError
from renderer.cluster.history import History
from renderer.cluster.judge import look
from renderer.cluster.launching import Launching
from renderer.cluster.ledger import Entry, Store
from renderer.cluster.objects import read_runs
from renderer.cluster.outcome import DONE, Done, Outcome, Verdict, left_alone, of_action, of_entry, stopped, swept
from renderer.cluster.planning import Sweep, Work, work
from renderer.cluster.recording import Recorder
from renderer.cluster.settings import Settings
from renderer.cluster.stop import NotStoppedError, stop
from renderer.cluster.tasks import each
from renderer.plan import Action, Effect
from renderer.runs import UNSTARTED, State

Progress = Callable[[int, int], None]
"""Is told how many steps are done, and of how many."""

_FAILURES = (ApiError, LedgerError, NotStoppedError)
_OVERTAKEN = "another apply moved the marker meanwhile; apply again"
_UNSETTLED = "the marker is moved, but what other applies launched meanwhile could not be looked at"


class Applying:
    """One apply of `todo` by `actor`."""

    def __init__(self, api: Api, git: History, store: Store, settings: Settings, todo: Work, actor: str) -> None:
        self._api, self._git, self._store, self._settings, self._todo = api, git, store, settings, todo
        self._runs = read_runs(git, todo.head, todo.tree, todo.reader, [action.state for action in todo.launches])
        self._recorder = Recorder(store, todo, self._runs, actor)
        self._recorded: dict[str, Entry] = {}

    def run(self, progress: Progress) -> Done:
        """Do it. Every run ends in an outcome, whatever happens to the others."""
        todo = self._todo
        launches = todo.launches
        steps = _Steps(progress, len(launches) + len(todo.stops) + len(todo.swept))
        outcomes = _flat(each(self._record, launches + todo.of(Effect.REFUSE))) + left_alone(todo.blocked)
        try:
            if self._store.read_marker() != todo.marker:
                return self._broken_off(outcomes, _OVERTAKEN)
        except _FAILURES as error:
            return self._broken_off(outcomes, f"the marker could not be read: {error}")
        try:
            settled = self._resettle()
        except _FAILURES as error:
            return self._broken_off(outcomes, f"{_UNSETTLED}: {error}")
        ended = {outcome.run for outcome in settled}
        sweeps = [sweep for sweep in todo.swept if sweep.entry.name not in ended]
        stops = [action for action in todo.stops if action.run not in ended]
        stop_one = steps.counted(partial(self._stop, todo.entries))
        outcomes += settled + _flat(each(steps.counted(self._sweep), sweeps)) + _flat(each(stop_one, stops))
        unfinished = not _all_done(outcomes)
        ready = [action for action in launches if action.run in self._recorded]
        launching = self._launching(ready)

        def launch(action: Action) -> list[Outcome]:
            return launching.launch(action, self._recorded[action.run])

        outcomes += _flat(each(steps.counted(launch), ready))
        if unfinished or len(ready) < len(launches):
            return Done(tuple(outcomes), complete=False)
        return self._end(outcomes)

    def dry_run(self) -> Done:
        """Return what `run` would come to, as far as it can be told without writing anything."""
        launching = self._launching(self._todo.launches, dry_run=True)
        outcomes = [self._of(action, Verdict.REFUSED, action.reason) for action in self._todo.of(Effect.REFUSE)]
        outcomes += [self._of(action, Verdict.STOPPED, action.reason) for action in self._todo.of(Effect.STOP)]
        outcomes += [swept(sweep) for sweep in self._todo.swept]
        outcomes += left_alone(self._todo.blocked) + each(launching.try_out, self._todo.launches)
        return Done(tuple(outcomes), complete=False)

    def _launching(self, launches: Iterable[Action], *, dry_run: bool = False) -> Launching:
        found = (self._runs[action.run] for action in launches)
        judge = look(self._api, self._settings, found, dry_run=dry_run)
        return Launching(self._api, self._store, self._todo, self._runs, self._recorder, judge)

    def _broken_off(self, outcomes: list[Outcome], reason: str) -> Done:
        return Done((*outcomes, *self._not_launched(reason)), complete=False, notices=(reason,))

    def _end(self, outcomes: list[Outcome]) -> Done:
        """Move the marker, and make up for what another apply recorded of an earlier commit while this one ran."""
        todo, store = self._todo, self._store
        if todo.marker == todo.head:
            return Done(tuple(outcomes), complete=True)
        try:
            if not store.move_marker(todo.marker, todo.head):
                return Done(tuple(outcomes), complete=False, notices=(_OVERTAKEN,))
        except _FAILURES as error:
            return Done(tuple(outcomes), complete=False, notices=(f"the marker could not be moved: {error}",))
        launched = {name for name, entry in todo.entries.items() if entry.state is State.LAUNCHED}
        try:
            entries = store.entries()
            late = [entry for entry in entries if entry.name not in launched | self._recorded.keys()]
            found = self._settle(todo.marker, todo.head, entries, late)
        except _FAILURES as error:
            notice = f"{_UNSETTLED}: {error}; apply again"
            return Done(tuple(outcomes), complete=False, notices=(notice,))
        return Done((*outcomes, *found), complete=_all_done(found))

    def _resettle(self) -> list[Outcome]:
        """Do what an apply broke off from after it had moved the marker to where it is now."""
        marker, left = self._todo.marker, self._store.read_unsettled()
        if marker is None or not left:
            return []
        since = {*self._git.commits(marker, left)} - {marker}
        entries = self._store.entries()
        return self._settle(left, marker, entries, [entry for entry in entries if entry.commit in since])

    def _settle(self, left: str | None, marker: str, entries: list[Entry], late: Iterable[Entry]) -> list[Outcome]:
        """Stop what other applies launched while the marker moved from `left` to `marker`, and the head does not want.

        `late` are those of the ledger's `entries` that may be theirs. What stays to be done is done by the next apply.
        """
        late = [entry for entry in late if entry.state in UNSTARTED | {State.LAUNCHED}]
        outcomes: list[Outcome] = []
        if late:
            again = work(self._api, self._git, self._store.environment, entries, left, self._todo.head, since=late)
            theirs = {entry.experiment for entry in late}
            sweeps = [sweep for sweep in again.swept if sweep.entry.experiment in theirs]
            stops = [action for action in again.stops if action.state.experiment in theirs]
            outcomes = _flat(each(self._sweep, sweeps)) + _flat(each(partial(self._stop, again.entries), stops))
        if _all_done(outcomes):
            self._store.settle(marker)
        return outcomes

    def _record(self, action: Action) -> list[Outcome]:
        """Write the entry of a run; return an outcome only where that is all."""
        try:
            entry = self._recorder.record(action)
        except _FAILURES as error:
            return [self._of(action, Verdict.FAILED, f"it could not be recorded: {error}")]
        if action.effect is Effect.REFUSE:
            return [self._of(action, Verdict.REFUSED, action.reason)]
        if (entry.digest, entry.environment) != (action.state.content, self._store.environment):
            reason = f"the ledger has another run of this name, of {entry.experiment} in {entry.environment}"
            return [self._of(action, Verdict.FAILED, reason)]
        self._recorded[action.run] = entry
        return []

    def _stop(self, entries: Mapping[str, Entry], action: Action) -> list[Outcome]:
        entry = entries[action.run]
        try:
            stop(self._api, self._store, entry, action.reason)
        except _FAILURES as error:
            return [self._of(action, Verdict.FAILED, f"{action.reason}, but stopping it failed: {error}")]
        return [stopped(entry, action.reason)]

    def _sweep(self, sweep: Sweep) -> list[Outcome]:
        try:
            commit = self._todo.head if sweep.state is State.REFUSED else ""
            stop(self._api, self._store, sweep.entry, sweep.reason, sweep.state, commit=commit)
        except _FAILURES as error:
            reason = f"{sweep.reason}, but stopping it failed: {error}"
            return [of_entry(Verdict.FAILED, sweep.entry, reason)]
        return [swept(sweep)]

    def _not_launched(self, reason: str) -> list[Outcome]:
        """Return the outcomes of the recorded runs, of which none is launched."""
        return [
            self._of(action, Verdict(entry.state), reason if entry.state in UNSTARTED else entry.reason)
            for action in self._todo.launches
            if (entry := self._recorded.get(action.run))
        ]

    def _of(self, action: Action, verdict: Verdict, reason: str) -> Outcome:
        return of_action(action, verdict, reason, self._runs.get(action.run), self._recorder.pull_request(action))


class _Steps:
    """Tells how far an apply is."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def counted[T, R](self, step: Callable[[T], R]) -> Callable[[T], R]:
        """Return a step that is counted when it is done."""

        def run(item: T) -> R:
            found = step(item)
            self._done += 1
            self._progress(self._done, self._total)
            return found

        return run


def _all_done(outcomes: Iterable[Outcome]) -> bool:
    """Return whether nothing of it is left to do: a refusal is final."""
    return all(outcome.verdict in DONE | {Verdict.REFUSED} for outcome in outcomes)


def _flat(found: Iterable[list[Outcome]]) -> list[Outcome]:
    return [outcome for outcomes in found for outcome in outcomes]
