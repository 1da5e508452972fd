"""From files to merged values: chooses a run's layers and merges them, with the history of every value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from renderer import launch as launches
from renderer import overrides
from renderer.extensions import Schemas
from renderer.launch import Launch
from renderer.layers import NAME, ExperimentFile, Layer, Repository, Selection
from renderer.location import COMMAND_LINE, Location
from renderer.merge import Leaf, Tree, merge
from renderer.names import digest
from renderer.problem import Problem
from renderer.schema import Snapshot
from renderer.yaml_io import Node


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run's merged values. `name` and `file` are empty for presets without an experiment."""

    name: str
    file: str
    launch: Launch
    deploy: Tree
    maxtext: Tree
    checks: Mapping[str, Node]
    snapshot: Snapshot
    forked: bool
    experiment: ExperimentFile | None

    @property
    def start(self) -> Location:
        """Where problems of the run as a whole are reported."""
        return Location(self.file, 1, 1) if self.file else COMMAND_LINE

    def leaf(self, namespace: str, key: str) -> Leaf | None:
        """Return the winning scalar or list of a key, nothing where it is absent, removed or a mapping."""
        tree = self.deploy if namespace == "deploy" else self.maxtext
        item = tree.get(key)
        return item if isinstance(item, Leaf) and not item.removed else None


class _Prefix(NamedTuple):
    """Layers that many runs share, merged once."""

    tree: Tree
    problems: list[Problem]


