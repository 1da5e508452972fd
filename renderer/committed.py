"""Reads experiments and their rendered runs out of a commit's files, as `plan` needs them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from renderer import run_text
from renderer.configure import own_digest
from renderer.git import Git
from renderer.layers import ENVIRONMENTS, NAME, RENDERED, ExperimentFile, Repository, rendered_folder
from renderer.names import experiment_label, label, object_name
from renderer.outputs import POD_SCRIPTS, REQUIRED, RUN_FILES
from renderer.problem import Problem, errors
from renderer.run_text import value
from renderer.runs import Committed, Snapshot

Tree = Mapping[str, str]
"""The blob of every file of a commit, by path under the root."""

Unit = tuple[str, str]
"""A model and the stem of an experiment file: what names experiments/<model>/<stem>.yml and its rendered folders."""

MAX_FILE = 2 << 20
"""A larger rendered file is not read: parsing it takes long, and no cluster takes it, as etcd has 1.5 MiB an object."""

_EXPERIMENT = re.compile(rf"experiments/({NAME})/({NAME})\.yml")
_RENDERED = re.compile(rf"{RENDERED}/(?:{'|'.join(ENVIRONMENTS)})/({NAME})/({NAME})/[^/]+")


def unit_of(path: str) -> Unit | None:
    """Return the experiment that a file belongs to, nothing for any other file."""
    match = _EXPERIMENT.fullmatch(path) or _RENDERED.fullmatch(path)
    return (match[1], match[2]) if match else None


def differing(base: Tree, head: Tree) -> set[Unit]:
    """Return the experiments whose own or rendered files two commits do not hold alike."""
    changed = {path for path in base.keys() | head.keys() if base.get(path) != head.get(path)}
    return units_of(changed)


def units_of(paths: Iterable[str]) -> set[Unit]:
    """Return the experiments that any of `paths` belong to."""
    return {unit for unit in map(unit_of, paths) if unit}


def pod_scripts(git: Git, tree: Tree) -> dict[str, bytes]:
    """Return all pod scripts of a commit, by path."""
    paths = {path: blob for path, blob in tree.items() if path.startswith(f"{POD_SCRIPTS}/")}
    blobs = git.blobs(paths.values())
    return {path: blobs[blob] for path, blob in paths.items()}


def experiment_path(unit: Unit) -> str:
    """Return the path of the experiment file."""
    return f"experiments/{unit[0]}/{unit[1]}.yml"


def folders(unit: Unit) -> list[str]:
    """Return the folders that may hold the experiment's rendered files."""
    return [rendered_folder(environment, *unit) for environment in ENVIRONMENTS]


def files_of(tree: Tree, unit: Unit) -> Tree:
    """Return the files of a commit that belong to an experiment."""
    inside = tuple(f"{folder}/" for folder in folders(unit))
    return {path: blob for path, blob in tree.items() if path == experiment_path(unit) or path.startswith(inside)}


def wanted(tree: Tree, units: Iterable[Unit]) -> Iterator[str]:
    """Yield the blobs that `snapshot` reads."""
    for unit in units:
        paths = [experiment_path(unit), *(f"{folder}/{name}" for folder in folders(unit) for name in RUN_FILES)]
        yield from (tree[path] for path in paths if path in tree)


def named(git: Git, tree: Tree, names: Collection[str]) -> dict[str, Unit]:
    """Return the experiments of a commit whose rendered runs have one of these object names, by that name."""
    jobsets = {path: blob for path, blob in tree.items() if path.endswith("/jobset.yml")} if names else {}
    blobs = git.blobs(jobsets.values())
    found = ((value(run_text.NAME, blobs[blob]), unit_of(path)) for path, blob in jobsets.items())
    return {name: unit for name, unit in found if unit and name in names}


