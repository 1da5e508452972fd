"""Timings that need the renderer's own functions: python -m bench.inside DIR prints them as JSON.

It runs in a process of its own, so that the peak memory of the others is not the bench's.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.merge_without_history import Bare
from bench.merge_without_history import merge as merge_bare
from renderer import checks
from renderer.checks.launch import needed
from renderer.configure import Configuration, Configurator
from renderer.layers import Layer, Repository
from renderer.merge import Tree, merge
from renderer.pipeline import configure, fits
from renderer.problem import Problem

ROUNDS = 15


def configurations(repository: Repository) -> list[Configuration]:
    """Return every configuration of the repository."""
    problems: list[Problem] = []
    configurator = Configurator(repository)
    found = [configure(configurator, path, problems) for path in repository.experiment_paths()[0]]
    return [configuration for configuration in found if configuration]


def check_all(found: list[Configuration]) -> None:
    """Run what level 1 checks of each configuration."""
    for configuration in found:
        checks.check(configuration)
        needed(configuration)
        fits(configuration)


def layers_of(repository: Repository, found: list[Configuration]) -> list[list[Layer]]:
    """Return the five layers of each configuration, read before any timing."""
    problems: list[Problem] = []
    chains = []
    for configuration in found:
        assert configuration.experiment
        files = repository.preset_files(configuration.launch.selection)
        layers = [repository.preset(name, file, problems) for name, file in files.items()]
        leaf = configuration.leaf("deploy", "DATASETS_YAML")
        dataset = repository.dataset(leaf.node.value, leaf.at, problems, inside=True) if leaf else None
        chains.append([*layers[:2], *([dataset] if dataset else []), layers[2], configuration.experiment.layer])
    return chains


def with_history(chains: list[list[Layer]]) -> None:
    """Merge every chain as the renderer does, but sharing nothing between experiments."""
    for layers in chains:
        deploy: Tree = {}
        maxtext: Tree = {}
        problems: list[Problem] = []
        for layer in layers:
            deploy = merge(deploy, layer.deploy, layer, problems, "deploy")
            maxtext = merge(maxtext, layer.maxtext, layer, problems, "maxtext")


def without_history(chains: list[list[Layer]]) -> None:
    """Merge every chain without provenance."""
    for layers in chains:
        deploy: Bare = {}
        maxtext: Bare = {}
        problems: list[Problem] = []
        for layer in layers:
            deploy = merge_bare(deploy, layer.deploy, problems, "deploy")
            maxtext = merge_bare(maxtext, layer.maxtext, problems, "maxtext")


def rounds(*functions: Callable[[Any], None], argument: Any) -> list[float]:
    """Return the fastest seconds of each function, taken in turns so that other work on the machine hits all alike."""
    taken: list[list[float]] = [[] for _ in functions]
    for _ in range(ROUNDS):
        for function, times in zip(functions, taken, strict=True):
            start = time.perf_counter()
            function(argument)
            times.append(time.perf_counter() - start)
    return [min(times) for times in taken]


def main(folder: Path) -> dict[str, float]:
    """Return the timings, in seconds, over the experiments in `folder`."""
    repository = Repository(folder)
    found = configurations(repository)
    chains = layers_of(repository, found)
    (checked,) = rounds(check_all, argument=found)
    history, bare = rounds(with_history, without_history, argument=chains)
    return {
        "checks_per_experiment": checked / len(found),
        "merge_with_history_per_experiment": history / len(found),
        "merge_without_history_per_experiment": bare / len(found),
        "keys_per_experiment": statistics.mean(len(one.deploy) + len(one.maxtext) for one in found),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
