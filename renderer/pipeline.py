"""The stages in order: files, configurations, problems or runs, rendered files in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from renderer import checks, collisions, derived, freeze, launch, names, output_checks, outputs, policy, promises
from renderer.accelerators import Slice
from renderer.checks.launch import needed
from renderer.checks.topology import slice_of
from renderer.collisions import Identity
from renderer.configure import Configuration, Configurator
from renderer.freeze import Frozen
from renderer.layers import ExperimentFile, Repository
from renderer.location import Location
from renderer.mesh import global_batch, mesh
from renderer.outputs import Rendered
from renderer.policy import Policy
from renderer.problem import Problem, RefusedError, errors
from renderer.run_spec import specify
from renderer.target import Target


@dataclass(frozen=True, slots=True)
class Result:
    """What one experiment came to, with the warnings on the way."""

    configuration: Configuration
    rendered: Rendered


@dataclass(frozen=True, slots=True)
class Batch:
    """What a render of many experiments came to. `problems` are warnings once nothing was refused."""

    results: tuple[Result, ...]
    problems: tuple[Problem, ...]
    frozen: tuple[Frozen, ...] = ()


def render_paths(
    repository: Repository, paths: Iterable[Path], problems: Iterable[Problem] = (), target: Target | None = None
) -> Batch:
    """Render the experiments at `paths` in memory; with `target`, its runs stay as they are where they may.

    Raises RefusedError with all problems of all of them.
    """
    found = list(problems)
    rules = policy.load(repository.root, found)
    configurator = Configurator(repository)
    results: list[Result] = []
    frozen: list[Frozen] = []
    for path in paths:
        result = _one(configurator, rules, path, target, found)
        if isinstance(result, Result):
            results.append(result)
        elif isinstance(result, Frozen):
            frozen.append(result)
    found.extend(collisions.check([*map(freeze.identity, frozen), *map(_identity, results)]))
    found = policy.apply(rules, dict.fromkeys(found))
    if errors(found):
        raise RefusedError(found)
    return Batch(tuple(results), tuple(found), tuple(frozen))


def _one(
    configurator: Configurator, rules: Policy, path: Path, target: Target | None, problems: list[Problem]
) -> Frozen | Result | None:
    """Return the run of an experiment, kept or rendered; nothing if there are errors."""
    experiment = _read(configurator, path, problems)
    if experiment is None:
        return None
    kept = _kept(configurator, rules, experiment, target, problems) if target else None
    return kept or _fresh(configurator, rules, experiment, problems)


def _kept(
    configurator: Configurator, rules: Policy, experiment: ExperimentFile, target: Target, problems: list[Problem]
) -> Frozen | Result | None:
    """Return the run that an experiment keeps, nothing where it is to be rendered or has errors of its own.

    A fresh rendering of a frozen run is legal too, if that is what lies on disk: somebody asked for it.
    """
    found: list[Problem] = []
    intent = launch.parse(experiment.launch, Location(experiment.file), found)
    if intent is None or (intent.environment == "prod" and not intent.owner):
        return None
    if intent.model != experiment.model:
        return None
    forms = freeze.legal(experiment, intent, target)
    if not forms:
        return None
    problems.extend(policy.apply(rules, promises.check(experiment, forms[0])))
    disk = target.disk(forms[0].folder)
    kept = next((form for form in forms if form.files == disk), None)
    if kept:
        return kept
    fresh = _fresh(configurator, rules, experiment, found)
    if fresh and fresh.rendered.files == disk:
        problems.extend(found)
        return fresh
    return forms[0]


def _fresh(
    configurator: Configurator, rules: Policy, experiment: ExperimentFile, problems: list[Problem]
) -> Result | None:
    configuration = _configured(configurator, experiment, problems)
    return judge(configuration, rules, problems) if configuration else None


def judge(
    configuration: Configuration, rules: Policy, problems: list[Problem], *, to_launch: bool = True
) -> Result | None:
    """Return what a configuration renders to, nothing if anything is wrong with it.

    `to_launch` also asks for what a preview may leave open: owner, image, branch.
    """
    before = len(problems)
    found = [*checks.check(configuration), *fits(configuration), *(needed(configuration) if to_launch else ())]
    problems.extend(policy.apply(rules, found))
    if errors(problems[before:]):
        return None
    run = specify(configuration)
    found = [*derived.check(configuration, run), *policy.check(rules, configuration, run)]
    problems.extend(policy.apply(rules, found))
    if errors(problems[before:]):
        return None
    rendered = outputs.render(run, configuration.name or run.name)
    problems.extend(policy.apply(rules, output_checks.check(configuration, rendered)))
    return None if errors(problems[before:]) else Result(configuration, rendered)


def configure(configurator: Configurator, path: Path, problems: list[Problem]) -> Configuration | None:
    """Return the configuration of the experiment at `path`, nothing if a stage before the merge found problems."""
    experiment = _read(configurator, path, problems)
    return _configured(configurator, experiment, problems) if experiment else None


def _read(configurator: Configurator, path: Path, problems: list[Problem]) -> ExperimentFile | None:
    before = len(problems)
    experiment = configurator.read(path, problems)
    return None if errors(problems[before:]) else experiment


def _configured(
    configurator: Configurator, experiment: ExperimentFile, problems: list[Problem]
) -> Configuration | None:
    before = len(problems)
    configuration = configurator.configure(experiment, problems)
    return None if errors(problems[before:]) else configuration


def fits(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for an explicit launch.name that leaves no room for the names built on it."""
    found = slice_of(configuration)
    name = configuration.launch.name
    if name is None or found is None:
        return
    room = names.room_for_name(configuration.launch.chips, found.hosts)
    if len(name) > room:
        composed = f"{name}-{configuration.launch.chips}c-xxxxxxxx"
        pods = f"{names.REPLICATED_JOB}-0-{found.hosts - 1}-xxxxx"
        message = f"{len(name)} characters; at most {room} fit, because a pod's name has at most {names.MAX_LABEL}"
        hint = f"the run would be {composed}, its attempts {composed}-a99, its last pod {composed}-a99-{pods}"
        yield Problem("name-too-long", configuration.launch.place("name"), "launch.name", message, hint)


def _identity(result: Result) -> Identity:
    run, configuration, found = result.rendered.run, result.configuration, result.rendered.names
    return Identity(
        file=configuration.file,
        place=configuration.launch.places.get("name") or configuration.start,
        experiment=(run.model, names.experiment_label(run.name)),
        object=found.object,
        run_name=found.run,
        base_output_directory=found.base_output_directory,
        resume=configuration.launch.resume or "",
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run asks for and does per step, for tables. `global_batch` in sequences."""

    slice: Slice
    mesh: str
    global_batch: int


def figures(configuration: Configuration) -> Figures:
    """Return the figures of a configuration without errors."""
    found = slice_of(configuration)
    batch = global_batch(configuration, found.devices) if found else None
    if found is None or batch is None:
        raise ValueError("figures() takes checked configurations only")
    return Figures(found, str(mesh(configuration, found.devices)), int(batch))
