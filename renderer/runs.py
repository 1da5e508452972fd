"""Runs as a commit holds them, and as a ledger knows them. Pure; what `plan` decides by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from renderer.layers import rendered_folder
from renderer.names import attempt_of, output_directory, without_attempt


class State(StrEnum):
    """How far a run is: pending and held ones are finished by the next apply, the others stay as they are."""

    PENDING = "pending"
    HELD = "held"
    LAUNCHED = "launched"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAILED = "failed"


ALIVE = frozenset({State.HELD, State.LAUNCHED})
"""The states of runs whose JobSet may exist."""

UNSTARTED = frozenset({State.PENDING, State.HELD})
"""The states of runs that apply has still to launch, or to stop."""


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
    def folder(self) -> str:
        """Where its rendered files lie."""
        model, _, stem = self.file.removeprefix("experiments/").removesuffix(".yml").partition("/")
        return rendered_folder(self.environment, model, stem)

    @property
    def whole_name(self) -> str:
        """The run's name without its attempt: what the attempts of one content share."""
        return without_attempt(self.name)

    @property
    def named_by_person(self) -> bool:
        """Whether maxtext.run_name is not the name that follows from the content."""
        return bool(self.name) and self.run_name != self.whole_name

    @property
    def directory(self) -> str:
        """The directory that it writes to, in one spelling; empty without maxtext.base_output_directory."""
        return output_directory(self.output, self.run_name)


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
    """A run that was launched, or is held, and was not stopped since."""

    name: str
    environment: str


@dataclass(frozen=True)
class Ledger:
    """What was launched before, by object name; `live` goes by experiment.

    Pending runs are to be tried again: those that did not get through, and the held ones, which are in `live` too.
    """

    known: frozenset[str] = frozenset()
    live: Mapping[str, tuple[Live, ...]] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    @cached_property
    def attempts(self) -> Mapping[str, tuple[int, ...]]:
        """The attempts that were launched of each content, by the name that they share."""
        found: dict[str, tuple[int, ...]] = {}
        for name in self.known:
            whole = without_attempt(name)
            found[whole] = (*found.get(whole, ()), attempt_of(name))
        return found


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run as a ledger has it; `state` is a State, or any other word for a launched run that has ended."""

    name: str
    experiment: str
    environment: str
    state: str


def recorded(runs: Iterable[Recorded]) -> Ledger:
    """Return what a ledger's runs mean for a plan: what is held is live, but has still to be released."""
    runs = list(runs)
    live: dict[str, tuple[Live, ...]] = {}
    for run in runs:
        if run.state in ALIVE:
            live[run.experiment] = (*live.get(run.experiment, ()), Live(run.name, run.environment))
    pending = frozenset(run.name for run in runs if run.state in UNSTARTED)
    refused = frozenset(run.name for run in runs if run.state == State.REFUSED)
    return Ledger(frozenset(run.name for run in runs) - pending - refused, live, pending, refused)


def assumed(base: Snapshot, known: Iterable[str] = ()) -> Ledger:
    """Return the ledger where every merge was applied: what `base` holds was launched, unless stopped."""
    runs = [run for run in base.runs if run.name and not run.stopped]
    live = {run.experiment: (Live(run.name, run.environment),) for run in runs}
    return Ledger(frozenset(known) | {run.name for run in runs}, live)
