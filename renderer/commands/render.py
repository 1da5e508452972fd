"""`renderer render`: experiments become rendered/."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from renderer import integrity, rendered_tree, target
from renderer.affected import affected, here
from renderer.cli import OK, PROBLEMS, App
from renderer.commands.options import find, say, show
from renderer.layers import ENVIRONMENTS, Repository, rendered_folder, rendered_from
from renderer.location import COMMAND_LINE
from renderer.outputs import POD_SCRIPTS
from renderer.pipeline import Batch, render_paths
from renderer.problem import counted, refuse
from renderer.rendered_tree import Changes
from renderer.run_rows import fresh, frozen
from renderer.target import Target


@click.command("render")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--check", is_flag=True, help="Write nothing; fail if rendered/ is not what it should be.")
@click.option("--digests", is_flag=True, help="Like --check, but only recompute the digests that the runs carry.")
@click.option(
    "--changed", is_flag=True, help="The arguments are changed files: render what they affect. Exits 1 once it wrote."
)
@click.option("--refresh", is_flag=True, help="Render the named EXPERIMENTs anew, though their runs are frozen.")
@click.option("--base", metavar="REF", help="The target branch; else the pull request's, else origin's default branch.")
@click.pass_obj
def command(
    app: App, experiments: tuple[str, ...], check: bool, digests: bool, changed: bool, refresh: bool, base: str | None
) -> int:
    """Render EXPERIMENTs (all when none is named) into rendered/.

    Every problem of every experiment is reported, and nothing is written unless there is none. A run that the target
    branch has stays as it was reviewed until its experiment's content changes, whatever presets do (it is frozen).
    """
    repository = Repository(app.root)
    if sum((check and not digests, changed, refresh, digests)) > 1:
        raise click.UsageError("--check, --digests, --changed and --refresh exclude each other")
    if digests:
        return _digests(repository, experiments)
    if changed:
        return _changed(repository, experiments, base)
    if refresh and not experiments:
        raise click.UsageError("--refresh needs the names of the experiments to render anew")
    paths, strays = (find(repository, experiments), []) if experiments else repository.experiment_paths()
    chosen = _target(repository, base, paths)
    batch = render_paths(
        repository, paths if experiments else _table().progress(paths), strays, None if refresh else chosen
    )
    show(batch.problems)
    folders = _folders(batch) if experiments else None
    if check:
        return _check(repository.root, batch, chosen, folders)
    changes = rendered_tree.plan(repository.root, _files(batch, chosen), folders)
    states = _states(repository.root, batch, changes)
    rendered_tree.commit(repository.root, changes)
    if not experiments:
        _table().show([*map(fresh, batch.results), *map(frozen, batch.frozen)], states)
    _frozen(batch, chosen)
    say(_written(changes) if changes else "nothing to write: rendered/ is up to date")
    return OK


def _table() -> Any:
    """Return renderer.commands.run_table, for who renders everything."""
    # Not at the top: rich takes 60 ms to load, and a commit hook, which renders a run or two, has 250 in all.
    return importlib.import_module("renderer.commands.run_table")


def _changed(repository: Repository, names: Sequence[str], base: str | None) -> int:
    """Render what changed files affect, for a commit: it fails until what was written is part of it.

    pre-commit itself notices changes of files that git knows only, and a new run's are unknown.
    """
    found = affected(repository, names)
    chosen = _target(repository, base, found.experiments)
    batch = render_paths(repository, found.experiments, found.problems, chosen)
    show(batch.problems)
    folders = [*_folders(batch), *found.gone]
    changes = rendered_tree.plan(repository.root, _files(batch, chosen), folders)
    rendered_tree.commit(repository.root, changes)
    if changes:
        say(f"{_written(changes)}: git add -A rendered, and commit again")
        return PROBLEMS
    pods = [POD_SCRIPTS] if folders else []
    left = here().untracked(*(repository.root / folder for folder in (*folders, *pods)))
    say(*(f"{repository.label(path)}: is not in the commit: git add -A rendered" for path in left))
    return PROBLEMS if left else OK


def _target(repository: Repository, given: str | None, paths: Iterable[Path]) -> Target:
    found = target.find(repository, paths, given)
    if not found.known and (given is not None or os.environ.get("GITHUB_BASE_REF")):
        refuse("render-base", COMMAND_LINE, found.base.reason, path="--base")
    return found


def _files(batch: Batch, chosen: Target) -> dict[str, bytes]:
    files = rendered_tree.desired(result.rendered for result in batch.results)
    return files | rendered_tree.kept(batch.frozen, chosen)


def _check(root: Path, batch: Batch, chosen: Target, folders: Sequence[str] | None) -> int:
    kept = {run.folder for run in batch.frozen}
    problems = list(rendered_tree.inspect(root, _files(batch, chosen), folders, kept, chosen))
    show(problems)
    if problems:
        say(f"{_are(len(problems), 'file')} not what renderer render writes", err=True)
        return PROBLEMS
    _frozen(batch, chosen)
    say(f"{_are(len(batch.results) + len(batch.frozen), 'experiment')} rendered and up to date")
    return OK


def _digests(repository: Repository, experiments: tuple[str, ...]) -> int:
    if experiments:
        raise click.UsageError("--digests looks at every run: name no experiments")
    problems = integrity.check(repository)
    show(problems)
    if problems:
        say(f"{_are(len(problems), 'digest')} wrong", err=True)
        return PROBLEMS
    say("every digest is that of its files")
    return OK


def _folders(batch: Batch) -> list[str]:
    """Return the folders that the named experiments own: in their environment, and in the one they may have left."""
    owned = [result.rendered.folder for result in batch.results] + [run.folder for run in batch.frozen]
    units = [rendered_from(folder)[1:] for folder in owned]
    return [rendered_folder(environment, *unit) for unit in units for environment in ENVIRONMENTS]


def _frozen(batch: Batch, chosen: Target) -> None:
    """Say in one line how many runs presets do not reach, and why."""
    count = len(batch.frozen)
    if count and chosen.known:
        its = "its" if count == 1 else "their"
        say(f"{count} frozen: on {chosen.base.name}, and {its} content did not change", err=True)
    elif count:
        they_are = "it is" if count == 1 else "they are"
        say(f"{count} frozen as {they_are} on disk: the target branch is not known ({chosen.base.reason})", err=True)


def _states(root: Path, batch: Batch, changes: Changes) -> dict[str, str]:
    """Return new, changed or unchanged by folder, before anything is written."""
    written = {path.rpartition("/")[0] for path in changes.write}
    states = {}
    for result in batch.results:
        folder = result.rendered.folder
        old = "changed" if folder in written else "unchanged"
        states[folder] = old if (root / folder / "jobset.yml").is_file() else "new"
    for run in batch.frozen:
        states[run.folder] = "restored" if run.folder in written else "frozen"
    return states


def _written(changes: Changes) -> str:
    return f"{counted(len(changes.write), 'file')} written, {len(changes.delete)} deleted"


def _are(number: int, what: str) -> str:
    return f"{counted(number, what)} {'is' if number == 1 else 'are'}"
