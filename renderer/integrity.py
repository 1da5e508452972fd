"""Whether committed files are what somebody reviewed: every digest a run carries, computed anew from the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from renderer import names
from renderer.configure import own_digest
from renderer.layers import Repository
from renderer.location import Location
from renderer.outputs import recompute_digest
from renderer.problem import Problem
from renderer.run_text import CONTENT_DIGEST, EXPERIMENT_DIGEST, POD_DIGEST, value

_REASONS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def wrong(files: Mapping[str, bytes], scripts: Mapping[str, bytes], own: str) -> Iterator[tuple[str, str]]:
    """Yield (file name, what is wrong with it) of a run's rendered `files`.

    `scripts` are the pod scripts that it names, by file name; `own` is the digest of its experiment's own data.
    """
    missing = [name for name in ("jobset.yml", "run.yml", "derive.json") if name not in files]
    yield from ((name, "is missing") for name in missing)
    if missing:
        return
    jobset = files["jobset.yml"]
    if not names.sealed(files):
        yield "jobset.yml", "its files digest is not that of the run's files: one of them was edited by hand"
    elif value(CONTENT_DIGEST, jobset) != _content(files):
        yield "jobset.yml", "its content digest is not that of the run's content"
    elif value(EXPERIMENT_DIGEST, jobset) != own:
        yield "jobset.yml", "its experiment digest is not that of the experiment: it was rendered from other content"
    pod = value(POD_DIGEST, jobset)
    if _pod(scripts) != pod:
        yield f"_pod/{pod}", "the pod scripts are missing or edited: their digest is another"


def _content(files: Mapping[str, bytes]) -> str:
    try:
        return recompute_digest(files)
    except _REASONS:
        return ""


def _pod(scripts: Mapping[str, bytes]) -> str:
    try:
        return names.digest({name: data.decode() for name, data in scripts.items()})[:12]
    except ValueError:
        return ""


def check(repository: Repository) -> list[Problem]:
    """Return a problem per digest that an experiment's rendered files carry and that is not theirs."""
    paths, found = repository.experiment_paths()
    for path in paths:
        found += _digests(repository, path)
    return found


def _digests(repository: Repository, path: Path) -> Iterator[Problem]:
    problems: list[Problem] = []
    experiment = repository.experiment(path, problems)
    environment = experiment.launch.get("environment")
    folder = f"rendered/{environment.value if environment else ''}/{experiment.model}/{experiment.name}"
    files = _read(repository.root / folder)
    scripts = _read(repository.root / f"rendered/_pod/{value(POD_DIGEST, files.get('jobset.yml', b''))}")
    for name, message in wrong(files, scripts, own_digest(experiment)):
        place = Location(f"rendered/{name}" if name.startswith("_pod/") else f"{folder}/{name}")
        yield Problem("rendered-digest", place, "", message)


def _read(folder: Path) -> dict[str, bytes]:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return {file.name: file.read_bytes() for file in files if file.is_file()}
