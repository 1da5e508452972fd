"""The rows of a report: each action with what its run takes, by the committed files, and what the pod adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from pod.derivations import Override
from renderer.committed import Unit, unit_of
from renderer.extensions import Schemas
from renderer.location import COMMAND_LINE, Location
from renderer.plan import LAUNCHES, Action
from renderer.problem import Problem
from renderer.report.data import Row, Size
from renderer.report.grouping import Arguments
from renderer.report.run_files import NO_OVERRIDES, MaxText, RunFiles, overrides, size
from renderer.report.values import masked, shown


class Sizing:
    """Makes rows; `results` are the JSON of earlier runs by experiment. Each MaxText version is read once."""

    def __init__(self, schemas: Schemas, results: Mapping[Unit, list[bytes]]) -> None:
        self._schemas = schemas
        self._results = results
        self._maxtext: dict[tuple[str, str], MaxText | None] = {}
        self.arguments = Arguments()
        self.problems: list[Problem] = []

    def row(self, action: Action, run: RunFiles | None) -> Row:
        """Return an action's row; of a run that is not launched it gives only the chips."""
        found = self._size(action, run) if run and action.effect in LAUNCHES else None
        return _row(action, found or Size(action.state.chips))

    def _size(self, action: Action, run: RunFiles) -> Size | None:
        unit = unit_of(action.state.file)
        known = self._known(unit[0], run.version) if unit else None
        if unit is None or known is None:
            return None
        self._add_arguments(action, run, known)
        return size(run, action.state.chips, known, self._results.get(unit, ()))

    def _known(self, model: str, version: str) -> MaxText | None:
        key = (model, version)
        if key not in self._maxtext:
            snapshot = self._schemas.snapshot(model, version, COMMAND_LINE, [])
            self._maxtext[key] = MaxText(snapshot) if snapshot else None
        return self._maxtext[key]

    def _add_arguments(self, action: Action, run: RunFiles, known: MaxText) -> None:
        try:
            for key, override in _arguments(run, known):
                self.arguments.add(override, key, action.state.experiment)
        except NO_OVERRIDES:
            message = "the pod can derive no arguments from its run.yml"
            self.problems.append(Problem("derivation", Location(action.state.file), "", message))


def _arguments(run: RunFiles, known: MaxText) -> Iterator[tuple[str, Override]]:
    for item in overrides(run, known):
        if isinstance(item, Override):
            yield shown(f"maxtext.{item.key}", item.value), item


def _row(action: Action, found: Size) -> Row:
    state = action.state
    row = Row(
        effect=action.effect,
        experiment=state.experiment,
        environment=action.environment,
        run=action.run,
        file=state.file,
        owner=state.owner,
        reason=action.reason,
        starts=action.starts,
        condition=action.condition,
        then=action.then,
        size=found,
    )
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    texts: dict[str, Any] = {name: masked(name, value) for name, value in values.items() if type(value) is str}
    return replace(row, **texts)
