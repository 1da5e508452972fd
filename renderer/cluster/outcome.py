"""What became of one run in an apply."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from renderer.cluster.ledger import Entry


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
    warnings: tuple[str, ...] = field(default=())
    remedies: tuple[str, ...] = field(default=())


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
