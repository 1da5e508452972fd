"""`renderer validate`: every problem, as text or JSON."""

from __future__ import annotations

from typing import Any

import click

from renderer import validation
from renderer.affected import affected
from renderer.cli import OK, PROBLEMS, App
from renderer.commands.options import find, format_option, say, say_json
from renderer.layers import Repository
from renderer.problem import Problem, RefusedError, counted, errors
from renderer.validation import Judged

LEVEL_2 = "MaxText's rules between keys are judged when it starts"


@click.command("validate")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--changed", is_flag=True, help="The arguments are changed files of any kind: check what they affect.")
@format_option("text", "json")
@click.pass_obj
def command(app: App, experiments: tuple[str, ...], changed: bool, form: str) -> int:
    """Check EXPERIMENTs; without any all of them, the presets, policy.yml and clusters.yml.

    Runs that are frozen (see render) are not judged again.

    docs/checks.md lists every code. Warnings do not fail.
    """
    repository = Repository(app.root)
    judged = _of_changed(repository, experiments) if changed else _judged(repository, experiments)
    if form == "json":
        say_json([as_data(problem.masked()) for problem in judged.problems])
    else:
        _print(judged)
    return PROBLEMS if errors(judged.problems) else OK


def _judged(repository: Repository, experiments: tuple[str, ...]) -> Judged:
    if not experiments:
        return validation.of_everything(repository)
    try:
        return validation.of_experiments(repository, find(repository, experiments))
    except RefusedError as error:  # an unknown name is a problem like the others, in JSON too
        return Judged(list(error.problems))


def _of_changed(repository: Repository, files: tuple[str, ...]) -> Judged:
    """Return the problems of what `files` affect: experiments, strays, and the presets if any changed."""
    found = affected(repository, files)
    judged = validation.of_experiments(repository, found.experiments, found.problems)
    shared = validation.of_shared(repository) if found.shared else []
    return Judged(list(dict.fromkeys([*judged.problems, *shared])), judged.frozen)


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


def _print(judged: Judged) -> None:
    for problem in judged.problems:
        say(*str(problem).split("\n"))
    if judged.frozen:
        its = "its" if judged.frozen == 1 else "their"
        say(f"{counted(judged.frozen, 'run')} frozen: judged again when {its} content changes")
    found = len(errors(judged.problems))
    say(f"{counted(found, 'error')}, {counted(len(judged.problems) - found, 'warning')} ({LEVEL_2})")
