"""`renderer report`: what merging a branch does, for its reviewers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from renderer.cli import OK, PROBLEMS, App
from renderer.commands.options import format_option, say, say_uncommitted
from renderer.layers import is_file
from renderer.location import COMMAND_LINE, Location
from renderer.problem import counted, refuse
from renderer.report import codec, ledger, markdown, page, side_by_side
from renderer.report.build import build
from renderer.report.data import Report
from renderer.report.explain import explained
from renderer.report.reading import Reading, read
from renderer.report.side_by_side import File
from renderer.report.trees import Log


@click.command("report")
@click.option("--base", metavar="REF", help="The target branch; by default the pull request's, else origin's default.")
@click.option("--head", metavar="REF", default="HEAD", show_default=True, help="The branch to merge.")
@click.option("--ledger", "ledger_file", type=click.Path(path_type=Path), help="An exported ledger: what was launched.")
@click.option("--from-json", "json_file", type=click.Path(path_type=Path), help="Take the report from this JSON file.")
@format_option("md", "html", "json")
@click.option("--whole", default="", metavar="URL", help="Where the whole report is, for the last line of md.")
@click.option("--output", type=click.Path(path_type=Path), help="Write to this file.")
@click.pass_obj
def command(
    app: App,
    base: str | None,
    head: str,
    ledger_file: Path | None,
    json_file: Path | None,
    form: str,
    whole: str,
    output: Path | None,
) -> int:
    """Report what a merge launches and stops, and what changes, from the committed files of both sides.

    A file given as --from-json may come from anywhere: it is checked against schemas/report.schema.json. Exit code 1
    says that the merge would be refused a launch, for a reason that the branch can mend.
    """
    if json_file is not None:
        report, reading = _from_json(json_file), None
    else:
        reading, report = _from_git(app, base, head, ledger_file)
    if form == "json":
        text = codec.encode(report)
    elif form == "md":
        text = markdown.render(report, whole)
    else:
        text = page.render(report, _manifests(reading) if reading else ())
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", errors="backslashreplace")
    refused = 0 if json_file else report.totals.refused
    if refused:
        say(f"{counted(refused, 'run')} would be refused a launch: the report says why", err=True)
    return PROBLEMS if refused else OK


def _from_json(path: Path) -> Report:
    place = Location(path.name)
    if not is_file(path):
        refuse("report-file", place, "is no file")
    try:
        with path.open("rb") as file:
            return codec.decode(file.read(codec.MAX_BYTES + 1))
    except codec.UnreadableError as error:
        return refuse("report-file", place, str(error))


def _from_git(app: App, base: str | None, head: str, ledger_file: Path | None) -> tuple[Reading, Report]:
    git = Log(app.root)
    target = git.base(base)
    if target.commit is None:
        refuse("report-base", COMMAND_LINE, f"the target branch is not known: {target.reason}")
    commit = git.commit(head)
    if commit is None:
        refuse("report-head", COMMAND_LINE, f"{head} is not a commit here")
    if head == "HEAD":
        say_uncommitted(git)
    known = ledger.read(ledger_file) if ledger_file else None
    reading = read(git, target, commit, known, ledger_file.name if ledger_file else "")
    return reading, build(git, reading, target)


def _manifests(reading: Reading) -> Iterator[tuple[str, Iterator[File]]]:
    for action in reading.actions:
        old = reading.old.get(action.state.experiment)
        if explained(action, old):
            before = reading.base.files(old) if old else {}
            yield action.state.experiment, side_by_side.files(before, reading.merged.files(action.state))
