"""What commands share: selectors, finding experiments, and printing without secrets or control characters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from renderer.configure import Configuration, Configurator
from renderer.git import Git
from renderer.layers import Repository
from renderer.location import COMMAND_LINE
from renderer.problem import Problem, RefusedError, counted, errors, refuse, shown
from renderer.scalars import command_line_value
from renderer.secrets import Secret, mask
from renderer.yaml_io import Node

_SELECTORS: tuple[tuple[str, str, str], ...] = (
    ("model", "MODEL", "A folder of presets/."),
    ("chips", "N", "TPU chips: a folder of the model's topology/."),
    ("context", "CONTEXT", "Context length, such as 8k."),
    ("env", "ENV", "prod or test."),
    ("owner", "TEAM", "Who answers for the run."),
    ("image", "IMAGE", "A tag, a digest, or a full reference."),
    ("branch", "BRANCH", "Source mode: the branch to clone."),
    ("name", "NAME", "The run's name."),
)


def selectors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the RFC's selectors as options; they arrive as one keyword each, None where not given."""
    for name, metavar, help_text in reversed(_SELECTORS):
        function = click.option(f"--{name}", metavar=metavar, help=help_text)(function)
    return function


def format_option(*choices: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option that says how to print: one of `choices`, the first where not given; arrives as `form`."""
    return click.option(
        "--format", "form", type=click.Choice(choices), default=choices[0], show_default=True, help="How to print it."
    )


def selector_nodes(given: dict[str, str | None]) -> dict[str, Node]:
    """Return the selectors that were given as nodes of `launch:`. Raises RefusedError for one that is not UTF-8."""
    nodes = {}
    for name, text in given.items():
        if text is not None:
            key = "environment" if name == "env" else name
            if not _is_utf8(text):
                refuse("override-value", COMMAND_LINE, "is not UTF-8 text", path=f"launch.{key}")
            value = command_line_value(text) if key == "chips" else text
            nodes[key] = Node(value, COMMAND_LINE, None, text)
    return nodes


def checkout_branch() -> str | None:
    """Return the branch of the current folder if it is a MaxText checkout, as the RFC fills an omitted --branch."""
    git = Git(Path.cwd())
    top = git.top()
    if top is None or not any((top / path).is_file() for path in _MAXTEXT_MARKS):
        return None
    branch = git.branch()
    return branch if branch and _is_utf8(branch) else None


_MAXTEXT_MARKS = ("src/maxtext/configs/base.yml", "src/MaxText/configs/base.yml", "MaxText/configs/base.yml")


def _is_utf8(text: str) -> bool:
    """Return whether `text` holds no byte that Python could not decode."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def find(repository: Repository, names: Iterable[str]) -> list[Path]:
    """Return the experiments that `names` name, each once. Raises RefusedError for all unknown ones."""
    found: dict[Path, None] = {}
    problems: list[Problem] = []
    for name in names:
        try:
            found[repository.find_experiment(name)] = None
        except RefusedError as error:
            problems.extend(error.problems)
    if problems:
        raise RefusedError(problems)
    return list(found)


def show(problems: Iterable[Problem]) -> None:
    """Print problems to the error stream."""
    for problem in problems:
        say(*str(problem).split("\n"), err=True)


def say(*lines: str, err: bool = False, known: tuple[Secret, ...] = ()) -> None:
    """Print lines with credentials masked and control characters, line breaks too, made visible.

    `known` are credentials that only their key's name gives away.
    """
    if lines:
        click.echo("\n".join(shown(line, known) for line in lines), err=err)


def say_uncommitted(git: Git) -> None:
    """Tell which files are on disk otherwise than in HEAD, to someone who expects them to count."""
    found = git.uncommitted("experiments", "rendered", "presets", "datasets", "pod")
    if found:
        more = f" and {counted(len(found) - 3, 'more file')}" if len(found) > 3 else ""
        say(f"not committed, so it does not count here: {', '.join(found[:3])}{more}", err=True)


def say_json(data: Any, *, known: tuple[Secret, ...] = ()) -> None:
    """Print data as JSON, like `say`."""
    text = json.dumps(_masked(data, known), indent=2, ensure_ascii=False)
    click.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def _masked(data: Any, known: tuple[Secret, ...]) -> Any:
    if isinstance(data, dict):
        return {_masked(key, known): _masked(value, known) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_masked(item, known) for item in data]
    return mask(data, known) if isinstance(data, str) else data


def configured(root: Path, name: str) -> Configuration:
    """Return the configuration of one experiment, which may lie outside the root. Raises RefusedError."""
    repository = Repository(root)
    problems: list[Problem] = []
    configurator = Configurator(repository)
    experiment = repository.experiment(repository.find_experiment(name), problems)
    configuration = None if problems else configurator.configure(experiment, problems, inside=False)
    if configuration is None or errors(problems):
        raise RefusedError(problems)
    return configuration
