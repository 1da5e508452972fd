"""The layers on disk: which files there are, which of them a run is made of, and their strict reading."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from renderer.content_files import LINK, contains, exists, read_inside, real
from renderer.location import COMMAND_LINE, Location
from renderer.problem import Problem, counted, refuse
from renderer.yaml_io import Node, read, read_file

ENVIRONMENTS = ("prod", "test")
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
"""A model's, experiment's or dataset's name: it becomes a folder or a file, so no separators and no leading dot."""

RENDERED = "rendered"
"""The folder of all rendered files."""


def rendered_folder(environment: str, model: str, stem: str) -> str:
    """Return the folder of an experiment's rendered files; `stem` is the experiment file's."""
    return f"{RENDERED}/{environment}/{model}/{stem}"


def rendered_from(folder: str) -> tuple[str, str, str]:
    """Return the environment, the model and the stem that `rendered_folder` made a folder of."""
    _, environment, model, stem = folder.split("/")
    return environment, model, stem


@dataclass(frozen=True, slots=True)
class Layer:
    """One file's contribution; `name` is model, topology, dataset, environment, experiment or command line."""

    name: str
    file: str
    deploy: dict[str, Node]
    maxtext: dict[str, Node]

    @property
    def by_person(self) -> bool:
        """Whether a person chose its values for this run (layers ②.5 to ⑤), rather than a preset."""
        return self.name in {"dataset", "environment", "experiment", "command line"}


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """An experiment as it was read: its name in paths is always the file's stem."""

    model: str
    name: str
    file: str
    root: Node
    layer: Layer

    @property
    def launch(self) -> dict[str, Node]:
        """What stands under `launch:`."""
        return section(self.root, "launch")

    @property
    def effective_name(self) -> str:
        """The name that the run goes by, as far as it can be read: the one it was given, else the file's."""
        node = self.launch.get("name")
        return node.value if node is not None and isinstance(node.value, str) and node.value else self.name

    @property
    def environment(self) -> str:
        """Where the run is launched, empty where the file does not say."""
        node = self.launch.get("environment")
        return node.value if node is not None and node.value in ENVIRONMENTS else ""

    @property
    def attempt(self) -> int:
        """The number of the run's attempt, the first where the file does not say."""
        node = self.launch.get("attempt")
        value = node.value if node is not None else 1
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1

    @property
    def checks(self) -> dict[str, Node]:
        """What stands under `checks:`."""
        return section(self.root, "checks")


@dataclass(frozen=True, slots=True)
class Selection:
    """What chooses the preset files of a run."""

    model: str
    chips: int
    context: str
    environment: str


def section(root: Node, key: str) -> dict[str, Node]:
    """Return the mapping under `key`; absent, empty or wrong (then already reported) is an empty one."""
    node = root.value.get(key)
    return node.value if node is not None and isinstance(node.value, dict) else {}


