"""`renderer schema`: MaxText schema snapshots."""

from __future__ import annotations

from pathlib import Path

import click

from renderer.cli import OK
from renderer.commands.options import say
from renderer.location import Location
from renderer.problem import counted, refuse
from renderer.schema import versions
from renderer.schema_update import InterpreterError, snapshot_from, write


@click.group("schema", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int:
    """Snapshots of what MaxText versions accept. Without a command: list them, oldest first."""
    if ctx.invoked_subcommand is None:
        click.echo("\n".join(versions()))
    return OK


@command.command("update")
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    metavar="INTERPRETER",
    help="A Python that has MaxText.",
)
@click.option("--name", metavar="VERSION", help="The snapshot's name; the version of the package if not given.")
def update(python: Path, name: str | None) -> int:
    """Write the snapshot of INTERPRETER's MaxText: its keys, types, enums, limits, defaults and model files."""
    try:
        data = snapshot_from(python)
        path = write(data, name or data["version"])
    except (InterpreterError, ValueError) as error:
        refuse("schema-update", Location(str(python)), str(error))
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    say(f"wrote {shown}: {counted(len(data['keys']), 'key')}, {counted(len(data['models']), 'model')}")
    return OK
