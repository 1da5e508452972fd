"""Launches the recorded runs of one apply, each on its own, or says what would become of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus

from renderer.cluster.api import Api, ApiError
from renderer.cluster.damage import LedgerError
from renderer.cluster.judge import Judge, Judgement
from renderer.cluster.launch import Launch, Launcher, RefusedRunError, WaitingError
from renderer.cluster.ledger import Entry, Store
from renderer.cluster.objects import Objects
from renderer.cluster.outcome import Outcome, Verdict, of_action, stopped
from renderer.cluster.planning import Work
from renderer.cluster.recording import Recorder
from renderer.cluster.stop import NotStoppedError, stop
from renderer.plan import Action, Effect
from renderer.runs import UNSTARTED, State


class Launching:
    """Launches runs of `todo` as far as `judge` lets them; `runs` are what is launched, by name."""

    def __init__(
        self,
        api: Api,
        store: Store,
        todo: Work,
        runs: Mapping[str, Objects | str],
        recorder: Recorder,
        judge: Judge,
    ) -> None:
        self._api, self._store, self._todo, self._runs = api, store, todo, runs
        self._recorder, self._judge = recorder, judge
        self._launcher = Launcher(api, store, kueue=judge.kueue)

    def launch(self, action: Action, entry: Entry) -> list[Outcome]:
        """Launch one recorded run; return its outcome, and those of the runs that it replaced."""
        try:
            return self._launch_or_raise(action, entry)
        except RefusedRunError as error:
            return [self._refuse(action, entry, Judgement(str(error)))]
        except (WaitingError, NotStoppedError, LedgerError) as error:
            return [self._wait(action, entry, str(error))]
        except ApiError as error:
            if error.passing or self._reread(entry).state is not State.PENDING:
                return [self._wait(action, entry, str(error))]
            return [self._refuse(action, entry, Judgement(str(error)))]

    def _launch_or_raise(self, action: Action, entry: Entry) -> list[Outcome]:
        if self._judge.waits and entry.state in UNSTARTED:
            raise WaitingError(self._judge.waits)
        run = self._runs[action.run]
        judgement = Judgement()
        if entry.state is State.PENDING or isinstance(run, str):
            judgement = self._judge.judge(action, run)
        if judgement.refusal or isinstance(run, str):
            return [self._refuse(action, entry, judgement)]
        replaced = self._replaced(action)
        entry = self._launcher.run(entry, Launch(run, replaced, self._judge.queue(run)))
        outcome = self._of_entry(action, entry, judgement)
        ended = replaced if outcome.verdict in {Verdict.LAUNCHED, Verdict.QUEUED} else ()
        return [outcome, *(stopped(one, f"superseded by {entry.name}") for one in ended)]

    def _replaced(self, action: Action) -> tuple[Entry, ...]:
        stops = self._todo.of(Effect.STOP)
        return tuple(self._todo.entries[stop.run] for stop in stops if stop.then == action.run)

    def _refuse(self, action: Action, entry: Entry, judgement: Judgement) -> Outcome:
        """Record that a run may not be launched; what was made of it is deleted."""
        reason = judgement.refusal
        try:
            entry = stop(self._api, self._store, self._reread(entry), reason, State.REFUSED, commit=self._todo.head)
        except (ApiError, LedgerError, NotStoppedError) as error:
            reason = f"{reason}; it could not be recorded as refused: {error}"
            return self._of(action, Verdict.PENDING, reason, judgement)
        if entry.state is State.REFUSED:
            return self._of(action, Verdict.REFUSED, reason, judgement)
        return self._of_entry(action, entry, judgement)

    def _wait(self, action: Action, entry: Entry, reason: str) -> Outcome:
        """Record why a run could not be launched yet."""
        entry = self._reread(entry)
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

    def try_out(self, action: Action) -> Outcome:
        """Return what would become of a launch, without writing anything."""
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
            self._launcher.try_out(self._recorder.new(action), launch, self._ending())
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                return self._of(action, Verdict.PENDING if error.passing else Verdict.REFUSED, str(error), judgement)
            judgement = Judgement(warnings=(*judgement.warnings, f"not tried out on the API server: {error}"))
        except (RefusedRunError, LedgerError) as error:
            return self._of(action, Verdict.REFUSED, str(error), judgement)
        return self._of(action, self._started(run), action.reason, judgement)

    def _ending(self) -> set[str]:
        """Return the runs that this apply stops, or drops before they start."""
        return {action.run for action in self._todo.of(Effect.STOP)} | {sweep.entry.name for sweep in self._todo.swept}

    def _started(self, run: Objects) -> Verdict:
        return Verdict.QUEUED if self._judge.queue(run) else Verdict.LAUNCHED

    def _of_entry(self, action: Action, entry: Entry, judgement: Judgement) -> Outcome:
        run = self._runs[action.run]
        if entry.state is State.STOPPED and not entry.by_hand:
            reason = f"another apply stopped it meanwhile: {entry.reason}; apply again"
            return self._of(action, Verdict.FAILED, reason, judgement)
        if entry.state is not State.LAUNCHED:
            return self._of(action, Verdict(entry.state), entry.reason or action.reason, judgement)
        verdict = Verdict.RECORDED if entry.gone or isinstance(run, str) else self._started(run)
        return self._of(action, verdict, entry.reason or action.reason, judgement)

    def _of(self, action: Action, verdict: Verdict, reason: str, judgement: Judgement | None = None) -> Outcome:
        run = self._runs.get(action.run)
        queue = self._judge.queue(run) if isinstance(run, Objects) else ""
        return of_action(action, verdict, reason, run, self._recorder.pull_request(action), queue, judgement)
