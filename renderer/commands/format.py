"""`renderer format`: the stable form of content files."""

from __future__ import annotations

from pathlib import Path

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.layers import Repository
from renderer.location import Location
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
    changes: dict[Path, bytes] = {}
    problems: list[Problem] = []
    for path in files or _content(repository.root):
        try:
            old = path.read_bytes()
            new = formatted(old, repository.label(path))
        except RefusedError as error:
            problems.extend(error.problems)
        except OSError as error:
            problems.append(
                Problem(
                    "file-unreadable",
                    Location(repository.label(path)),
                    "",
                    f"cannot be read: {error.strerror}",
                )
            )
        else:
            if new != old:
                changes[path] = new
    if problems:
        raise RefusedError(problems)
    for path, data in changes.items():
        click.echo(
            f"{repository.label(path)}: {'is not in its stable form; run renderer format' if check else 'formatted'}",
            err=check,
        )
        if not check:
            path.write_bytes(data)
    return PROBLEMS if check and changes else OK


def _content(root: Path) -> list[Path]:
    return sorted(path for folder in ("experiments", "presets", "datasets") for path in (root / folder).rglob("*.yml"))