class Configurator:
    """Configures the runs of one repository; what they share is read and merged once."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.schemas = Schemas(repository)
        self._deploy: dict[Selection, _Prefix] = {}
        self._maxtext: dict[tuple[Selection, str], _Prefix] = {}

    def read(self, path: Path, problems: list[Problem]) -> ExperimentFile:
        """Return the experiment at `path`, and refuse one that does not lie in the repository's experiments/."""
        experiment = self.repository.experiment(path, problems)
        folder = self.repository.root / "experiments" / experiment.model
        if not self.repository.contains(path) or path.absolute().parent != folder:
            message = "lies outside experiments/<model>/: preview takes it, render only what is reviewed here"
            problems.append(Problem("path-outside", Location(experiment.file), "", message))
        elif not re.fullmatch(NAME, path.name):
            message = "is not an experiment: its name holds more than letters, digits, - _ ."
            problems.append(Problem("stray-file", Location(experiment.file), "", message))
        return experiment

    def configure(
        self,
        experiment: ExperimentFile | None,
        problems: list[Problem],
        *,
        selectors: Mapping[str, Node] | None = None,
        arguments: Sequence[str] = (),
        inside: bool = True,
    ) -> Configuration | None:
        """Return the merged values of a run; nothing, and problems, where its layers cannot be found.

        `selectors` win over the experiment's `launch:`, `arguments` are KEY=VALUE. `inside` refuses paths outside the
        repository.
        """
        chosen = {**(experiment.launch if experiment else {}), **(selectors or {})}
        file = experiment.file if experiment else ""
        start = _start(experiment)
        wrong: list[Problem] = []
        launch = launches.parse(chosen, start, wrong)
        if launch is None:
            problems.extend([*self._unknown_model(chosen), *wrong])
            return None
        if experiment and inside and experiment.model != launch.model:
            message = f"is {launch.model}, but the file lies in experiments/{experiment.model}/: make them the same"
            problems.append(Problem("model-folder", launch.place("model"), "launch.model", message))
            return None
        missing = list(self.repository.missing_presets(launch.selection, dict(launch.places)))
        if missing:
            problems.extend(missing)
            return None
        merged = self._merge(launch, experiment, arguments, problems, inside=inside)
        if merged is None:
            return None
        deploy, maxtext, snapshot = merged
        return Configuration(
            name=experiment.name if experiment else "",
            file=file,
            launch=launch,
            deploy=deploy,
            maxtext=maxtext,
            checks=experiment.checks if experiment else {},
            snapshot=snapshot,
            forked=self.schemas.has_extensions(launch.model),
            experiment=experiment,
        )

    def _unknown_model(self, nodes: Mapping[str, Node]) -> Iterator[Problem]:
        """Yield the problem of a model that has no presets, for a `launch:` that is wrong besides."""
        node = nodes.get("model")
        if node and isinstance(node.value, str) and re.fullmatch(NAME, node.value):
            unknown = self.repository.unknown_model(node.value, node.at)
            if unknown:
                yield unknown

    def _merge(
        self,
        launch: Launch,
        experiment: ExperimentFile | None,
        arguments: Sequence[str],
        problems: list[Problem],
        *,
        inside: bool,
    ) -> tuple[Tree, Tree, Snapshot] | None:
        deploy = self._deploy_prefix(launch.selection, problems)
        if experiment:
            deploy = merge(deploy, experiment.layer.deploy, experiment.layer, problems, "deploy")
        snapshot = self._snapshot(launch, deploy, problems)
        if snapshot is None:
            return None
        command_line = overrides.parse(arguments, snapshot.keys, problems) if arguments else None
        if command_line:
            deploy = merge(deploy, command_line.deploy, command_line, problems, "deploy")
            snapshot = self._snapshot(launch, deploy, problems)
            if snapshot is None:
                return None
        maxtext = self._maxtext_prefix(launch.selection, deploy, problems, inside=inside)
        for layer in (experiment.layer if experiment else None, command_line):
            if layer:
                maxtext = merge(maxtext, layer.maxtext, layer, problems, "maxtext")
        return deploy, maxtext, snapshot

    def _snapshot(self, launch: Launch, deploy: Tree, problems: list[Problem]) -> Snapshot | None:
        leaf = deploy.get("MAXTEXT_VERSION")
        if not isinstance(leaf, Leaf) or leaf.removed:
            message = "missing: which MaxText is the run checked against? Write it in the model's model.yml"
            problems.append(Problem("deploy-missing", launch.place("model"), "deploy.MAXTEXT_VERSION", message))
            return None
        return self.schemas.snapshot(launch.model, str(leaf.node.value), leaf.at, problems)

    def _deploy_prefix(self, selection: Selection, problems: list[Problem]) -> Tree:
        if selection not in self._deploy:
            found: list[Problem] = []
            tree: Tree = {}
            for name, file in self.repository.preset_files(selection).items():
                layer = self.repository.preset(name, file, found)
                tree = merge(tree, layer.deploy, layer, found, "deploy")
            self._deploy[selection] = _Prefix(tree, found)
        problems.extend(self._deploy[selection].problems)
        return self._deploy[selection].tree

    def _maxtext_prefix(self, selection: Selection, deploy: Tree, problems: list[Problem], *, inside: bool) -> Tree:
        """Merge ① model, ② topology, ②.5 the dataset that the merged `deploy:` chooses, ③ environment."""
        leaf = deploy.get("DATASETS_YAML")
        chosen = leaf.node.value if isinstance(leaf, Leaf) and isinstance(leaf.node.value, str) else ""
        key = (selection, chosen)
        if key not in self._maxtext:
            found: list[Problem] = []
            place = leaf.at if isinstance(leaf, Leaf) else COMMAND_LINE
            dataset = self.repository.dataset(chosen, place, found, inside=inside) if chosen else None
            self._maxtext[key] = _Prefix(self._merge_maxtext(selection, dataset, found), found)
        problems.extend(self._maxtext[key].problems)
        return self._maxtext[key].tree

    def _merge_maxtext(self, selection: Selection, dataset: Layer | None, problems: list[Problem]) -> Tree:
        files = self.repository.preset_files(selection)
        read: list[Problem] = []  # the deploy prefix has reported what is wrong in these files
        layers: list[Layer | None] = [self.repository.preset(name, file, read) for name, file in files.items()]
        layers.insert(2, dataset)
        tree: Tree = {}
        for layer in layers:
            if layer:
                tree = merge(tree, layer.maxtext, layer, problems, "maxtext")
        return tree


def _start(experiment: ExperimentFile | None) -> Location:
    if experiment is None:
        return COMMAND_LINE
    node = experiment.root.value.get("launch")
    return node.key_at if node else Location(experiment.file, 1, 1)


def experiment_data(experiment: ExperimentFile) -> dict[str, object]:
    """Return the experiment's own data: its digest in the rendered files tells whether the file said something else.

    Left out is what does not change a run's content: attempt, state, supersede, owner, checks, and the name, so that a
    renamed file may keep its run.
    """
    launch = {key: node.value for key, node in experiment.launch.items() if key not in _NO_CONTENT}
    return {
        "launch": launch,
        "deploy": _data(experiment.layer.deploy),
        "maxtext": _data(experiment.layer.maxtext),
    }


def own_digest(experiment: ExperimentFile) -> str:
    """Return the digest of the experiment's own data, empty for a file that has none."""
    try:
        return digest(experiment_data(experiment))
    except (TypeError, ValueError):  # a mapping where launch: takes a single value
        return ""


_NO_CONTENT = frozenset({"attempt", "state", "supersede", "owner", "name"})


def _data(entries: Mapping[str, Node]) -> dict[str, object]:
    return {
        key: _data(node.value) if isinstance(node.value, dict) else _tagged(node.value) for key, node in entries.items()
    }


def _tagged(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | list) or value is None else {"!remove": True}
