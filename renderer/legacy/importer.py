"""Turns a recording into the shortest experiment over the presets that comes to the same values."""

from __future__ import annotations

import datetime
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from renderer import checks
from renderer.checks.launch import needed
from renderer.configure import Configuration, Configurator
from renderer.extensions import Schemas
from renderer.layers import Repository
from renderer.legacy import import_presets, import_text, import_waivers, ours, pairs, sources
from renderer.legacy.check import Outcome, compare
from renderer.legacy.difference import Difference
from renderer.legacy.import_changes import Change, changes
from renderer.legacy.import_presets import Place
from renderer.legacy.import_waivers import Decision
from renderer.legacy.pairs import FOLDER
from renderer.legacy.resolved import Resolved, trainer
from renderer.legacy.sources import Recorded
from renderer.legacy.versions import newest_that_knows
from renderer.location import COMMAND_LINE, Location
from renderer.pipeline import configure, figures, fits
from renderer.problem import Problem, RefusedError, errors, refuse
from renderer.schema import Snapshot, known_elsewhere, nearest, versions

_ROUNDS = 4
"""How often differences are written down until none is left: a written key may change what is derived."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller says about the experiment; empty is for the import to choose."""

    name: str = ""
    environment: str = ""
    owner: str = "imported"
    version: str = ""
    topology: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """The files to write, the comparison that proves them, and what a person should know."""

    experiment: str
    files: Mapping[str, bytes]
    outcome: Outcome
    rest: tuple[Difference, ...]
    notes: tuple[str, ...]


def plan(path: Path, repository: Repository, wishes: Wishes, today: datetime.date) -> Imported:
    """Return what importing the recording at `path` would write. Raises RefusedError where it is no experiment."""
    recorded, assumed, notes = _read(path, repository, wishes)
    place = import_presets.find(recorded.resolved, repository)
    name = wishes.name or path.stem
    target = repository.root / "experiments" / place.model / f"{name}.yml"
    if target.exists():
        refuse("import-exists", Location(repository.label(target)), "exists: choose another name with --name")
    with tempfile.TemporaryDirectory(prefix="import-") as folder:
        root = _overlay(repository.root, Path(folder), place)
        found = min(
            (_attempt(Repository(root), place, context, recorded, name, wishes) for context in place.contexts),
            key=lambda attempt: (len(attempt.differences), len(attempt.text.splitlines())),
        )
        return _finish(path, repository, place, recorded, found, wishes, today, assumed, notes)


def _read(path: Path, repository: Repository, wishes: Wishes) -> tuple[Recorded, str | None, list[str]]:
    """Return the recording, read with the model's own schema, the MaxText that had to be assumed, and notes."""
    version, notes = wishes.version or None, []
    try:
        recorded = sources.read(path, str(path), version)
    except RefusedError as error:
        if version or error.problems[0].code != "legacy-version":
            raise
        found = sources.read(path, str(path), versions()[-1]).resolved
        version = newest_that_knows(frozenset(found.maxtext), trainer(found.module))
        recorded = sources.read(path, str(path), version)
        notes.append(f"{error.problems[0].message}; read with {version}, which knows most of its keys")
    model = import_presets.find(_with_topology(recorded.resolved, wishes), repository).model
    extended = Schemas(repository).snapshot(model, recorded.resolved.version, COMMAND_LINE, [])
    recorded = sources.read(path, str(path), version, extended)
    resolved = _with_topology(recorded.resolved, wishes)
    notes.extend(_dead_keys(resolved, extended))
    return replace(recorded, resolved=resolved), version, notes


def _with_topology(resolved: Resolved, wishes: Wishes) -> Resolved:
    if not wishes.topology:
        return resolved
    return replace(resolved, job={"accelerator": "tpu7x", **resolved.job, "topology": wishes.topology})


