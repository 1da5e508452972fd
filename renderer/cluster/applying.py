"""One apply at work: what was planned is recorded, stopped and launched, each run on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from renderer.cluster.api import Api, ApiError
from renderer.cluster.history import History
from renderer.cluster.judge import Judge, Judgement, look
from renderer.cluster.launch import GONE, Launch, Launcher, RefusedRunError, WaitingError
from renderer.cluster.ledger import Entry, LedgerError, State, Store
from renderer.cluster.objects import Objects, read_runs
from renderer.cluster.outcome import DONE, Outcome, Verdict, of_entry
from renderer.cluster.planning import UNSTARTED, Sweep, Work, work
from renderer.cluster.recording import Recorder
from renderer.cluster.settings import Settings
from renderer.cluster.stop import NotStoppedError, stop
from renderer.cluster.tasks import each
from renderer.plan import Action, Effect

Progress = Callable[[int, int], None]
"""Is told how many steps are done, and of how many."""

_FAILURES = (ApiError, LedgerError, NotStoppedError)
_OVERTAKEN = "another apply moved the marker meanwhile; apply again"


@dataclass(frozen=True, slots=True)
class Done:
    """What an apply came to: an outcome per run, whether all of the commit is taken care of, and what else to say."""

    outcomes: tuple[Outcome, ...]
    complete: bool
    notices: tuple[str, ...] = field(default=())


class Applying:
    """One apply of `todo` by `actor`."""

    def __init__(self, api: Api, git: History, store: Store, settings: Settings, todo: Work, actor: str) -> None:
        self._api, self._git, self._store, self._settings, self._todo = api, git, store, settings, todo
        self._runs = read_runs(git, todo.head, todo.tree, todo.reader, [action.state for action in todo.launches])
        self._recorder = Recorder(store, todo, self._runs, actor)
        self._recorded: dict[str, Entry] = {}
        self._judge = Judge(settings)
        self._launcher = Launcher(api, store, kueue=False)

    def run(self, progress: Progress) -> Done:
        """Do it. Every run ends in an outcome, whatever happens to the others."""
        todo = self._todo
        launches, stops = todo.launches, [action for action in todo.of(Effect.STOP) if not action.then]
        steps = _Steps(progress, len(launches) + len(stops) + len(todo.swept))
        outcomes = _flat(each(self._record, launches + todo.of(Effect.REFUSE))) + self._barred()
        try:
            if self._store.read_marker() != todo.marker:
                return Done(tuple(outcomes), complete=False, notices=(_OVERTAKEN,))
        except _FAILURES as error:
            return Done(tuple(outcomes), complete=False, notices=(f"the marker could not be read: {error}",))
        outcomes += _flat(each(steps.counted(self._sweep), todo.swept)) + _flat(each(steps.counted(self._stop), stops))
        unfinished = any(outcome.verdict not in DONE | {Verdict.REFUSED} for outcome in outcomes)
        ready = [action for action in launches if action.run in self._recorded]
        self._look(ready)
        outcomes += _flat(each(steps.counted(self._launch), ready))
        if unfinished or len(ready) < len(launches):
            return Done(tuple(outcomes), complete=False)
        try:
            return self._end(outcomes)
        except _FAILURES as error:
            return Done(tuple(outcomes), complete=False, notices=(f"the marker could not be moved: {error}",))

    def dry_run(self) -> Done:
        """Return what `run` would come to, as far as it can be told without writing anything."""
        self._look(self._todo.launches, dry_run=True)
        outcomes = [self._of(action, Verdict.REFUSED, action.reason) for action in self._todo.of(Effect.REFUSE)]
        outcomes += [self._of(action, Verdict.STOPPED, action.reason) for action in self._todo.of(Effect.STOP)]
        outcomes += [_swept(sweep) for sweep in self._todo.swept]
        outcomes += self._barred() + each(self._try_out, self._todo.launches)
        return Done(tuple(outcomes), complete=False)

    def _look(self, launches: Iterable[Action], *, dry_run: bool = False) -> None:
        found = (self._runs[action.run] for action in launches)
        self._judge = look(self._api, self._settings, found, dry_run=dry_run)
        self._launcher = Launcher(self._api, self._store, kueue=self._judge.kueue)

    def _end(self, outcomes: list[Outcome]) -> Done:
        """Move the marker, and make up for what another apply recorded of an earlier commit while this one ran."""
        todo = self._todo
        if todo.marker == todo.head:
            return Done(tuple(outcomes), complete=True)
        if not self._store.move_marker(todo.marker, todo.head):
            return Done(tuple(outcomes), complete=False, notices=(_OVERTAKEN,))
        entries = self._store.entries()
        known = {*todo.entries, *self._recorded}
        late = [entry for entry in entries if entry.name not in known and entry.state in UNSTARTED | {State.LAUNCHED}]
        if late:
            again = work(self._api, self._git, self._store.environment, entries, todo.marker, todo.head, since=late)
            experiments = {entry.experiment for entry in late}
            sweeps = [sweep for sweep in again.swept if sweep.entry.experiment in experiments]
            stops = [action for action in again.of(Effect.STOP) if action.state.experiment in experiments]
            self._todo = again
            outcomes = outcomes + _flat(each(self._sweep, sweeps)) + _flat(each(self._stop, stops))
        return Done(tuple(outcomes), complete=True)

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

    def _launch(self, action: Action) -> list[Outcome]:
        entry = self._recorded[action.run]
        try:
            return self._launch_or_raise(action, entry)
        except RefusedRunError as error:
            return [self._refuse(action, Judgement(str(error)))]
        except (WaitingError, NotStoppedError, LedgerError) as error:
            return [self._wait(action, str(error))]
        except ApiError as error:
            if error.passing or self._reread(entry).state is not State.PENDING:
                return [self._wait(action, str(error))]
            return [self._refuse(action, Judgement(str(error)))]

    def _launch_or_raise(self, action: Action, entry: Entry) -> list[Outcome]:
        if self._judge.waits and entry.state in UNSTARTED:
            raise WaitingError(self._judge.waits)
        run = self._runs[action.run]
        judgement = Judgement()
        if entry.state is State.PENDING or isinstance(run, str):
            judgement = self._judge.judge(action, run)
        if judgement.refusal or isinstance(run, str):
            return [self._refuse(action, judgement)]
        replaced = self._replaced(action)
        entry = self._launcher.run(entry, Launch(run, replaced, self._judge.queue(run)))
        outcome = self._of_entry(action, entry, judgement)
        stopped = replaced if outcome.verdict in {Verdict.LAUNCHED, Verdict.QUEUED} else ()
        return [outcome, *(_stopped(one, f"superseded by {entry.name}") for one in stopped)]

    def _replaced(self, action: Action) -> tuple[Entry, ...]:
        stops = self._todo.of(Effect.STOP)
        return tuple(self._todo.entries[stop.run] for stop in stops if stop.then == action.run)

    def _refuse(self, action: Action, judgement: Judgement) -> Outcome:
        """Record that a run may not be launched; what was made of it is deleted."""
        reason = judgement.refusal
        try:
            entry = stop(self._api, self._store, self._reread(self._recorded[action.run]), reason, State.REFUSED)
        except _FAILURES as error:
            reason = f"{reason}; it could not be recorded as refused: {error}"
            return self._of(action, Verdict.PENDING, reason, judgement)
        if entry.state is State.REFUSED:
            return self._of(action, Verdict.REFUSED, reason, judgement)
        return self._of_entry(action, entry, judgement)

    def _wait(self, action: Action, reason: str) -> Outcome:
        """Record why a run could not be launched yet."""
        entry = self._reread(self._recorded[action.run])
        if entry.state not in UNSTARTED:
            return self._of_entry(action, entry, Judgement())
        if entry.reason != reason:
            with suppress(ApiError):  # the reason is told here at least
                self._store.change(entry, reason=reason)
        return self._of(action, Verdict.HELD if entry.state is State.HELD else Verdict.PENDING, reason)

    def _reread(self, entry: Entry) -> Entry:
        """Return an entry as it is now, as it was where the ledger does not answer."""
        with suppress(ApiError, LedgerError):
            return self._store.entry(entry.name) or entry
        return entry

    def _stop(self, action: Action) -> list[Outcome]:
        entry = self._todo.entries[action.run]
        try:
            stop(self._api, self._store, entry, action.reason)
        except _FAILURES as error:
            return [self._of(action, Verdict.FAILED, f"{action.reason}, but stopping it failed: {error}")]
        return [_stopped(entry, action.reason)]

    def _sweep(self, sweep: Sweep) -> list[Outcome]:
        try:
            stop(self._api, self._store, sweep.entry, sweep.reason, sweep.state)
        except _FAILURES as error:
            reason = f"{sweep.reason}, but stopping it failed: {error}"
            return [of_entry(Verdict.FAILED, sweep.entry, reason)]
        return [_swept(sweep)]

    def _try_out(self, action: Action) -> Outcome:
        if self._judge.waits:
            return self._of(action, Verdict.PENDING, self._judge.waits)
        known = self._todo.entries.get(action.run)
        if known and known.state is State.HELD:
            return self._of(action, Verdict.LAUNCHED, action.reason)
        run = self._runs[action.run]
        judgement = self._judge.judge(action, run)
        if judgement.refusal or isinstance(run, str):
            return self._of(action, Verdict.REFUSED, judgement.refusal, judgement)
        launch = Launch(run, self._replaced(action), self._judge.queue(run))
        try:
            self._launcher.try_out(self._recorder.new(action), launch)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                return self._of(action, Verdict.PENDING if error.passing else Verdict.REFUSED, str(error), judgement)
            judgement = Judgement(warnings=(*judgement.warnings, f"not tried out on the API server: {error}"))
        except (RefusedRunError, LedgerError) as error:
            return self._of(action, Verdict.REFUSED, str(error), judgement)
        return self._of(action, self._started(run), action.reason, judgement)

    def _started(self, run: Objects) -> Verdict:
        return Verdict.QUEUED if self._judge.queue(run) else Verdict.LAUNCHED

    def _of_entry(self, action: Action, entry: Entry, judgement: Judgement) -> Outcome:
        run = self._runs[action.run]
        if entry.state is not State.LAUNCHED:
            return self._of(action, Verdict(entry.state), entry.reason or action.reason, judgement)
        gone = entry.reason.startswith(GONE) or isinstance(run, str)
        verdict = Verdict.RECORDED if gone or isinstance(run, str) else self._started(run)
        return self._of(action, verdict, entry.reason or action.reason, judgement)

    def _of(self, action: Action, verdict: Verdict, reason: str, judgement: Judgement | None = None) -> Outcome:
        state, run = action.state, self._runs.get(action.run)
        return Outcome(
            verdict=verdict,
            experiment=state.experiment,
            run=action.run,
            file=state.file,
            reason=reason,
            namespace=run.namespace if isinstance(run, Objects) else "",
            chips=state.chips,
            owner=state.owner,
            starts=action.starts,
            queue=self._judge.queue(run) if isinstance(run, Objects) else "",
            pull_request=self._recorder.pull_request(action),
            warnings=judgement.warnings if judgement else (),
            remedies=judgement.remedies if judgement else (),
        )

    def _barred(self) -> list[Outcome]:
        return [
            Outcome(Verdict.FAILED, experiment, "", reason=reason) for experiment, reason in self._todo.barred.items()
        ]


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


def _flat(found: Iterable[list[Outcome]]) -> list[Outcome]:
    return [outcome for outcomes in found for outcome in outcomes]


def _stopped(entry: Entry, reason: str) -> Outcome:
    return of_entry(Verdict.STOPPED, entry, reason)


def _swept(sweep: Sweep) -> Outcome:
    verdict = Verdict.REFUSED if sweep.state is State.REFUSED else Verdict.STOPPED
    return of_entry(verdict, sweep.entry, sweep.reason)
