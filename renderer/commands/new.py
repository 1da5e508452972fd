"""`renderer new`: an experiment file, or one per value of a sweep."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import click

from renderer import policy
from renderer.checks.launch import needed
from renderer.cli import OK, App
from renderer.commands.options import checkout_branch, selector_nodes, selectors, show
from renderer.configure import Configurator
from renderer.layers import NAME, Repository
from renderer.location import COMMAND_LINE, Location
from renderer.overrides import parse, split, split_values
from renderer.pipeline import judge
from renderer.problem import Problem, RefusedError, Severity, errors, refuse
from renderer.scalars import Value
from renderer.schema import Snapshot, load, versions
from renderer.yaml_edit import edited
from renderer.yaml_io import REMOVED, plain

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
    base = _TEMPLATE.encode()
    if source:
        base = repository.find_experiment(source).read_bytes()
    elif not given["branch"] and not given["image"]:
        given["branch"] = checkout_branch()
    launch = {key: node.value for key, node in selector_nodes(given).items()}
    files: dict[Path, bytes] = {}
    for ending, assignments in _sweep(values):
        path = repository.root / "experiments" / model / f"{stem}{ending}.yml"
        if path.exists() or path in files:
            refuse("experiment-exists", Location(repository.label(path)), "exists already: choose another name")
        changes = _changes(repository, given, assignments)
        files[path] = edited(base, repository.label(path), {"launch": launch, **changes})
    _check(repository, files)
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        click.echo(f"wrote {repository.label(path)}")
    return OK


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
    return re.sub(r"[^A-Za-z0-9.]+", "", text.strip("\"'"))


def _changes(
    repository: Repository, given: Mapping[str, str | None], assignments: list[str]
) -> dict[str, dict[str, Value]]:
    problems: list[Problem] = []
    layer = parse(assignments, _snapshot(repository, str(given["model"])).keys, problems)
    if problems:
        raise RefusedError(problems)
    changes: dict[str, dict[str, Value]] = {"deploy": {}, "maxtext": {}}
    for section, nodes in (("deploy", layer.deploy), ("maxtext", layer.maxtext)):
        for key, node in nodes.items():
            if node.value is REMOVED:
                refuse("override-value", COMMAND_LINE, "write !remove into the file yourself", path=key)
            if isinstance(node.value, dict):
                changes[section] |= {f"{key}.{entry}": plain(child) for entry, child in node.value.items()}
            else:
                changes[section][key] = plain(node)
    return {section: found for section, found in changes.items() if found}


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
    for path, data in files.items():
        experiment = repository.parse_experiment(path, data, problems)
        configuration = None if errors(problems) else configurator.configure(experiment, problems)
        if configuration:
            judge(configuration, rules, problems, to_launch=False)
            open_points += [replace(problem, severity=Severity.WARNING) for problem in needed(configuration)]
    if errors(problems):
        raise RefusedError(dict.fromkeys(problems))
    show([*problems, *open_points])
