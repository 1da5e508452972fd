"""`renderer import`: a recording becomes an experiment, with the comparison as proof."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.layers import ENVIRONMENTS, Repository
from renderer.legacy import importer
from renderer.legacy.importer import Wishes
from renderer.problem import counted, visible


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", default="", metavar="NAME", help="The experiment's name; the file's unless given.")
@click.option(
    "--env", "environment", default="", type=click.Choice(["", *ENVIRONMENTS]), metavar="ENV", help="prod or test."
)
@click.option("--owner", default="imported", metavar="TEAM", help="Who answers for the run.")
@click.option(
    "--maxtext-version",
    "version",
    default="",
    metavar="VERSION",
    help="The MaxText it starts, where the file names none we know.",
)
@click.option("--topology", default="", metavar="TOPOLOGY", help="Such as 4x4x4, where the file names none.")
@click.option(
    "--force", is_flag=True, help="Write it although it differs, with the differences as waivers for 90 days."
)
@click.pass_obj
def command(
    app: App, file: Path, name: str, environment: str, owner: str, version: str, topology: str, *, force: bool
) -> int:
    """Turn FILE (a recorded launcher or recipe, an argv, or a JobSet) into the shortest experiment over the presets.

    Unless the experiment equals the recording, nothing is written.
    """
    wishes = Wishes(name, environment, owner, version, topology, force)
    made = importer.plan(file, Repository(app.root), wishes, datetime.datetime.now(tz=datetime.UTC).date())
    for note in made.notes:
        click.echo(visible(f"note: {note}"), err=True)
    for found in made.rest:
        recorded, mine = found.texts
        click.echo(visible(f"    {found.path}: recorded {recorded}, ours {mine}"))
    outcome = made.outcome
    what = f"{counted(outcome.compared, 'value')} compared, {len(outcome.waived)} waived"
    if not outcome.equal:
        click.echo(
            f"{made.experiment}: NOT EQUAL ({what}): nothing is written; --force makes waivers of the differences"
        )
        return PROBLEMS
    importer.write(app.root, made)
    for path in made.files:
        click.echo(f"wrote {path}")
    click.echo(f"{made.experiment}: equal to {outcome.pair.recording} ({what})")
    return OK
