"""Freezing: a launched run keeps its reviewed bytes, whatever presets, datasets and the template do later."""

from __future__ import annotations

import re
from dataclasses import dataclass

from renderer.collisions import Identity
from renderer.configure import own_digest
from renderer.launch import Launch
from renderer.layers import ExperimentFile, rendered_folder, rendered_from
from renderer.location import Location
from renderer.names import experiment_label, object_name, seal, sealed, without_attempt
from renderer.outputs import REQUIRED, carries_its_digest
from renderer.run_text import EXPERIMENT, EXPERIMENT_DIGEST, NAME, OUTPUT, RUN_NAME, value
from renderer.target import Files, Target

_OWNER_LINE = re.compile(rb'^    renderer/owner: ".*"\n', re.MULTILINE)
_MODEL_LINE = re.compile(rb'^    renderer/model: ".*"\n', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A run that stays as it was reviewed: its `files`, their `folder`, and the experiment's `file`.

    `resume` is the run that it continues, if any.
    """

    file: str
    folder: str
    files: Files
    resume: str


def legal(experiment: ExperimentFile, launch: Launch, target: Target) -> list[Frozen]:
    """Return the forms that an experiment's run may keep, the target's first; none where it is to be rendered.

    It stays while the experiment's own data, and the name it goes by, are those of the files that the target branch
    has. Only the closed set of derived fields follows the experiment: names for another attempt, and the owner.
    """
    own = own_digest(experiment)
    label = experiment_label(experiment.effective_name)
    folder = rendered_folder(launch.environment, launch.model, experiment.name)
    found = [files for files in target.versions(folder) if _matches(files, own, label, target)]
    if not found:  # a renamed experiment left its run in the folder of its old path, whatever lies there by now
        former = target.left(rendered_folder(launch.environment, launch.model, ""), label, own)
        versions = (files for old in former for files in target.versions(old))
        found = [files for files in versions if _matches(files, own, label, target)]
    return [
        Frozen(experiment.file, folder, rederived(files, launch.attempt, launch.owner), launch.resume or "")
        for files in found
    ]


def _matches(files: Files, own: str, label: str, target: Target) -> bool:
    """Whether the files are those of a reviewed run; where no commit vouches for them, they must do so themselves."""
    jobset = files.get("jobset.yml", b"")
    return (
        files.keys() >= set(REQUIRED)
        and value(EXPERIMENT_DIGEST, jobset) == own
        and value(EXPERIMENT, jobset) == label
        and sealed(files)
        and (target.known or carries_its_digest(files))
    )


def rederived(files: Files, attempt: int, owner: str | None) -> Files:
    """Return frozen files with the names of `attempt` and the label of `owner`; the content digest does not change."""
    old = value(NAME, files["jobset.yml"])
    if not old:
        return files
    new = object_name(without_attempt(old), attempt)
    changed = {
        name: _owned(_renamed(data, old.encode(), new.encode()), owner) if name in _MANIFESTS else data
        for name, data in files.items()
    }
    return files if changed == files else seal(changed)


_MANIFESTS = ("jobset.yml", "watcher.yml")


def _renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    """Replace an object's name where it names objects: metadata, the run's ConfigMap, the watcher. Not RUN_NAME."""
    for prefix, ending in ((b'^  name: "', b'"$'), (b'^ +name: "run-', b'"$'), (b'^  name: "', b'-hf"$')):
        data = re.sub(prefix + re.escape(old) + ending, lambda match: match[0].replace(old, new), data, flags=re.M)
    return data.replace(b'renderer/watcher: "' + old + b'-hf"', b'renderer/watcher: "' + new + b'-hf"')


def _owned(data: bytes, owner: str | None) -> bytes:
    line = f'    renderer/owner: "{owner}"\n'.encode() if owner else b""
    if _OWNER_LINE.search(data):
        return _OWNER_LINE.sub(lambda _: line, data, count=1)
    return _MODEL_LINE.sub(lambda match: match[0] + line, data, count=1)


def identity(run: Frozen) -> Identity:
    """Return what no other experiment may share with a frozen run."""
    jobset = run.files["jobset.yml"]
    return Identity(
        file=run.file,
        place=Location(run.file, 1, 1),
        experiment=(rendered_from(run.folder)[1], value(EXPERIMENT, jobset)),
        object=value(NAME, jobset),
        run_name=value(RUN_NAME, jobset),
        base_output_directory=value(OUTPUT, run.files["run.yml"]),
        resume=run.resume,
    )
