"""The stages in order: files, configurations, problems or runs, rendered files in memory."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from renderer import checks, derived, names, output_checks, outputs, policy
from renderer.accelerators import Slice
from renderer.checks.launch import needed
from renderer.checks.topology import slice_of
from renderer.configure import Configuration, Configurator
from renderer.layers import Repository
from renderer.mesh import global_batch, mesh
from renderer.outputs import Rendered
from renderer.policy import Policy
from renderer.problem import Problem, RefusedError, errors
from renderer.run_spec import specify


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


def render_paths(repository: Repository, paths: Iterable[Path], problems: Iterable[Problem] = ()) -> Batch:
    """Render the experiments at `paths` in memory. Raises RefusedError with all problems of all of them."""
    found = list(problems)
    rules = policy.load(repository.root, found)
    configurator = Configurator(repository)
    results = []
    for path in paths:
        result = _one(configurator, rules, path, found)
        if result:
            results.append(result)
    found.extend(_collisions(results))
    found = policy.apply(rules, dict.fromkeys(found))
    if errors(found):
        raise RefusedError(found)
    return Batch(tuple(results), tuple(found))


def _one(configurator: Configurator, rules: Policy, path: Path, problems: list[Problem]) -> Result | None:
    configuration = configure(configurator, path, problems)
    if configuration is None:
        return None
    return judge(configuration, rules, problems)


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
    before = len(problems)
    experiment = configurator.read(path, problems)
    if errors(problems[before:]):
        return None
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


def _collisions(results: Iterable[Result]) -> Iterator[Problem]:
    """Yield a problem for two experiments that share a name or would write into one directory."""
    seen: dict[tuple[str, ...], Configuration] = {}
    for result in results:
        run, configuration = result.rendered.run, result.configuration
        place = configuration.launch.places.get("name") or configuration.start
        for key, code, message in (
            (
                ("experiment", run.model, names.label(run.name)),
                "name-twice",
                f"the name {names.label(run.name)} is taken",
            ),
            (
                ("object", result.rendered.names.object),
                "name-twice",
                f"the name {result.rendered.names.object} is taken",
            ),
            (
                _output(result),
                "output-twice",
                f"run_name {result.rendered.names.run} and its output directory are taken",
            ),
        ):
            other = seen.setdefault(key, configuration)
            if other is not configuration and not _resumes(configuration, other):
                yield Problem(
                    code,
                    place,
                    "launch.name" if code == "name-twice" else "maxtext.run_name",
                    f"{message} by {other.file}",
                )
                break


def _output(result: Result) -> tuple[str, ...]:
    """Return the folder a run writes to, however it is spelt."""
    names = result.rendered.names
    return ("output", posixpath.normpath(f"/{names.base_output_directory.removeprefix('gs://')}/{names.run}"))


def _resumes(one: Configuration, other: Configuration) -> bool:
    """Whether one of the two continues the other's checkpoints; two that continue the same run collide."""
    return bool(one.launch.resume) != bool(other.launch.resume)


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
