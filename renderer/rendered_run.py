"""A run as it is committed under rendered/: its files, its pod scripts, and the refusal of damaged ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from renderer.layers import ENVIRONMENTS, Repository, rendered_folder
from renderer.location import Location
from renderer.manifest_yaml import load
from renderer.outputs import DAMAGED, POD_SCRIPTS, REQUIRED, RUN_FILES, digest_of_pod, without_derived
from renderer.problem import refuse
from renderer.yaml_io import MAX_DEPTH


def damaged(file: str, error: BaseException) -> NoReturn:
    """Refuse the committed `file`, whose reading raised one of DAMAGED."""
    refuse("rendered-edited", Location(file), damage(error), hint="run renderer render")


def damage(error: BaseException) -> str:
    """Return in words what is wrong with a committed file whose reading raised one of DAMAGED."""
    reason = str(error) or "it has another shape"
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    elif isinstance(error, KeyError):
        reason = f"it has no {error.args[0]}"
    return f"is not a rendered run's: {reason}"


class RenderedRun(NamedTuple):
    """A run as it is committed: its folder under the root, and the files in it by name."""

    folder: str
    files: dict[str, bytes]


def rendered_run(repository: Repository, experiment: str) -> RenderedRun:
    """Return an experiment's files under rendered/. Raises RefusedError if it is not rendered, or one is damaged."""
    path = repository.find_experiment(experiment)
    for environment in ENVIRONMENTS:
        folder = rendered_folder(environment, path.parent.name, path.stem)
        found = {name: repository.root / folder / name for name in RUN_FILES}
        files = {name: file.read_bytes() for name, file in found.items() if file.is_file()}
        if files.keys() >= set(REQUIRED):
            _refuse_damaged(folder, files)
            return RenderedRun(folder, files)
    return refuse("rendered-missing", Location(repository.label(path)), "is not rendered yet; run renderer render")


def _refuse_damaged(folder: str, files: Mapping[str, bytes]) -> None:
    """Refuse what cannot be read as a run's files, by the name of the file."""
    for name, data in files.items():
        try:
            _READERS[name](data)
        except DAMAGED as error:
            damaged(f"{folder}/{name}", error)


def _derive(data: bytes) -> None:
    derive = json.loads(data)
    _mapping(derive)
    _shallow(derive, 0)
    if not isinstance(derive["run_name_explicit"], bool):
        raise ValueError("its run_name_explicit is not true or false")


def _manifest(data: bytes) -> None:
    manifest = load(data.decode())
    _mapping(manifest)
    without_derived(manifest, default_name=True)


def _mapping(value: Any) -> None:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ValueError("it is not a mapping of keys")


def _shallow(value: Any, depth: int) -> None:
    """Raise ValueError for what is nested deeper than any file of a run, before something recurses into it."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _shallow(item, depth + 1)


_READERS: Mapping[str, Callable[[bytes], None]] = {
    "derive.json": _derive,
    "jobset.yml": _manifest,
    "run.yml": lambda data: _mapping(load(data.decode())),
    "watcher.yml": _manifest,
}


def pod_scripts(repository: Repository, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the pod scripts that a run was rendered with, by name.

    Raises RefusedError if they are missing or no text files, one of DAMAGED if jobset.yml does not name them.
    """
    label = f"{POD_SCRIPTS}/{digest_of_pod(load(files['jobset.yml'].decode()))}"
    folder = repository.root / label
    if not folder.is_dir():
        refuse("rendered-missing", Location(label), "is missing; run renderer render")
    scripts = {}
    for script in sorted(folder.iterdir()):
        if not script.is_file():  # a pipe would be waited for
            refuse("rendered-unknown", Location(f"{label}/{script.name}"), "is not a regular file: delete it")
        scripts[script.name] = script.read_bytes()
        try:
            scripts[script.name].decode()
        except ValueError as error:
            damaged(f"{label}/{script.name}", error)
    return scripts
