"""The records of a report: plain data between gathering and writing, and what its JSON holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from renderer.plan import Effect

VERSION = 1
"""The form of the data; a reader refuses any other."""


class Role(StrEnum):
    """Where a list of values comes from."""

    CHANGED = "changed"
    SET = "set"
    DRIFT = "drift"
    IMPACT = "impact"
    EDIT = "edit"


@dataclass(frozen=True, slots=True)
class Size:
    """What a run takes and does, None where not known. Batch in sequences; `chip_hours` by an earlier result."""

    chips: int
    devices: int | None = None
    global_batch: int | None = None
    tokens_per_step: int | None = None
    steps: int | None = None
    tokens: int | None = None
    chip_hours: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One action of the plan, with what reviewers ask about its run."""

    effect: Effect
    experiment: str
    environment: str
    run: str
    file: str
    owner: str
    reason: str
    starts: str
    condition: str
    then: str
    size: Size


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts of the whole plan: they hold also where rows were left out. `chips` are those of all launches."""

    launches: int = 0
    chips: int = 0
    stops: int = 0
    refused: int = 0
    nothing: int = 0
    unchanged: int = 0
    edited: int = 0
    from_presets: int = 0


@dataclass(frozen=True, slots=True)
class Site:
    """An experiment, and the file:line that decides there; empty where no layer does."""

    experiment: str
    place: str


@dataclass(frozen=True, slots=True)
class Value:
    """One value that differs, alike in all of `sites` (of `count` experiments, the first are named).

    `layer` is the one that won; `beat` what it replaced, the highest layer first.
    """

    role: Role
    path: str
    old: str
    new: str
    layer: str
    beat: tuple[str, ...]
    sites: tuple[Site, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Derived:
    """An argument that the pod adds to run.yml (D1 to D7), alike in `count` experiments."""

    rule: str
    key: str
    value: str
    reason: str
    experiments: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Note:
    """One problem of the branch's experiments, at `count` places."""

    severity: str
    code: str
    path: str
    message: str
    hint: str
    places: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Impact:
    """What edited presets and datasets would do to frozen runs, which stay as they are.

    Of `frozen` runs that use an edited file, `changed` would take one of the edited values, `earlier` differ from their
    presets only by what was edited before, and `invalid` could no longer be rendered.
    """

    files: tuple[str, ...]
    frozen: int
    changed: int
    earlier: int
    invalid: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a report says. `known_by` tells what "launched before" was taken from."""

    version: int
    base_name: str
    base: str
    head: str
    known_by: str
    totals: Totals
    rows: tuple[Row, ...] = ()
    deleted: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()
    derived: tuple[Derived, ...] = ()
    notes: tuple[Note, ...] = ()
    impact: Impact | None = None
    limits: tuple[str, ...] = ()
    paused: str = ""
    pending: tuple[str, ...] = ()
    waivers: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def of(self, role: Role) -> list[Value]:
        """Return the values of one origin."""
        return [value for value in self.values if value.role is role]
