"""Which experiments changed files affect: what a commit hook validates and renders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from renderer.committed import Unit, experiment_path, folders, unit_of
from renderer.git import Git
from renderer.layers import Repository, is_file
from renderer.problem import Problem


def here() -> Git:
    """Return git in the current folder: the index that a hook is told of may be named relative to it."""
    return Git(Path.cwd())


@dataclass(frozen=True, slots=True)
class Affected:
    """What follows from changed files.

    `experiments` are to be judged and rendered; `gone` are the folders under rendered/ of experiments without a file;
    `shared` says whether presets, policy.yml or clusters.yml changed; `problems` are the strays among the files.
    """

    experiments: tuple[Path, ...]
    gone: tuple[str, ...]
    shared: bool
    problems: tuple[Problem, ...]


def affected(repository: Repository, names: Iterable[str]) -> Affected:
    """Return what follows from the files `names`, relative to the current folder, and from what the index deletes.

    An experiment's rendered files stand for it. Every other file stands for the experiments that use it.
    """
    files = sorted({repository.label(Path(name)) for name in (*names, *here().deleted())})
    others = [file for file in files if not unit_of(file) and not Path(file).is_absolute()]
    units = {*filter(None, map(unit_of, files)), *_users(repository, others)}
    there = {unit: is_file(repository.root / experiment_path(unit)) for unit in sorted(units)}
    return Affected(
        experiments=tuple(repository.root / experiment_path(unit) for unit in there if there[unit]),
        gone=tuple(folder for unit in there if not there[unit] for folder in folders(unit)),
        shared=any(file.startswith("presets/") for file in others),
        problems=tuple(_strays(repository, others)),
    )


def _strays(repository: Repository, files: Iterable[str]) -> Iterator[Problem]:
    """Yield the problems of files that are no experiments, and of folders that hold one of `files`."""
    odd = [f"{file}/" for file in files if file.startswith("experiments/")]
    for problem in repository.experiment_paths()[1] if odd else ():
        if any(file.startswith(f"{problem.location.file}/") for file in odd):
            yield problem


def _users(repository: Repository, files: list[str]) -> Iterator[Unit]:
    """Yield the experiments that use one of `files`; drafts that git does not know are nobody else's business."""
    if not files:
        return
    presets = cache(lambda model: _text((repository.root / "presets" / model).rglob("*.yml")))
    drafts = set(here().untracked(repository.root / "experiments"))
    for path in repository.experiment_paths()[0]:
        model, own = path.parent.name, _text([path])
        if path not in drafts and any(_uses(file, model, own, presets(model)) for file in files):
            yield model, path.stem


def _text(paths: Iterable[Path]) -> bytes:
    return b"\n".join(path.read_bytes() for path in paths)


def _uses(file: str, model: str, own: bytes, presets: bytes) -> bool:
    """Whether an experiment may use `file`, going by its `own` text and that of its model's presets.

    What it uses is named there, so none is missed; one too many costs the time to find that nothing changes.
    """
    match file.split("/"):
        case ["presets", _] | ["pod" | "renderer" | "rendered", *_]:  # policy.yml, clusters.yml; the renderer itself
            return True
        case ["presets", folder, "topology", chips, context]:
            selectors = chips.removesuffix("chips"), context.removesuffix(".yml")
            return folder == model and all(word.encode() in own for word in selectors)
        case ["presets", folder, "environment", environment]:
            return folder == model and environment.removesuffix(".yml").encode() in own
        case ["presets", folder, *_]:
            return folder == model
        case ["datasets", dataset]:
            word = dataset.removesuffix(".yml").encode()
        case [*_, name]:  # deploy.DATASETS_YAML may be any path
            word = name.encode("utf-8", "surrogateescape")
    return word in own or word in presets
