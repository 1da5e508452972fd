"""`renderer legacy`: old launchers are recorded, and experiments proven equal to the recordings."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.layers import Repository
from renderer.legacy.check import Outcome, check
from renderer.legacy.difference import Difference
from renderer.problem import visible


@click.group("legacy")
def command() -> None:
    """Prove experiments equal to the launchers they replace."""


@command.command("check")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the outcome.")
@click.option("--verbose", is_flag=True, help="List what is waived, too.")
@click.pass_obj
def check_command(app: App, experiments: tuple[str, ...], form: str, verbose: bool) -> int:
    """Compare EXPERIMENTs (all pairs of tests/legacy/checks.yml when none is named) with their recordings, by value.

    Fails for every difference that is not waived, and for waivers that are unused or expired.
    """
    outcomes = check(Repository(app.root), experiments, datetime.datetime.now(tz=datetime.UTC).date())
    if form == "json":
        click.echo(json.dumps([_data(outcome) for outcome in outcomes], indent=2))
    else:
        for outcome in outcomes:
            for line in _lines(outcome, verbose=verbose):
                click.echo(visible(line))
    wrong = sum(not outcome.equal for outcome in outcomes)
    click.echo(f"{len(outcomes) - wrong} of {len(outcomes)} experiments equal their recordings", err=form == "json")
    return PROBLEMS if wrong else OK


def _lines(outcome: Outcome, *, verbose: bool) -> Iterator[str]:
    verdict = "equal" if outcome.equal else "NOT EQUAL"
    what = f"{outcome.compared} values compared, {len(outcome.waived)} waived"
    yield f"{outcome.pair.experiment}: {verdict} to {outcome.pair.recording} ({what})"
    for found in outcome.differences:
        recorded, mine = found.texts
        yield f"    {found.path}: recorded {recorded}, ours {mine} ({outcome.origin[found.path]})"
    for waiver, path in outcome.unused:
        yield f"    waiver {waiver.name} ({waiver.at}): {path} waives nothing: delete it"
    for waiver in outcome.expired:
        yield f"    waiver {waiver.name} ({waiver.at}): expired on {waiver.expires}: {waiver.reason}"
    for found, waiver in outcome.waived if verbose else ():
        recorded, mine = found.texts
        yield f"    waived as {waiver.kind}: {found.path}: recorded {recorded}, ours {mine} (until {waiver.expires}: {waiver.reason})"


def _data(outcome: Outcome) -> dict[str, object]:
    return {
        "experiment": outcome.pair.experiment,
        "recording": outcome.pair.recording,
        "equal": outcome.equal,
        "compared": outcome.compared,
        "differences": [{**_difference(found), "origin": outcome.origin[found.path]} for found in outcome.differences],
        "waived": [
            {
                **_difference(found),
                "kind": waiver.kind,
                "waiver": waiver.name,
                "expires": str(waiver.expires),
                "reason": waiver.reason,
            }
            for found, waiver in outcome.waived
        ],
        "unused": [{"waiver": waiver.name, "path": path} for waiver, path in outcome.unused],
        "expired": [{"waiver": waiver.name, "expires": str(waiver.expires)} for waiver in outcome.expired],
    }


def _difference(found: Difference) -> dict[str, object]:
    recorded, mine = found.texts
    return {"path": found.path, "recorded": recorded, "ours": mine}
