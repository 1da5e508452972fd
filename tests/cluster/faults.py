"""Which requests of a client fail, and how: seeded plans for the proxy."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.cluster.proxy import Fault, Plan, Request

COMMON: Mapping[Fault, float] = {
    Fault.REFUSED: 4,
    Fault.LOST: 4,
    Fault.THROTTLED: 1,
    Fault.UNAVAILABLE: 3,
    Fault.FAILED: 1,
    Fault.FAILED_AFTER: 1,
    Fault.TIMED_OUT_AFTER: 3,
    Fault.SILENT: 0.5,
    Fault.LATE: 0.5,
}
"""How often each fault happens among all faults of a bad network before a bad server."""


def sometimes(seed: int, rate: float, weights: Mapping[Fault, float] = COMMON) -> Plan:
    """Let a part `rate` of the requests fail, each one by its own words: not by when it comes beside others."""
    faults, shares = list(weights), list(weights.values())

    def plan(request: Request) -> Fault | None:
        chance = random.Random(f"{seed} {request.method} {request.path} {request.again}")
        return chance.choices(faults, shares)[0] if chance.random() < rate else None

    return plan


def kept_up(seed: int, rate: float, fault: Fault) -> Plan:
    """Let a part `rate` of what is written fail however often it is tried: of each object all tries, or none."""

    def plan(request: Request) -> Fault | None:
        fails = random.Random(f"{seed} {request.method} {request.path}").random() < rate
        return fault if fails and request.writes else None

    return plan


@dataclass(slots=True)
class NthWrite:
    """Let one fault happen to the `number`-th write, from 0; `happened` says whether there were as many."""

    number: int
    fault: Fault
    happened: bool = False
    _writes: int = field(default=0)

    def __call__(self, request: Request) -> Fault | None:
        if not request.writes:
            return None
        self._writes += 1
        if self._writes != self.number + 1:
            return None
        self.happened = True
        return self.fault


@dataclass(slots=True)
class NthRequest:
    """Let one fault happen to the `number`-th request of all, from 0, and leave the others to another plan."""

    number: int
    fault: Fault
    others: Plan

    def __call__(self, request: Request) -> Fault | None:
        return self.fault if request.number == self.number else self.others(request)
