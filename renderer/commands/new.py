"""`renderer new`: an experiment file, or one per value of a sweep."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from renderer import policy
from renderer.checks.launch import needed
from renderer.cli import OK, App
from renderer.commands.options import checkout_branch, say, selector_nodes, selectors, show
from renderer.configure import Configurator
from renderer.content_files import create, exists, read_bytes, unwritable
from renderer.layers import NAME, Layer, Repository
from renderer.location import COMMAND_LINE, Location
from renderer.overrides import parse, split, split_values
from renderer.pipeline import judge
from renderer.problem import Problem, RefusedError, Severity, errors, refuse
from renderer.scalars import Value
from renderer.schema import Snapshot, load, versions
from renderer.yaml_edit import edited
from renderer.yaml_io import REMOVED, Node

_TEMPLATE = """\
# yaml-language-server: $schema=../../schemas/experiment.json
# What this experiment is for: one line that a reviewer can hold it to.
launch: {}
"""


@click.command("new")
@click.argument("experiment", metavar="MODEL/NAME")
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--from", "source", metavar="EXPERIMENT", help="Start from a copy of this experiment.")
@selectors
@click.pass_obj
def command(app: App, /, experiment: str, values: tuple[str, ...], source: str | None, **given: str | None) -> int:
    """Write experiments/MODEL/NAME.yml with these selectors and values; check it first, never overwrite.

    A value with commas outside quotes and brackets is a sweep: learning_rate=1e-4,3e-4 writes one file per value.
    """
    repository = Repository(app.root)
    model, stem = _split_name(experiment)
    given["model"] = given["model"] or model
    base, name = _TEMPLATE.encode(), ""
    if source:
        base, name = _source(repository, source)
    elif not given["branch"] and not given["image"]:
        given["branch"] = checkout_branch()
    launch: dict[tuple[str, ...], Value] = {("launch", key): node.value for key, node in selector_nodes(given).items()}
    files: dict[Path, bytes] = {}
    for ending, assignments in _sweep(values):
        path = repository.root / "experiments" / model / f"{stem}{ending}.yml"
        label = repository.label(path)
        if path in files:
            refuse("experiment-exists", Location(label), "two values of the sweep give this name: write one otherwise")
        files[path] = edited(base, name or label, {**launch, **_changes(repository, given, assignments)})
    _writable(repository, files)
    _check(repository, files)
    create(files)
    for path in files:
        say(f"wrote {repository.label(path)}")
    return OK


def _source(repository: Repository, experiment: str) -> tuple[bytes, str]:
    """Return the experiment to start from, and its name in messages. Raises RefusedError for one of the wrong shape."""
    path = repository.find_experiment(experiment)
    problems: list[Problem] = []
    content = read_bytes(path, repository.label(path), problems)
    if content is not None:
        repository.parse_experiment(path, content, problems)
    if content is None or errors(problems):
        raise RefusedError(problems)
    return content, repository.label(path)


def _writable(repository: Repository, files: Iterable[Path]) -> None:
    problems = []
    for path in files:
        label = repository.label(path)
        found = unwritable(repository.root, path, label)
        if found is None and exists(path):
            found = Problem("experiment-exists", Location(label), "", "exists already: choose another name")
        problems += [found] if found else []
    if problems:
        raise RefusedError(problems)


def _split_name(name: str) -> tuple[str, str]:
    model, _, stem = name.removeprefix("experiments/").removesuffix(".yml").partition("/")
    if not re.fullmatch(NAME, model) or not re.fullmatch(NAME, stem):
        refuse(
            "experiment-name",
            COMMAND_LINE,
            f"{name} is not MODEL/NAME: write for example ling3-flash/lr3e4-fineweb",
        )
    return model, stem


def _sweep(arguments: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield (ending of the file's name, assignments) of every combination of the swept values."""
    options = [[(key, text) for text in split_values(values)] for key, values in map(split, arguments)]
    swept = {pairs[0][0] for pairs in options if len(pairs) > 1}
    for chosen in itertools.product(*options):
        endings = [f"-{_short(key)}{_in_name(text)}" for key, text in chosen if key in swept]
        yield "".join(endings), [f"{key}={text}" for key, text in chosen]


