"""`renderer validate`: every problem, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from renderer import validation
from renderer.cli import OK, PROBLEMS, App
from renderer.commands.options import find, say, say_json
from renderer.layers import Repository
from renderer.problem import Problem, RefusedError, errors

LEVEL_2 = "MaxText's rules between keys are judged when it starts"


@click.command("validate")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="text (default) or json.")
@click.pass_obj
def command(app: App, experiments: tuple[str, ...], form: str) -> int:
    """Check EXPERIMENTs; without any all of them, the presets, policy.yml and clusters.yml.

    docs/checks.md lists every code. Warnings do not fail.
    """
    problems = _problems(Repository(app.root), experiments)
    if form == "json":
        say_json([as_data(problem.masked()) for problem in problems])
    else:
        _print(problems)
    return PROBLEMS if errors(problems) else OK


def _problems(repository: Repository, experiments: tuple[str, ...]) -> list[Problem]:
    if not experiments:
        return validation.of_everything(repository)
    try:
        return validation.of_experiments(repository, find(repository, experiments))
    except RefusedError as error:  # an unknown name is a problem like the others, in JSON too
        return list(error.problems)


def as_data(problem: Problem) -> dict[str, Any]:
    """Return a problem as the JSON that machines read; line and column are 0 for a whole file."""
    return {
        "code": problem.code,
        "severity": problem.severity.value,
        "file": problem.location.file,
        "line": problem.location.line,
        "column": problem.location.column,
        "path": problem.path,
        "message": problem.message,
        "hint": problem.hint,
    }


def _print(problems: Iterable[Problem]) -> None:
    problems = list(problems)
    for problem in problems:
        say(*str(problem).split("\n"))
    found = len(errors(problems))
    say(f"{_count(found, 'error')}, {_count(len(problems) - found, 'warning')} ({LEVEL_2})")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
