"""What became of one run in an apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from renderer.cluster.judge import Judgement
from renderer.cluster.ledger import Entry
from renderer.cluster.objects import Objects
from renderer.cluster.planning import Sweep
from renderer.plan import Action
from renderer.runs import State


class Verdict(StrEnum):
    """What an apply did to a run; in a dry run, what it would do."""

    LAUNCHED = "launched"
    QUEUED = "queued"
    RECORDED = "recorded"
    STOPPED = "stopped"
    PENDING = "pending"
    HELD = "held"
    REFUSED = "refused"
    FAILED = "failed"


DONE = frozenset({Verdict.LAUNCHED, Verdict.QUEUED, Verdict.RECORDED, Verdict.STOPPED})
"""The verdicts after which nothing is left to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run, and why.

    `starts` says where a launch starts, `queue` which Kueue queue it was handed to. `warnings` are what preflight
    doubts, `remedies` the commands that mend what it misses.
    """

    verdict: Verdict
    experiment: str
    run: str
    file: str = ""
    reason: str = ""
    namespace: str = ""
    chips: int = 0
    owner: str = ""
    starts: str = ""
    queue: str = ""
    pull_request: str = ""
    warnings: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """What an apply came to: an outcome per run, whether all of the commit is taken care of, and what else to say."""

    outcomes: tuple[Outcome, ...]
    complete: bool
    notices: tuple[str, ...] = ()


def of_action(
    action: Action,
    verdict: Verdict,
    reason: str,
    run: Objects | str | None,
    pull_request: str,
    queue: str = "",
    judgement: Judgement | None = None,
) -> Outcome:
    """Return the outcome of a planned run; `run` is what it consists of, or why that cannot be launched."""
    state, judgement = action.state, judgement or Judgement()
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
        queue=queue,
        pull_request=pull_request,
        warnings=judgement.warnings,
        remedies=judgement.remedies,
    )


def of_entry(verdict: Verdict, entry: Entry, reason: str) -> Outcome:
    """Return the outcome of a run of which only its entry in the ledger counts."""
    return Outcome(
        verdict=verdict,
        experiment=entry.experiment,
        run=entry.name,
        file=entry.file,
        reason=reason,
        namespace=entry.namespace,
        chips=entry.chips,
        owner=entry.owner,
    )


def stopped(entry: Entry, reason: str) -> Outcome:
    """Return the outcome of a run that was stopped."""
    return of_entry(Verdict.STOPPED, entry, reason)


def swept(sweep: Sweep) -> Outcome:
    """Return the outcome of a run that was not started and is not wanted any more."""
    verdict = Verdict.REFUSED if sweep.state is State.REFUSED else Verdict.STOPPED
    return of_entry(verdict, sweep.entry, sweep.reason)


def left_alone(reasons: Mapping[str, str]) -> list[Outcome]:
    """Return the outcomes of experiments about which nothing is done, by their reasons."""
    return [Outcome(Verdict.FAILED, experiment, "", reason=reason) for experiment, reason in reasons.items()]
