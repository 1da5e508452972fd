"""Every problem of experiments, of bare presets, and of the reviewed files beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from renderer import checks, clusters, policy, target
from renderer.configure import Configurator
from renderer.layers import ENVIRONMENTS, Repository, Selection
from renderer.location import COMMAND_LINE, Location
from renderer.pipeline import render_paths
from renderer.problem import Problem, RefusedError
from renderer.yaml_io import Node


class Judged(NamedTuple):
    """What experiments came to: their problems, and how many of their runs are frozen, so that they have none."""

    problems: list[Problem]
    frozen: int = 0


def of_experiments(repository: Repository, paths: Iterable[Path], problems: Iterable[Problem] = ()) -> Judged:
    """Return every problem of the experiments at `paths`, rendered in memory, after `problems`."""
    chosen = list(paths)
    try:
        batch = render_paths(repository, chosen, problems, target.find(repository, chosen))
    except RefusedError as error:
        return Judged(list(error.problems))
    return Judged(list(batch.problems), len(batch.frozen))


def of_everything(repository: Repository) -> Judged:
    """Return every problem of all experiments, stray files and what experiments share, each once."""
    judged = of_experiments(repository, *repository.experiment_paths())
    return Judged(list(dict.fromkeys([*judged.problems, *of_shared(repository)])), judged.frozen)


def of_shared(repository: Repository) -> list[Problem]:
    """Return every problem of presets, policy.yml and clusters.yml."""
    found: list[Problem] = []
    rules = policy.load(repository.root, found)
    found += policy.apply(rules, of_presets(repository))
    clusters.load(repository.root, found)
    return found


def of_presets(repository: Repository) -> list[Problem]:
    """Return every problem of topologies and environments taken alone: each pair is a complete configuration."""
    configurator = Configurator(repository)
    found: list[Problem] = []
    for selection in selections(repository):
        problems: list[Problem] = []
        configuration = configurator.configure(None, problems, selectors=_launch(selection))
        if configuration:
            problems += checks.check(configuration)
        file = repository.preset_files(selection)["topology"]
        found += (_placed(problem, file) for problem in problems)
    return list(dict.fromkeys(found))


def selections(repository: Repository) -> Iterator[Selection]:
    """Yield every topology of every model in every environment that the model has."""
    for model in repository.models():
        for chips, context in repository.topologies(model):
            for environment in ENVIRONMENTS:
                selection = Selection(model, chips, context, environment)
                if (repository.root / repository.preset_files(selection)["environment"]).is_file():
                    yield selection


def _launch(selection: Selection) -> dict[str, Node]:
    keys = ("model", "chips", "context", "environment")
    return {key: Node(getattr(selection, key), COMMAND_LINE) for key in keys}


def _placed(problem: Problem, file: str) -> Problem:
    """Return `problem` at the topology's file where it has no place of its own: what is missing stands nowhere."""
    return replace(problem, location=Location(file)) if problem.location == COMMAND_LINE else problem
