"""`renderer format`: the stable form of content files."""

from __future__ import annotations

from pathlib import Path

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.commands.options import say
from renderer.content_files import outside, read_bytes, real, unwritable
from renderer.layers import Repository
from renderer.problem import Problem, RefusedError
from renderer.yaml_edit import formatted


@click.command("format")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is not in its stable form.")
@click.pass_obj
def command(app: App, files: tuple[Path, ...], check: bool) -> int:
    """Bring FILEs (all of experiments/, presets/ and datasets/ when none is named) into their stable form.

    Comments and values stay; formatting twice changes nothing.
    """
    repository = Repository(app.root)
    problems: list[Problem] = []
    changes: dict[Path, bytes] = {}
    for path in dict.fromkeys(files or _content(repository.root)):
        changes |= _change(repository, path, problems)
    if not check:
        found = (unwritable(repository.root, path, repository.label(path)) for path in changes)
        problems.extend(problem for problem in found if problem)
    if problems:
        raise RefusedError(dict.fromkeys(problems))
    for path, new in changes.items():
        say(
            f"{repository.label(path)}: {'is not in its stable form; run renderer format' if check else 'formatted'}",
            err=check,
        )
        if not check:
            path.write_bytes(new)
    return PROBLEMS if check and changes else OK


def _change(repository: Repository, path: Path, problems: list[Problem]) -> dict[Path, bytes]:
    """Return the stable form of the file that `path` leads to, nothing where it has it already or is refused."""
    name, target = repository.label(path), real(path)
    if not target.is_relative_to(repository.root):
        problems.append(outside(name))
        return {}
    old = read_bytes(target, name, problems)
    if old is None:
        return {}
    try:
        new = formatted(old, name)
    except RefusedError as error:
        problems.extend(error.problems)
        return {}
    return {} if new == old else {target: new}


def _content(root: Path) -> list[Path]:
    return sorted(path for folder in ("experiments", "presets", "datasets") for path in (root / folder).rglob("*.yml"))