class Reader:
    """Reads the experiments of one commit; `blobs` holds at least what `wanted` names."""

    def __init__(self, tree: Tree, blobs: Mapping[str, bytes]) -> None:
        self._tree = tree
        self._blobs = blobs

    def snapshot(self, units: Iterable[Unit]) -> Snapshot:
        """Return what the commit holds of these experiments."""
        found = (self._committed(unit) for unit in sorted(units))
        return Snapshot(tuple(run for run in found if run))

    def files(self, run: Committed) -> dict[str, bytes]:
        """Return the rendered files of an experiment by name, without those that are too large."""
        return {name: data for name, data in self._held(run) if len(data) <= MAX_FILE}

    def _held(self, run: Committed) -> Iterator[tuple[str, bytes]]:
        for name in RUN_FILES:
            if blob := self._tree.get(f"{run.folder}/{name}"):
                yield name, self._blobs[blob]

    def experiment(self, path: str, problems: list[Problem]) -> ExperimentFile:
        """Return the experiment file at `path`; append what is wrong with it to `problems`."""
        return parsed(path, self._blobs[self._tree[path]], problems)

    def _committed(self, unit: Unit) -> Committed | None:
        path = experiment_path(unit)
        if path not in self._tree:
            return None
        problems: list[Problem] = []
        experiment = self.experiment(path, problems)
        launch = {key: node.value for key, node in experiment.launch.items()}
        intent = Committed(
            experiment=f"{unit[0]}/{label(experiment.effective_name)}",
            file=path,
            environment=experiment.environment,
            source=self._tree[path],
            attempt=experiment.attempt,
            owner=_text(launch, "owner"),
            resume=_text(launch, "resume"),
            supersede=_text(launch, "supersede"),
            stopped=launch.get("state") == "stopped",
        )
        files = dict(self._held(intent))
        if any(len(data) > MAX_FILE for data in files.values()):
            said = f"a rendered file has more than {MAX_FILE >> 20} MiB, which no cluster takes"
            return replace(intent, problem=said)
        return _with_files(intent, files, experiment, unreadable=bool(errors(problems)))


def parsed(path: str, data: bytes, problems: list[Problem]) -> ExperimentFile:
    """Return the experiment file that `data` is at `path`; append what is wrong with it to `problems`."""
    experiment, found = _parsed(path, data)
    problems += found
    return experiment


@lru_cache(maxsize=8192)
def _parsed(path: str, data: bytes) -> tuple[ExperimentFile, tuple[Problem, ...]]:
    """Return the experiment file that `data` is at `path`; the commits that are compared hold most of them alike."""
    problems: list[Problem] = []
    return Repository(Path("/")).parse_experiment(Path("/", path), data, problems), tuple(problems)


def _text(launch: Mapping[str, Any], key: str) -> str:
    value = launch.get(key)
    return value if isinstance(value, str) else ""


def _with_files(
    intent: Committed, files: Mapping[str, bytes], experiment: ExperimentFile, *, unreadable: bool
) -> Committed:
    """Return `intent` with what the rendered files say, and why they cannot be launched, if so."""
    if not files:
        return replace(intent, problem="it is not rendered: run renderer render")
    jobset = files.get("jobset.yml", b"")
    found = {key: value(pattern, jobset) for key, pattern in _TEXTS.items()}
    if not found["name"] or not found["content"] or not files.keys() >= set(REQUIRED):
        return replace(intent, problem="its rendered files are not a run's: run renderer render")
    state = replace(
        intent,
        name=found["name"],
        content=found["content"],
        own=found["own"],
        run_name=found["run_name"],
        chips=int(found["chips"] or 0),
        output=value(run_text.OUTPUT, files["run.yml"]),
        checkpoints=value(run_text.CHECKPOINTS, files["run.yml"]) != "false",
    )
    if unreadable:
        return replace(state, problem="its file has errors: run renderer validate")
    if found["own"] != own_digest(experiment):
        return replace(state, problem="its rendered files are those of other content: run renderer render")
    if value(run_text.EXPERIMENT, jobset) != experiment_label(experiment.effective_name):
        return replace(state, problem="its rendered files are those of another name: run renderer render")
    if state.name != object_name(state.whole_name, state.attempt):
        problem = f"its rendered files are not those of attempt {state.attempt}: run renderer render"
        return replace(state, problem=problem)
    return state


_TEXTS = {
    "name": run_text.NAME,
    "content": run_text.CONTENT_DIGEST,
    "own": run_text.EXPERIMENT_DIGEST,
    "chips": run_text.CHIPS,
    "run_name": run_text.RUN_NAME,
}
