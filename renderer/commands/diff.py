"""`renderer diff`: two experiments, or one and its rendered state, by value."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click

from renderer import compare, policy
from renderer.cli import OK, App
from renderer.commands.manifests import rendered_files
from renderer.commands.options import configured
from renderer.layers import Repository
from renderer.location import Location
from renderer.pipeline import judge
from renderer.problem import Problem, RefusedError, errors, refuse


@click.command("diff")
@click.argument("old")
@click.argument("new", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="text or json.")
@click.pass_obj
def command(app: App, old: str, new: str | None, form: str) -> int:
    """Compare experiment OLD with NEW; with one argument, its files under rendered/ with what it renders to now.

    One line a value: path: old → new. Names and digests that follow from the content are left out.
    """
    before = _render(app, old) if new else _committed(app, old)
    rows = list(compare.differences(before, _render(app, new or old)))
    if form == "json":
        keys = ("path", "old", "new")
        values = [(path, *(None if side is compare.ABSENT else side for side in sides)) for path, *sides in rows]
        click.echo(json.dumps([dict(zip(keys, row, strict=True)) for row in values], indent=2, ensure_ascii=False))
    else:
        for path, was, now in rows:
            click.echo(f"{path}: {compare.text(was)} → {compare.text(now)}")
        click.echo(f"{len(rows)} values differ" if rows else "no difference", err=True)
    return OK


def _render(app: App, name: str) -> Mapping[str, object]:
    problems: list[Problem] = []
    rules = policy.load(app.root, problems)
    result = judge(configured(app.root, name), rules, problems, to_launch=False)
    if result is None or errors(problems):
        raise RefusedError(problems)
    return compare.flatten(result.rendered.files)


def _committed(app: App, name: str) -> Mapping[str, object]:
    try:
        return compare.flatten(rendered_files(Repository(app.root), name))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return refuse("rendered-edited", Location(name), f"its rendered files are no run's: {error}")
