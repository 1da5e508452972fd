"""`renderer legacy`: old launchers are recorded, and experiments proven equal to the recordings."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.commands.options import format_option
from renderer.layers import Repository
from renderer.legacy import accept
from renderer.legacy.check import Outcome, check
from renderer.legacy.difference import Difference
from renderer.legacy.pairs import FOLDER, RECONSTRUCTION
from renderer.legacy.record import Options
from renderer.problem import counted, visible


@click.group("legacy")
def command() -> None:
    """Prove experiments equal to the launchers they replace."""


@command.command("check")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@format_option("text", "json")
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
    click.echo(f"experiments equal to their recordings: {len(outcomes) - wrong} of {len(outcomes)}", err=form == "json")
    return PROBLEMS if wrong else OK


def _lines(outcome: Outcome, *, verbose: bool) -> Iterator[str]:
    verdict = "equal" if outcome.equal else "NOT EQUAL"
    what = f"{counted(outcome.compared, 'value')} compared, {len(outcome.waived)} waived"
    if outcome.pair.recording.startswith(RECONSTRUCTION):
        what += "; a reconstruction: it proves the checker, not the equivalence"
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
        why = f"until {waiver.expires}: {waiver.reason}"
        yield f"    waived as {waiver.kind}: {found.path}: recorded {recorded}, ours {mine} ({why})"


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


@command.command("record")
@click.argument("launcher", type=click.Path(exists=True, path_type=Path), metavar="LAUNCHER|FOLDER")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENT...]")
@click.option(
    "--checkout", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where it expects to be started."
)
@click.option(
    "--set", "variables", metavar="NAME=VALUE", multiple=True, help="A variable of its environment; else it has none."
)
@click.option("--tool", "tools", metavar="NAME", multiple=True, help="A real tool it needs, that reaches nothing.")
@click.option("--stand-in", "stand_ins", metavar="NAME", multiple=True, help="A command to note instead of running it.")
@click.option(
    "--time-limit", type=float, default=30, show_default=True, metavar="SECONDS", help="For each of its runs."
)
@click.option(
    "--maxtext-version", default="", metavar="VERSION", help="The MaxText it starts: a snapshot or a pin of one."
)
@click.option(
    "--pod-checkout", default="/root/maxtext", show_default=True, metavar="PATH", help="The checkout in the pod."
)
@click.option(
    "--pod-file", "pod_files", metavar="PATH", multiple=True, help="A file of the image that the pod's text looks for."
)
@click.option(
    "--match",
    "pattern",
    default="*.sh",
    show_default=True,
    metavar="GLOB",
    help="Which files of a FOLDER are launchers.",
)
@click.option("--expect", default=1, show_default=True, metavar="N", help="How many launchers a FOLDER holds at least.")
@click.option("--accept", "allowed", metavar="CODE", multiple=True, help="A finding of the examination to keep.")
@click.option(
    "--to", type=click.Path(path_type=Path), help=f"Where the snapshots go; {FOLDER}/recordings unless given."
)
@click.option("--pair", metavar="EXPERIMENT", help="Make it the recording this experiment is compared with.")
@click.pass_obj
def record_command(
    app: App,
    launcher: Path,
    arguments: tuple[str, ...],
    checkout: Path | None,
    variables: tuple[str, ...],
    tools: tuple[str, ...],
    stand_ins: tuple[str, ...],
    time_limit: float,
    maxtext_version: str,
    pod_checkout: str,
    pod_files: tuple[str, ...],
    pattern: str,
    expect: int,
    allowed: tuple[str, ...],
    to: Path | None,
    pair: str | None,
) -> int:
    """Run a LAUNCHER, or those of a FOLDER, where nothing can be launched, and keep what they would do.

    Each runs twice, with stand-ins for kubectl, xpk and the like; the snapshots must agree, and are examined before
    they are written.
    """
    repository, folder = Repository(app.root), to or app.root / FOLDER / "recordings"
    found = accept.launchers(launcher, pattern, expect)
    if pair:
        _refuse_pair(len(found), folder, app.root)
    options = Options(
        checkout=checkout or (launcher.parent if launcher.is_file() else launcher),
        arguments=arguments,
        variables=dict(_variable(text) for text in variables),
        tools=tools,
        stand_ins=stand_ins,
        seconds=time_limit,
        maxtext_version=maxtext_version,
        pod_checkout=pod_checkout,
        pod_files=pod_files,
    )
    made = [(path, accept.accepted(path, options, repository, allowed)) for path in found]
    for path, one in made:
        written = accept.write(one, path, folder)
        kept = {"command": one.data["commands"], "object": one.data["objects"], "word": one.data["pod"]["trainer"]}
        what = ", ".join(counted(len(found_), noun) for noun, found_ in kept.items())
        click.echo(f"{written}: {what} of the trainer")
        if pair:
            accept.pair(app.root, pair, written.resolve().relative_to((app.root / FOLDER).resolve()).as_posix())
    return OK


def _refuse_pair(count: int, folder: Path, root: Path) -> None:
    """Refuse, before anything is recorded, what would leave a snapshot and no pair."""
    if count > 1:
        raise click.UsageError("--pair takes one launcher: an experiment has one recording")
    if not folder.resolve().is_relative_to((root / FOLDER).resolve()):
        raise click.UsageError(f"--pair needs the snapshot in {FOLDER}/: leave --to out")


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise click.BadParameter(f"{text} is not NAME=VALUE", param_hint="--set")
    return name, value