def is_file(path: Path) -> bool:
    """Return whether `path` is a file; a name that no file can have is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


class Repository:
    """The content under one root folder. Each file is read once, and its problems are kept with it."""

    def __init__(self, root: Path) -> None:
        self.root = real(root)
        self._prefix = f"{self.root.as_posix().rstrip('/')}/"
        self._layers: dict[tuple[str, str], tuple[Layer, list[Problem]]] = {}

    def label(self, path: Path) -> str:
        """Return how messages call `path`: relative to the root where it lies inside."""
        text = path.absolute().as_posix()
        return text.removeprefix(self._prefix)

    def contains(self, path: Path) -> bool:
        """Whether `path`, its symbolic links followed, lies under the root."""
        return contains(self.root, path)

    def models(self) -> list[str]:
        """Return the models that have presets."""
        return sorted(path.parent.name for path in self.root.glob("presets/*/model.yml"))

    def topologies(self, model: str) -> list[tuple[int, str]]:
        """Return (chips, context) of every topology file of `model`."""
        found = []
        for path in self.root.glob(f"presets/{model}/topology/*chips/*.yml"):
            chips = path.parent.name.removesuffix("chips")
            if re.fullmatch(r"[1-9][0-9]*", chips):
                found.append((int(chips), path.stem))
        return sorted(found)

    def preset_files(self, selection: Selection) -> dict[str, str]:
        """Return the file of each preset layer, by the layer's name in merging order."""
        folder = f"presets/{selection.model}"
        return {
            "model": f"{folder}/model.yml",
            "topology": f"{folder}/topology/{selection.chips}chips/{selection.context}.yml",
            "environment": f"{folder}/environment/{selection.environment}.yml",
        }

    def missing_presets(self, selection: Selection, places: dict[str, Location]) -> Iterator[Problem]:
        """Yield a problem for every preset file that does not exist, listing those that do."""
        unknown = self.unknown_model(selection.model, places.get("model", COMMAND_LINE))
        if unknown:
            yield unknown
            return
        files = self.preset_files(selection)
        if not is_file(self.root / files["topology"]):
            yield self._missing_topology(selection, places, files["topology"])
        if not is_file(self.root / files["environment"]):
            place = places.get("environment", COMMAND_LINE)
            folder = self.root / "presets" / selection.model / "environment"
            known = ", ".join(sorted(path.stem for path in folder.glob("*.yml"))) or "none"
            message = f"no {files['environment']}"
            yield Problem("preset-missing", place, "launch.environment", message, f"environments: {known}")

    def unknown_model(self, model: str, place: Location) -> Problem | None:
        """Return the problem of a model without presets, which lists those that have them; nothing for a known one."""
        file = f"presets/{model}/model.yml"
        if is_file(self.root / file):
            return None
        known = ", ".join(self.models()) or "none"
        return Problem("preset-missing", place, "launch.model", f"no {file}", f"models: {known}")

    def _missing_topology(self, selection: Selection, places: dict[str, Location], file: str) -> Problem:
        """Return the problem of a topology file that does not exist: the context's where these chips have others."""
        found = self.topologies(selection.model)
        contexts = ", ".join(context for chips, context in found if chips == selection.chips)
        if contexts:
            key, hint = "context", f"contexts of {counted(selection.chips, 'chip')}: {contexts}"
        else:
            known = ", ".join(f"{chips} {context}" for chips, context in found) or "none"
            key, hint = "chips", f"chips and contexts: {known}"
        return Problem("preset-missing", places.get(key, COMMAND_LINE), f"launch.{key}", f"no {file}", hint)

    def preset(self, name: str, file: str, problems: list[Problem]) -> Layer:
        """Return a preset layer; what is wrong in its file is appended to `problems` each time it is asked for."""
        return self._layer(name, file, problems, self._inside, _namespaces)

    def dataset(self, chosen: str, place: Location, problems: list[Problem], *, inside: bool) -> Layer | None:
        """Return the dataset layer that `deploy.DATASETS_YAML` names; its flat keys belong under `maxtext:`."""
        path = self.root / (chosen if "/" in chosen or chosen.endswith(".yml") else f"datasets/{chosen}.yml")
        if not is_file(path):
            known = ", ".join(sorted(found.stem for found in self.root.glob("datasets/*.yml"))) or "none"
            message = f"no dataset {self.label(path)}"
            problems.append(Problem("dataset-missing", place, "deploy.DATASETS_YAML", message, f"datasets: {known}"))
            return None
        if inside and not self.contains(path):
            message = f"{chosen} lies outside the repository: what is launched must be reviewed here"
            problems.append(Problem("path-outside", place, "deploy.DATASETS_YAML", message))
            return None
        return self._layer("dataset", self.label(path), problems, self._anywhere, _flat)

    def _inside(self, file: str, problems: list[Problem]) -> Node:
        return read_inside(self.root, file, problems)

    def _anywhere(self, file: str, problems: list[Problem]) -> Node:
        path = self.root / file
        here = path.is_relative_to(self.root) and self.contains(path)
        return self._inside(file, problems) if here else read_file(path, file, problems)

    def _layer(self, name: str, file: str, problems: list[Problem], read: Any, build: Any) -> Layer:
        key = (name, file)
        if key not in self._layers:
            found: list[Problem] = []
            root = read(file, found)
            self._layers[key] = build(name, file, root, found), found
        layer, found = self._layers[key]
        problems.extend(found)
        return layer

    def experiment_paths(self) -> tuple[list[Path], list[Problem]]:
        """Return every experiment file, and a problem for every stray file or folder under experiments/."""
        paths: list[Path] = []
        strays: list[Problem] = []
        folder = self.root / "experiments"
        for entry in self._entries(folder, strays) if exists(folder) else ():
            if entry.is_symlink():
                strays.append(self._stray(entry, f"it {LINK}"))
                continue
            if not os.path.isdir(entry):  # noqa: PTH112  Path.is_dir raises for what may not be looked at
                if entry.name != "README.md":
                    strays.append(self._stray(entry, "experiments lie in experiments/<model>/"))
                continue
            if not is_file(self.root / "presets" / entry.name / "model.yml"):
                known = ", ".join(self.models()) or "none"
                strays.append(self._stray(entry, f"no presets/{entry.name}/model.yml; models: {known}"))
                continue
            for path in self._entries(entry, strays):
                if path.is_symlink():
                    strays.append(self._stray(path, f"it {LINK}"))
                elif path.suffix == ".yml" and re.fullmatch(NAME, path.name) and is_file(path):
                    paths.append(path)
                elif path.suffix == ".yaml":
                    strays.append(self._stray(path, "rename it to .yml"))
                elif path.name != "README.md":
                    strays.append(self._stray(path, "only <name>.yml files belong here"))
        return paths, strays

    def _entries(self, folder: Path, problems: list[Problem]) -> list[Path]:
        try:
            return sorted(folder.iterdir())
        except OSError as error:
            message = f"cannot be listed: {error.strerror}"
            problems.append(Problem("file-unreadable", Location(self.label(folder)), "", message))
            return []

    def _stray(self, path: Path, reason: str) -> Problem:
        return Problem("stray-file", Location(self.label(path)), "", f"is not an experiment: {reason}")

    def find_experiment(self, name: str) -> Path:
        """Return the file of the experiment called `name`: a path, or <model>/<name>.

        Raises RefusedError when there is none, with the names that come near.
        """
        for candidate in (Path(name), self.root / name, self.root / "experiments" / f"{name}.yml"):
            if candidate.suffix == ".yml" and is_file(candidate):
                return candidate.parent.resolve() / candidate.name
        known = sorted(f"{path.parent.name}/{path.stem}" for path in self.experiment_paths()[0])
        wanted = name.removeprefix("experiments/").removesuffix(".yml")
        near = get_close_matches(wanted, known) or [other for other in known if wanted.rpartition("/")[2] in other][:10]
        more = f" and {len(known) - 10} more" if len(known) > 10 else ""
        hint = f"did you mean {' or '.join(near)}?" if near else f"experiments: {', '.join(known[:10])}{more}"
        return refuse("experiment-missing", Location(name), "no such experiment", hint=hint)

    def experiment(self, path: Path, problems: list[Problem]) -> ExperimentFile:
        """Return the experiment in the file at `path`; append what is wrong with its shape to `problems`."""
        return self._experiment(path, read_file(path, self.label(path), problems), problems)

    def parse_experiment(self, path: Path, data: bytes, problems: list[Problem]) -> ExperimentFile:
        """Return the experiment that `data` would be if it stood at `path`."""
        return self._experiment(path, read(data, self.label(path), problems), problems)

    def _experiment(self, path: Path, root: Node, problems: list[Problem]) -> ExperimentFile:
        file = self.label(path)
        layer = _namespaces("experiment", file, root, problems, ("launch", "deploy", "maxtext", "checks"))
        return ExperimentFile(path.parent.name, path.stem, file, root, layer)


def _namespaces(
    name: str, file: str, root: Node, problems: list[Problem], known: tuple[str, ...] = ("deploy", "maxtext")
) -> Layer:
    """Return the layer in a file of namespaces; other top-level keys are problems, an empty one is an absent one."""
    for key, node in root.value.items():
        if key not in known:
            message = f"unknown top-level key: write it under {' or '.join(f'{word}:' for word in known)}"
            problems.append(Problem("top-level-key", node.key_at, key, message))
        elif node.value is not None and not isinstance(node.value, dict):
            problems.append(Problem("namespace-type", node.at, key, "must be a mapping of keys"))
    return Layer(name, file, section(root, "deploy"), section(root, "maxtext"))


def _flat(name: str, file: str, root: Node, problems: list[Problem]) -> Layer:
    """Return a dataset's layer: all its keys are MaxText's."""
    for key in ("launch", "deploy", "maxtext", "checks"):
        if key in root.value:
            message = "a dataset holds MaxText keys at the top level, no namespaces"
            problems.append(Problem("top-level-key", root.value[key].key_at, key, message))
    return Layer(name, file, {}, root.value)
