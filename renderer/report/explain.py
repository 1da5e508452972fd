"""Explains what launches change: old and new values, the layer that decided, and what the checks say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from renderer import outputs
from renderer.committed import unit_of
from renderer.configure import Configuration
from renderer.layers import ExperimentFile
from renderer.location import Location
from renderer.outputs import DAMAGED
from renderer.plan import LAUNCHES, Action, Effect
from renderer.problem import Problem
from renderer.report.data import Role
from renderer.report.grouping import Group, Groups
from renderer.report.reading import Reading
from renderer.report.sources import Sources
from renderer.report.values import Difference, differences, masked, origin, own, shown
from renderer.runs import Committed


class Explanation:
    """What is found about the experiments of a plan, one after the other, grouped over them."""

    def __init__(self, reading: Reading, sources: Sources) -> None:
        self._reading = reading
        self._sources = sources
        self.changed, self.set, self.drift = (Groups(role) for role in (Role.CHANGED, Role.SET, Role.DRIFT))
        self.problems: list[Problem] = []
        self.edited = self.from_presets = 0

    def add(self, action: Action) -> None:
        """Explain one action: of a launch whose content is new, or of what is refused."""
        old = self._reading.old.get(action.state.experiment)
        configuration = self._examine(action.state) if explained(action, old) else None
        if configuration is None:
            return
        if old is not None and old.name:
            self._edited(action.state, old, configuration)
        else:
            self._new(action.state, configuration)

    def _examine(self, run: Committed) -> Configuration | None:
        """Return the merged values of an experiment, and keep what the checks say."""
        unit = unit_of(run.file)
        if unit is None:
            return None
        examined = self._sources.examine(unit)
        self.problems += examined.problems
        return examined.configuration

    def _new(self, run: Committed, configuration: Configuration) -> None:
        for path, found in own(configuration):
            before = masked(path, found[1].value) if len(found) > 1 else "(absent)"
            self.set.add(Group.of(path, before, masked(path, found[0].value), found), run.experiment)

    def _edited(self, run: Committed, old: Committed, configuration: Configuration) -> None:
        self.edited += 1
        rows = self._differences(run, self._reading.base.files(old), self._reading.merged.files(run))
        self._group(self.changed, rows, configuration, run)
        self.from_presets += self._outside(configuration, old, rows)

    def _group(self, groups: Groups, rows: Iterable[Difference], by: Configuration, run: Committed) -> None:
        for path, was, now in rows:
            groups.add(Group.of(path, shown(path, was), shown(path, now), origin(by, path)), run.experiment)

    def _differences(self, run: Committed, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[Difference]:
        if not new:
            return []
        try:
            return differences(old, new)
        except DAMAGED:
            message = "its rendered files cannot be compared: they are not a run's"
            self.problems.append(Problem("rendered-edited", Location(run.file), "", message))
            return []

    def _outside(self, after: Configuration, old: Committed, rows: Iterable[Difference]) -> int:
        """Return how many values changed though neither version of the experiment file sets or chooses them."""
        before = self._reading.base.experiment(old.file, [])
        if after.experiment is None or _choice(before) != _choice(after.experiment):
            return 0
        written = tuple(f"{path}." for file in (before, after.experiment) for path in _written(file))
        return sum(not f"{path}.".startswith(written) for path, _, _ in rows)

    def compare_with(self, merged: Sources, action: Action) -> None:
        """Keep how a launch would differ if it were rendered with what the target's presets have become."""
        unit = unit_of(action.state.file)
        fresh = merged.run(unit) if unit else None
        if unit is None or fresh is None:
            return
        configuration, run = fresh
        try:
            rendered = outputs.render(run, unit[1]).files
        except DAMAGED:
            return
        rows = self._differences(action.state, self._reading.merged.files(action.state), rendered)
        self._group(self.drift, rows, configuration, action.state)


def explained(action: Action, old: Committed | None) -> bool:
    """Return whether an action brings content that the target does not have."""
    same = old is not None and bool(old.name) and old.content == action.state.content
    return action.effect is Effect.REFUSE or (action.effect in LAUNCHES and not same)


def _choice(experiment: ExperimentFile) -> tuple[object, ...]:
    """Return what chooses the layers below the experiment."""
    selectors = tuple(_value(experiment.launch.get(key)) for key in ("model", "chips", "context", "environment"))
    return (*selectors, _value(experiment.layer.deploy.get("DATASETS_YAML")))


def _value(node: object) -> object:
    return getattr(node, "value", None)


def _written(experiment: ExperimentFile) -> Iterator[str]:
    """Yield the keys that an experiment file sets."""
    for namespace, entries in (
        ("launch", experiment.launch),
        ("deploy", experiment.layer.deploy),
        ("maxtext", experiment.layer.maxtext),
    ):
        for key, node in entries.items():
            names = node.value if isinstance(node.value, dict) else ()
            yield from (f"{namespace}.{key}.{name}" for name in names)
            if not names:
                yield f"{namespace}.{key}"
    if "resume" in experiment.launch:
        yield "maxtext.run_name"
