"""`renderer render`: experiments become rendered/."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from renderer import rendered_tree
from renderer.cli import OK, PROBLEMS, App
from renderer.commands.options import find, show
from renderer.layers import ENVIRONMENTS, Repository
from renderer.mesh import effective
from renderer.pipeline import Batch, Result, figures, render_paths
from renderer.rendered_tree import Changes

MAX_ROWS = 200
"""A longer table is cut: nobody reads it, and laying it out would take longer than rendering."""


@click.command("render")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--check", is_flag=True, help="Write nothing; fail if rendered/ is not what the layers render to.")
@click.pass_obj
def command(app: App, experiments: tuple[str, ...], check: bool) -> int:
    """Render EXPERIMENTs (all when none is named) into rendered/.

    Every problem of every experiment is reported, and nothing is written unless there is none.
    """
    repository = Repository(app.root)
    batch = _render(repository, experiments)
    files = rendered_tree.desired(result.rendered for result in batch.results)
    folders = _folders(batch) if experiments else None
    show(batch.problems)
    if check:
        problems = list(rendered_tree.inspect(repository.root, files, folders))
        show(problems)
        return _verdict(batch, len(problems))
    changes = rendered_tree.plan(repository.root, files, folders)
    states = _states(repository.root, batch, changes)
    rendered_tree.commit(repository.root, changes)
    if not experiments:
        _table(batch, states)
    _summary(changes)
    return OK


def _render(repository: Repository, experiments: tuple[str, ...]) -> Batch:
    if experiments:
        return render_paths(repository, find(repository, experiments))
    paths, strays = repository.experiment_paths()
    console = Console(stderr=True)
    quick = len(paths) < 100 or not console.is_terminal
    return render_paths(repository, track(paths, "rendering", console=console, transient=True, disable=quick), strays)


def _folders(batch: Batch) -> list[str]:
    """Return the folders that the named experiments own: in their environment, and in the one they may have left."""
    folders = []
    for result in batch.results:
        run, stem = result.rendered.run, result.configuration.name
        folders += [f"{rendered_tree.FOLDER}/{environment}/{run.model}/{stem}" for environment in ENVIRONMENTS]
    return folders


def _verdict(batch: Batch, problems: int) -> int:
    if problems:
        click.echo(f"{problems} files under rendered/ are not what the layers render to", err=True)
        return PROBLEMS
    click.echo(f"{len(batch.results)} experiments are rendered and up to date")
    return OK


def _states(root: Path, batch: Batch, changes: Changes) -> dict[str, str]:
    """Return new, changed or unchanged by folder, before anything is written."""
    written = {path.rpartition("/")[0] for path in changes.write}
    states = {}
    for result in batch.results:
        folder = result.rendered.folder
        old = "changed" if folder in written else "unchanged"
        states[folder] = old if (root / folder / "jobset.yml").is_file() else "new"
    return states


def _summary(changes: Changes) -> None:
    if changes:
        click.echo(f"{len(changes.write)} files written, {len(changes.delete)} deleted")
    else:
        click.echo("nothing to write: rendered/ is up to date")


def _table(batch: Batch, states: dict[str, str]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("experiment", "chips", "topology", "mesh", "global batch", "steps", "run", "state"):
        table.add_column(
            column, justify="right" if column in {"chips", "global batch", "steps"} else "left", no_wrap=True
        )
    shown = batch.results if len(batch.results) <= MAX_ROWS else _changed(batch.results, states)
    for result in shown:
        run, numbers = result.rendered.run, figures(result.configuration)
        steps = effective(result.configuration, "steps")
        row = (
            numbers.slice.topology,
            numbers.mesh,
            numbers.global_batch,
            steps,
            result.rendered.names.object,
        )
        table.add_row(
            f"{run.model}/{result.configuration.name}",
            *map(str, (run.chips, *row)),
            states[result.rendered.folder],
        )
    console = Console()
    console = console if console.is_terminal else Console(width=200)
    console.print(table)
    if len(shown) < len(batch.results):
        console.print(f"and {len(batch.results) - len(shown)} more")


def _changed(results: tuple[Result, ...], states: dict[str, str]) -> tuple[Result, ...]:
    """Return the first rows of a long table: those that changed come before the others."""
    return tuple(sorted(results, key=lambda result: states[result.rendered.folder] == "unchanged"))[:MAX_ROWS]