def _dead_keys(resolved: Resolved, snapshot: Snapshot | None) -> Iterator[str]:
    for key in resolved.maxtext if snapshot else ():
        assert snapshot is not None
        if key not in snapshot.keys:
            elsewhere, near = known_elsewhere(snapshot, key), nearest(key, snapshot.keys)
            fix = elsewhere or (f"did you mean {' or '.join(near)}?" if near else "no version had it")
            yield f"{key} is left out: MaxText {snapshot.version} has no such key ({fix}); delete it from the launcher"


def _overlay(root: Path, folder: Path, place: Place) -> Path:
    """Return a copy of the content with the new preset files, in which experiments can be tried."""
    for name in ("presets", "datasets"):
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name)
    for file, data in place.new_files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
    (folder / "experiments" / place.model).mkdir(parents=True)
    return folder


@dataclass(frozen=True, slots=True)
class _Attempt:
    context: str
    change: Change
    text: str
    outcome: Outcome

    @property
    def mine(self) -> ours.Ours:
        return self.outcome.ours

    @property
    def differences(self) -> tuple[Difference, ...]:
        return self.outcome.differences


@dataclass(frozen=True, slots=True)
class _Trial:
    """Tries experiments in a copy of the content."""

    repository: Repository
    file: Path
    recorded: Recorded
    wishes: Wishes
    context: str

    def make(self, change: Change) -> _Attempt:
        """Return what an experiment comes to. Raises RefusedError if its layers cannot be merged."""
        text = _text(change, self.recorded, self.wishes)
        self.file.write_text(text, encoding="utf-8")
        problems: list[Problem] = []
        configuration = configure(Configurator(self.repository), self.file, problems)
        if configuration is None:
            raise RefusedError(problems)
        pair = pairs.Pair(self.file.stem, "", None, (), COMMAND_LINE)
        outcome = compare(pair, self.recorded, ours.resolve(configuration), datetime.date.min)
        return _Attempt(self.context, change, text, outcome)


def _attempt(
    repository: Repository, place: Place, context: str, recorded: Recorded, name: str, wishes: Wishes
) -> _Attempt:
    """Write differences into an experiment until nothing more can be written down."""
    launch = _launch(place, context, recorded.resolved, wishes, repository)
    trial = _Trial(repository, repository.root / "experiments" / place.model / f"{name}.yml", recorded, wishes, context)
    found = trial.make(Change(launch))
    leaf, dataset = found.mine.configuration.leaf("deploy", "DATASETS_YAML"), _dataset(repository, recorded.resolved)
    if dataset and not (leaf and leaf.node.value == dataset["DATASETS_YAML"]):
        found = trial.make(Change(launch, deploy=dataset))
    for _ in range(_ROUNDS):
        change = changes(found.change, found.outcome, recorded.reads)
        if change == found.change:
            break
        found = trial.make(change)
    return _shortened(trial, found)


def _shortened(trial: _Trial, found: _Attempt) -> _Attempt:
    """Leave out keys that are derived to the same value once the others are written."""
    for key in found.change.maxtext if found.mine.configuration.leaf("deploy", "DERIVATIONS") else ():
        fewer = {name: item for name, item in found.change.maxtext.items() if name != key}
        shorter = trial.make(replace(found.change, maxtext=fewer))
        if shorter.differences == found.differences:
            found = shorter
    return found


def _dataset(repository: Repository, recorded: Resolved) -> dict[str, Any]:
    """Return the choice of the dataset that holds the recording's own values, the largest such one."""
    found = []
    for path in sorted(repository.root.glob("datasets/*.yml")):
        layer = repository.dataset(path.stem, COMMAND_LINE, [], inside=False)
        keys = layer.maxtext if layer else {}
        if keys and all(key in recorded.maxtext and recorded.maxtext[key] == node.value for key, node in keys.items()):
            found.append((len(keys), path.stem))
    return {"DATASETS_YAML": max(found)[1]} if found else {}


