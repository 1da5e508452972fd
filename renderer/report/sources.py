"""The layers of one commit in a folder of their own, so that they are configured as committed, not as on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from renderer import checks, derived, pipeline, policy
from renderer.checks.launch import needed
from renderer.committed import Tree, Unit, experiment_path, parsed, unit_of
from renderer.configure import Configuration, Configurator
from renderer.git import Git
from renderer.layers import Repository
from renderer.policy import Policy
from renderer.problem import Problem, errors
from renderer.run_spec import Run, specify

_NO_LAYERS = ("experiments/", "rendered/", "results/", "tests/", ".github/")


@contextmanager
def layers(git: Git, tree: Tree, units: Iterable[Unit]) -> Iterator[Sources]:
    """Put the presets and datasets of a commit into a folder for the time of the block; keep experiments `units`."""
    wanted = {path: blob for path, blob in tree.items() if path.endswith(".yml") and not path.startswith(_NO_LAYERS)}
    experiments = {path: tree[path] for path in map(experiment_path, units) if path in tree}
    blobs = git.blobs(experiments.values())
    with git.checked_out(wanted) as folder:
        yield Sources(folder, {path: blobs[blob] for path, blob in experiments.items()})


@dataclass(frozen=True, slots=True)
class Examined:
    """What an experiment of the commit comes to: its merged values where they could be read, and every problem."""

    configuration: Configuration | None
    problems: tuple[Problem, ...]


class Sources:
    """One commit's layers in a folder, and experiments by path; what these share is read and merged once."""

    def __init__(self, root: Path, experiments: Mapping[str, bytes]) -> None:
        self.configurator = Configurator(Repository(root))
        self.problems: list[Problem] = []
        self.policy: Policy = policy.load(root, self.problems)
        self._experiments = experiments

    @property
    def repository(self) -> Repository:
        """The layers' files."""
        return self.configurator.repository

    def configure(self, unit: Unit, problems: list[Problem]) -> Configuration | None:
        """Return an experiment's merged values, nothing where its layers cannot be read."""
        path, found = experiment_path(unit), list[Problem]()
        if path not in self._experiments:
            return None
        experiment = parsed(path, self._experiments[path], found)
        configuration = None if errors(found) else self.configurator.configure(experiment, found)
        problems += found
        return None if errors(found) else configuration

    def examine(self, unit: Unit) -> Examined:
        """Return what level 1 says of an experiment."""
        problems: list[Problem] = []
        configuration = self.configure(unit, problems)
        if configuration:
            problems += checks.check(configuration)
            problems += needed(configuration)
            problems += pipeline.fits(configuration)
        problems = policy.apply(self.policy, dict.fromkeys(problems))
        if configuration and not errors(problems):
            run = specify(configuration)
            found = [*derived.check(configuration, run), *policy.check(self.policy, configuration, run)]
            problems += policy.apply(self.policy, found)
        return Examined(configuration, tuple(problems))

    def run(self, unit: Unit) -> tuple[Configuration, Run] | None:
        """Return an experiment's values and its run without judging them, nothing where they make no run."""
        configuration = self.configure(unit, [])
        if configuration is None:
            return None
        try:
            return configuration, specify(configuration)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def experiments(tree: Tree) -> Iterator[Unit]:
    """Yield every experiment of a commit."""
    for path in tree:
        unit = unit_of(path)
        if unit and path == experiment_path(unit):
            yield unit
