"""Gathers a report from two commits: reads what differs, plans, and explains it by the layers of the branch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from renderer.committed import Reader, Tree, Unit, unit_of, wanted
from renderer.git import Base
from renderer.layers import ENVIRONMENTS
from renderer.location import Location
from renderer.plan import LAUNCHES, Action, Effect, asked
from renderer.policy import Policy, apply, exceeded
from renderer.problem import Problem
from renderer.report import impact
from renderer.report.data import VERSION, Impact, Note, Report, Role, Site, Totals, Value
from renderer.report.explain import Explanation, explained
from renderer.report.grouping import MAX_SITES
from renderer.report.reading import Reading
from renderer.report.sizing import Sizing
from renderer.report.sources import experiments, layers
from renderer.report.trees import Log, Trees
from renderer.report.values import masked, shown

_RESULT = re.compile(r"results/([^/]+)/([^/]+)/[^/]+\.json")


def build(git: Log, reading: Reading, base: Base) -> Report:
    """Return the report on a plan."""
    touched = {unit for unit in (unit_of(action.state.file) for action in reading.actions) if unit}
    with layers(git, reading.trees.head, touched) as sources:
        sizing = Sizing(sources.configurator.schemas, _results(git, reading.trees.merged, touched))
        explanation = Explanation(reading, sources)
        rows = []
        for action in reading.actions:
            rows.append(sizing.row(action, reading.runs.get(action.state.file)))
            explanation.add(action)
        notes = _notes([*sources.problems, *sizing.problems, *explanation.problems], sources.policy)
        policy = sources.policy
    effects, values = _impact(git, reading)
    _drift(git, reading, explanation)
    groups = (explanation.changed, explanation.set, explanation.drift)
    totals = _totals(reading, explanation)
    return Report(
        version=VERSION,
        base_name=base.name,
        base=reading.trees.base_commit,
        head=reading.trees.head_commit,
        known_by=reading.known_by,
        totals=totals,
        rows=tuple(rows),
        deleted=_deleted(reading),
        values=tuple(value for group in groups for value in group.values()) + values,
        derived=tuple(sizing.arguments.derived()),
        notes=notes,
        impact=effects,
        limits=tuple(_exceeded(policy, reading.actions)),
        paused=masked("paused", policy.paused),
        pending=reading.pending,
        waivers=tuple(path for path in reading.trees.changed if path.startswith("tests/legacy/")),
        notices=(*reading.notices, *_conflicts(reading.trees)),
    )


def _exceeded(policy: Policy, actions: Iterable[Action]) -> Iterator[str]:
    """Yield what is above the policy's limits in each environment: each is applied on its own."""
    actions = list(actions)
    for environment in ENVIRONMENTS:
        mine = [action for action in actions if action.environment == environment]
        yield from (f"{sentence} in {environment}" for sentence in exceeded(policy, **asked(mine)))


def _totals(reading: Reading, explanation: Explanation) -> Totals:
    launches = [action for action in reading.actions if action.effect in LAUNCHES]
    count = {effect: sum(action.effect is effect for action in reading.actions) for effect in Effect}
    return Totals(
        launches=len(launches),
        chips=sum(action.state.chips for action in launches),
        stops=count[Effect.STOP],
        refused=count[Effect.REFUSE],
        nothing=count[Effect.NOTHING],
        unchanged=reading.unchanged,
        edited=explanation.edited,
        from_presets=explanation.from_presets,
    )


def _results(git: Log, tree: Tree, units: set[Unit]) -> dict[Unit, list[bytes]]:
    """Return the recorded results of these experiments, the latest name last."""
    paths: dict[Unit, list[str]] = {}
    for path in sorted(path for path in tree if path.startswith("results/")):
        match = _RESULT.fullmatch(path)
        if match and (match[1], match[2]) in units:
            paths.setdefault((match[1], match[2]), []).append(path)
    blobs = git.blobs(tree[path] for found in paths.values() for path in found)
    return {unit: [blobs[tree[path]] for path in found] for unit, found in paths.items()}


def _impact(git: Log, reading: Reading) -> tuple[Impact | None, tuple[Value, ...]]:
    """Return what edited layers would do to the frozen runs that the merge holds, and the edits themselves."""
    trees = reading.trees
    files = impact.layer_files(trees.changed)
    if not files:
        return None, ()
    units = list(experiments(trees.merged))
    frozen = [unit for unit in units if unit not in reading.units]
    with layers(git, trees.merged, units) as sources:
        edited = impact.layers_of(sources, units, files)
        if not edited:
            return None, ()
        sides = [side[path] for side in (trees.fork, trees.head) for path in edited if path in side]
        blobs = git.blobs([*sides, *wanted(trees.merged, frozen)])
        edits = {
            path: list(impact.edits(path, blobs.get(trees.fork.get(path, "")), blobs.get(trees.head.get(path, ""))))
            for path in edited
        }
        reader = Reader(trees.merged, blobs)
        effects, groups = impact.impact(sources, reader, impact.frozen_runs(reader, frozen), edits)
    return effects, (*(_edit(edit) for found in edits.values() for edit in found), *groups.values())


def _edit(edit: impact.Edit) -> Value:
    old, new = shown(edit.path, edit.old), shown(edit.path, edit.new)
    return Value(Role.EDIT, edit.path, old, new, "", (), (Site("", edit.place.in_line),), 1)


def _drift(git: Log, reading: Reading, explanation: Explanation) -> None:
    """Compare the launches with what the target's presets, changed since the branch left it, would give."""
    launches = [action for action in reading.actions if action.effect in LAUNCHES and _new(reading, action)]
    if not launches or not impact.layer_files(reading.trees.moved):
        return
    units = {unit for unit in (unit_of(action.state.file) for action in launches) if unit}
    with layers(git, reading.trees.merged, units) as merged:
        for action in launches:
            explanation.compare_with(merged, action)


def _new(reading: Reading, action: Action) -> bool:
    return explained(action, reading.old.get(action.state.experiment))


def _deleted(reading: Reading) -> tuple[str, ...]:
    """Return the experiment files that the merge removes, without those that were renamed."""
    kept = {action.state.experiment for action in reading.actions if action.state.file in reading.trees.merged}
    gone = [run for run in reading.old.values() if run.file not in reading.trees.merged]
    return tuple(sorted(run.file for run in gone if run.experiment not in kept))


def _conflicts(trees: Trees) -> list[str]:
    return [f"{path} changed on the target too since the branch left it: update the branch" for path in trees.both]


def _notes(problems: Iterable[Problem], policy: Policy) -> tuple[Note, ...]:
    """Return the problems, alike ones as one, errors first."""
    places: dict[Problem, list[str]] = {}
    for problem in apply(policy, dict.fromkeys(problems)):
        places.setdefault(replace(problem, location=Location("")), []).append(str(problem.location))
    ordered = sorted(places, key=lambda problem: (problem.severity, problem.code, problem.path))
    return tuple(_note(problem, places[problem]) for problem in ordered)


def _note(problem: Problem, places: list[str]) -> Note:
    message, hint = masked(problem.path, problem.message), masked(problem.path, problem.hint)
    shown_places = tuple(places[:MAX_SITES])
    return Note(problem.severity, problem.code, problem.path, message, hint, shown_places, len(places))