def _launch(place: Place, context: str, recorded: Resolved, wishes: Wishes, repository: Repository) -> dict[str, Any]:
    environment = wishes.environment or _environment(place, recorded, repository)
    launch: dict[str, Any] = {"model": place.model, "chips": place.chips, "context": context}
    launch |= {"environment": environment, "owner": wishes.owner}
    image = str(recorded.job.get("image") or "")
    if recorded.job.get("branch") and environment == "test" and image.startswith("python:"):
        return launch | {"branch": recorded.job["branch"]}
    if image and not import_presets.PLACEHOLDER.search(image):
        return launch | {"image": image}
    return launch | {"image": f"{import_text.EXAMPLE}:{recorded.version}"}


def _environment(place: Place, recorded: Resolved, repository: Repository) -> str:
    """Return prod where the recording's namespace is prod's, else test."""
    namespace = recorded.job.get("namespace")
    path = f"presets/{place.model}/environment/prod.yml"
    layer = repository.preset("environment", path, []) if (repository.root / path).is_file() else None
    node = layer.deploy.get("K8S_NAMESPACE") if layer else None
    return "prod" if node is not None and namespace == node.value else "test"


def _text(change: Change, recorded: Recorded, wishes: Wishes) -> str:
    notes = {"owner": "example: the team that answers for this run"} if wishes.owner == "imported" else {}
    if str(change.launch.get("image", "")).startswith(import_text.EXAMPLE):
        notes["image"] = "example: an image built from this MaxText"
    for path in change.examples:
        notes[path] = "example: the recording has a placeholder here"
    sections = {"launch": change.launch, "deploy": change.deploy, "maxtext": change.maxtext, "checks": change.checks}
    head = f"Imported from {Path(recorded.resolved.source).name}: the same values, over the presets."
    return import_text.file(head, sections, notes).decode()


def _finish(
    path: Path,
    repository: Repository,
    place: Place,
    recorded: Recorded,
    found: _Attempt,
    wishes: Wishes,
    today: datetime.date,
    version: str | None,
    notes: list[str],
) -> Imported:
    configuration = found.mine.configuration
    problems = [*checks.check(configuration), *needed(configuration), *fits(configuration)]
    if errors(problems):
        raise RefusedError(problems)
    text = found.text + _promise(configuration)
    experiment = f"{place.model}/{configuration.name}"
    recording, copies = _recording(path, repository.root)
    sets = _listed(repository.root).sets
    decision = import_waivers.decide(found.differences, found.outcome.context, sets, today, force=wishes.force)
    outcome = compare(decision.pair(experiment, recording, version, sets), recorded, found.mine, today)
    new = {name: data for name, data in place.new_files.items() if found.context in name or "/topology/" not in name}
    files = {**new, f"experiments/{experiment}.yml": text.encode(), **copies}
    files[pairs.FILE] = _checks(repository.root, decision, experiment, recording, version)
    return Imported(experiment, files, outcome, decision.rest, tuple(notes))


def _promise(configuration: Configuration) -> str:
    return f"checks:\n  global_batch: {figures(configuration).global_batch}\n"


def _recording(path: Path, root: Path) -> tuple[str, dict[str, bytes]]:
    """Return the recording's name in tests/legacy/, and the copy that has to be made for it."""
    folder = root / FOLDER
    if path.resolve().is_relative_to(folder):
        return path.resolve().relative_to(folder).as_posix(), {}
    return f"recordings/{path.name}", {f"{FOLDER}/recordings/{path.name}": path.read_bytes()}


def _listed(root: Path) -> pairs.Pairs:
    return pairs.read(root) if (root / pairs.FILE).is_file() else pairs.Pairs((), {}, {}, ())


def _checks(root: Path, decision: Decision, experiment: str, recording: str, version: str | None) -> bytes:
    path = root / pairs.FILE
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    return import_waivers.insert(before, import_waivers.text(decision, experiment, recording, version)).encode()


def write(root: Path, imported: Imported) -> None:
    """Write the files of an import."""
    for name, data in imported.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
