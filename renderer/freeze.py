"""Freezing: a launched run keeps its reviewed bytes, whatever presets, datasets and the template do later."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from renderer.configure import experiment_data
from renderer.launch import Launch
from renderer.layers import ExperimentFile
from renderer.names import digest, experiment_label, object_name, seal
from renderer.target import Target

_EXPERIMENT_DIGEST = re.compile(rb'^    renderer/experiment-digest: "([0-9a-f]{64})"$', re.MULTILINE)
_EXPERIMENT_LABEL = re.compile(rb'^    renderer/experiment: "([^"]*)"$', re.MULTILINE)
_OWNER = re.compile(rb'^    renderer/owner: ".*"\n', re.MULTILINE)
_MODEL = re.compile(rb'^    renderer/model: ".*"\n', re.MULTILINE)
_NAME = re.compile(rb'^  name: "([^"]*)"$', re.MULTILINE)
_ATTEMPT = re.compile(rb"(.*-[0-9a-f]{8})(?:-a[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Frozen:
    """A run that stays as the target branch has it. `reason` says why nobody could tell otherwise, if so."""

    experiment: ExperimentFile
    folder: str
    files: Mapping[str, bytes]
    reason: str


def frozen(experiment: ExperimentFile, launch: Launch, target: Target) -> Frozen | None:
    """Return the run as it must stay, or nothing where the experiment is to be rendered.

    It stays while the experiment's own data is that of the rendered files on the target branch. Only the closed set of
    derived fields follows the file: names for another attempt, and the owner's label.
    """
    folder = f"rendered/{launch.environment}/{launch.model}/{experiment.name}"
    files = target.run_files(folder) or _moved(launch, target)
    if "jobset.yml" not in files:
        return None
    own = _EXPERIMENT_DIGEST.search(files["jobset.yml"])
    if own is None or own[1].decode() != digest(experiment_data(experiment)):
        return None
    reason = "" if target.known else target.base.reason
    return Frozen(experiment, folder, rederived(files, launch.attempt, launch.owner), reason)


def _moved(launch: Launch, target: Target) -> Mapping[str, bytes]:
    """Return the files of a renamed experiment: the same effective name, in a folder whose experiment is gone."""
    if not launch.name:
        return {}
    siblings = f"rendered/{launch.environment}/{launch.model}/"
    for folder in sorted(target.folders()):
        stem = folder.removeprefix(siblings)
        if folder.startswith(siblings) and not target.has_experiment(f"experiments/{launch.model}/{stem}.yml"):
            files = target.run_files(folder)
            found = _EXPERIMENT_LABEL.search(files.get("jobset.yml", b""))
            if found and found[1].decode() == experiment_label(launch.name):
                return files
    return {}


def rederived(files: Mapping[str, bytes], attempt: int, owner: str | None) -> Mapping[str, bytes]:
    """Return frozen files with the names of `attempt` and the label of `owner`; the content digest does not change."""
    name = _NAME.search(files["jobset.yml"])
    run = _ATTEMPT.fullmatch(name[1]) if name else None
    if name is None or run is None:
        return files
    old, new = name[1], object_name(run[1].decode(), attempt).encode()
    changed = {key: _renamed(data, old, new) for key, data in files.items() if key in {"jobset.yml", "watcher.yml"}}
    changed = {key: _owned(data, owner) for key, data in changed.items()}
    return files if all(files[key] == data for key, data in changed.items()) else seal({**files, **changed})


def _renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    """Replace an object's name where it names objects: metadata, the run's ConfigMap, the watcher. Not RUN_NAME."""
    for prefix, ending in ((b'^  name: "', b'"$'), (b'^ +name: "run-', b'"$'), (b'^  name: "', b'-hf"$')):
        data = re.sub(prefix + re.escape(old) + ending, lambda match: match[0].replace(old, new), data, flags=re.M)
    return data.replace(b'renderer/watcher: "' + old + b'-hf"', b'renderer/watcher: "' + new + b'-hf"')


def _owned(data: bytes, owner: str | None) -> bytes:
    line = f'    renderer/owner: "{owner}"\n'.encode() if owner else b""
    if _OWNER.search(data):
        return _OWNER.sub(lambda _: line, data, count=1)
    return _MODEL.sub(lambda match: match[0] + line, data, count=1)