def _short(key: str) -> str:
    """Return the initials of a key: lr for learning_rate."""
    return "".join(word[0] for word in key.rpartition(".")[2].split("_") if word)


def _in_name(text: str) -> str:
    text = text.strip("\"'")
    return "-" * text.startswith("-") + re.sub(r"[^A-Za-z0-9.]+", "", text)


def _changes(
    repository: Repository, given: Mapping[str, str | None], assignments: list[str]
) -> dict[tuple[str, ...], Value]:
    """Return the value of every key that is assigned, by section and keys. Raises RefusedError for one given twice."""
    known = _snapshot(repository, str(given["model"])).keys
    problems: list[Problem] = []
    changes: dict[tuple[str, ...], Value] = {}
    whole: set[tuple[str, ...]] = set()
    for assignment in assignments:
        before = len(problems)
        layer = parse([assignment], known, problems)
        if len(problems) > before:
            continue
        found = dict(_leaves(("deploy",), layer.deploy)) | dict(_leaves(("maxtext",), layer.maxtext))
        target = _target(split(assignment)[0], layer)
        if target in whole or any(_overlap(new, old) for new in found for old in changes):
            problems.append(Problem("override-twice", COMMAND_LINE, ".".join(target), "given twice: give it once"))
        removed = [keys for keys, value in found.items() if value is REMOVED]
        message = "write !remove into the file yourself"
        problems.extend(Problem("override-value", COMMAND_LINE, ".".join(keys[1:]), message) for keys in removed)
        changes |= found
        whole.add(target)
    if problems:
        raise RefusedError(problems)
    return changes


def _leaves(keys: tuple[str, ...], nodes: Mapping[str, Node]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the keys and value of everything that is no mapping, or an empty one."""
    for key, node in nodes.items():
        if isinstance(node.value, dict) and node.value:
            yield from _leaves((*keys, key), node.value)
        else:
            yield (*keys, key), node.value


def _target(key: str, layer: Layer) -> tuple[str, ...]:
    """Return the section and the keys that the KEY of one assignment means."""
    section, nodes = ("deploy", layer.deploy) if layer.deploy else ("maxtext", layer.maxtext)
    (name,) = nodes
    rest = key.removeprefix(f"{section}.").removeprefix(name).removeprefix(".")
    return (section, name, rest) if rest else (section, name)


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def _snapshot(repository: Repository, model: str) -> Snapshot:
    """Return the schema that tells MaxText's keys from deploy's: the model's own where its presets name one."""
    configurator = Configurator(repository)
    problems: list[Problem] = []
    layer = repository.preset("model", f"presets/{model}/model.yml", problems)
    version = layer.deploy.get("MAXTEXT_VERSION")
    if version and isinstance(version.value, str):
        found = configurator.schemas.snapshot(model, version.value, version.at, problems)
        if found:
            return found
    return load(versions()[-1])


def _check(repository: Repository, files: Mapping[Path, bytes]) -> None:
    """Refuse what level 1 refuses; what only a launch needs is printed as a reminder."""
    problems: list[Problem] = []
    open_points: list[Problem] = []
    rules = policy.load(repository.root, problems)
    configurator = Configurator(repository)
    for path, content in files.items():
        experiment = repository.parse_experiment(path, content, problems)
        configuration = None if errors(problems) else configurator.configure(experiment, problems)
        if configuration:
            judge(configuration, rules, problems, to_launch=False)
            open_points += [replace(problem, severity=Severity.WARNING) for problem in needed(configuration)]
    if errors(problems):
        raise RefusedError(dict.fromkeys(problems))
    show([*problems, *open_points])
