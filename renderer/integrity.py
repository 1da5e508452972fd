"""Whether rendered files are what somebody reviewed: all that a run carries of digests and names, computed anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from renderer import launch
from renderer.configure import own_digest
from renderer.layers import Repository, rendered_folder
from renderer.location import Location
from renderer.names import CONTENT_DIGEST, object_name, sealed, without_attempt
from renderer.outputs import DAMAGED, POD_SCRIPTS, REQUIRED, Parsed, digest_of_pod, mounted, parse, scripts_digest
from renderer.problem import Problem, errors
from renderer.rendered_run import damage
from renderer.run_text import EXPERIMENT_DIGEST, NAME, RUN_NAME, value

_RENDER = "run renderer render"


class Intent(NamedTuple):
    """What a run's files must agree with: the object name, what the experiment says, the digest of its own data."""

    name: str
    attempt: int
    environment: str
    own: str


class Wrong(NamedTuple):
    """A file or folder under the root that is not what was rendered, and why."""

    file: str
    message: str


def wrong(
    run: Intent, folder: str, files: Mapping[str, bytes], data: Parsed, scripts: Mapping[str, bytes]
) -> Iterator[Wrong]:
    """Yield what is wrong with a run's rendered `files`, which lie in `folder` and are `data`.

    `scripts` are all files below rendered/_pod, by path under the root. The files digest is not looked at: who asks
    knows more about what was edited. Raises one of DAMAGED if jobset.yml or watcher.yml is no run's.
    """
    message = next(_of_jobset(run, files["jobset.yml"], data), None)
    if message:
        yield Wrong(f"{folder}/jobset.yml", message)
    if data.watcher is not None:
        metadata, wanted = data.watcher["metadata"], f"{run.name}-hf"
        found = data.watcher["kind"], metadata["name"], metadata["namespace"]
        if found != ("Deployment", wanted, data.jobset["metadata"]["namespace"]):
            yield Wrong(f"{folder}/watcher.yml", f"is no Deployment {wanted}")
    pod = digest_of_pod(data.jobset)
    message = wrong_scripts(pod, scripts_of(pod, scripts))
    if message:
        yield Wrong(f"{POD_SCRIPTS}/{pod}", message)


def _of_jobset(run: Intent, text: bytes, data: Parsed) -> Iterator[str]:
    """Yield what is wrong with jobset.yml, the cause before what follows from it."""
    metadata, digest, whole = data.jobset["metadata"], data.content_digest, without_attempt(run.name)
    if metadata["annotations"][CONTENT_DIGEST] != digest:
        yield f"its content digest is not that of the run's files; {_RENDER}"
    if value(EXPERIMENT_DIGEST, text) != run.own:
        yield "its experiment digest is not that of the experiment: it was rendered from other content"
    if not whole.endswith(f"-{digest[:8]}") or metadata["name"] != object_name(whole, run.attempt):
        yield f"its name does not end in the content digest {digest[:8]}"
    if metadata["labels"]["renderer/environment"] != run.environment:
        yield f"its environment is not {run.environment}, its folder's"
    if "suspend" in data.jobset["spec"]:
        yield "sets spec.suspend, which only a launch may"
    if mounted(data.jobset)["run"] != f"run-{run.name}":
        yield f"its volume run does not name the ConfigMap run-{run.name}"
    names = {str(data.run_data["run_name"]), value(RUN_NAME, text)}
    if len(names) > 1 or (not data.derive["run_name_explicit"] and names != {whole}):
        yield "its run_name is not the one that follows from its content"


def scripts_of(pod: str, scripts: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the pod scripts in the folder of the digest `pod`, by name; `scripts` are all, by path."""
    folder = f"{POD_SCRIPTS}/{pod}/"
    return {path.removeprefix(folder): data for path, data in scripts.items() if path.startswith(folder)}


def wrong_scripts(pod: str, scripts: Mapping[str, bytes]) -> str:
    """Return what is wrong with the pod scripts of the digest `pod`, empty if nothing is."""
    return _wrong_scripts(pod, tuple(scripts.items())) if scripts else f"is missing; {_RENDER}"


@lru_cache(maxsize=256)  # many runs share their scripts
def _wrong_scripts(pod: str, scripts: tuple[tuple[str, bytes], ...]) -> str:
    try:
        found = scripts_digest(dict(scripts))
    except ValueError as error:
        return damage(error)
    return "" if found == pod else f"holds other files than were rendered: their digest is {found}"


def check(repository: Repository) -> list[Problem]:
    """Return a problem per digest or name that an experiment's files on disk carry and that is not theirs."""
    paths, found = repository.experiment_paths()
    scripts = _scripts(repository.root)
    for path in paths:
        found += _problems(repository, path, scripts)
    return found


def _problems(repository: Repository, path: Path, scripts: Mapping[str, bytes]) -> Iterator[Problem]:
    problems: list[Problem] = []
    experiment = repository.experiment(path, problems)
    if not errors(problems) and not experiment.environment:
        launch.parse(experiment.launch, Location(experiment.file, 1, 1), problems)
    if errors(problems):
        yield from problems
        return
    folder = rendered_folder(experiment.environment, experiment.model, experiment.name)
    files = _read(repository.root / folder)
    name = value(NAME, files.get("jobset.yml", b""))
    run = Intent(name, experiment.attempt, experiment.environment, own_digest(experiment))
    for item in _all(run, folder, files, scripts):
        yield Problem("rendered-digest", Location(item.file), "", item.message)


def _all(run: Intent, folder: str, files: Mapping[str, bytes], scripts: Mapping[str, bytes]) -> list[Wrong]:
    """Return what is wrong with files that may be missing, damaged or edited by hand too."""
    missing = [Wrong(f"{folder}/{name}", f"is missing; {_RENDER}") for name in REQUIRED if name not in files]
    if missing:
        return missing
    if not sealed(files):
        message = "its files digest is not that of the run's files: one of them was edited by hand"
        return [Wrong(f"{folder}/jobset.yml", message)]
    try:
        return list(wrong(run, folder, files, parse(files), scripts))
    except DAMAGED as error:
        return [Wrong(f"{folder}/jobset.yml", damage(error))]


def _read(folder: Path) -> dict[str, bytes]:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return {file.name: file.read_bytes() for file in files if file.is_file()}


def _scripts(root: Path) -> dict[str, bytes]:
    found = sorted((root / POD_SCRIPTS).glob("*/*"))
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in found if file.is_file()}
