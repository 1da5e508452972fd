"""`renderer diff`: two experiments, or one and its rendered state, by value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import click

from renderer import compare, policy
from renderer.cli import OK, App
from renderer.commands.options import configured, format_option, say, say_json
from renderer.layers import Repository
from renderer.outputs import DAMAGED
from renderer.pipeline import judge
from renderer.problem import Problem, RefusedError, counted, errors
from renderer.rendered_run import damaged, rendered_run
from renderer.secrets import Secret, find


@click.command("diff")
@click.argument("old")
@click.argument("new", required=False)
@format_option("text", "json")
@click.pass_obj
def command(app: App, old: str, new: str | None, form: str) -> int:
    """Compare experiment OLD with NEW; with one argument, its files under rendered/ with what it renders to now.

    One line a value: path: old → new. Names and digests that follow from the content are left out.
    """
    before = _render(app, old) if new else _committed(app, old)
    rows = list(compare.differences(before, _render(app, new or old)))
    known = tuple(_credentials(rows))
    if form == "json":
        keys = ("path", "old", "new")
        values = [(path, *(None if side is compare.ABSENT else side for side in sides)) for path, *sides in rows]
        say_json([dict(zip(keys, row, strict=True)) for row in values], known=known)
    else:
        say(*(f"{path}: {compare.text(was)} → {compare.text(now)}" for path, was, now in rows), known=known)
        differ = "differs" if len(rows) == 1 else "differ"
        say(f"{counted(len(rows), 'value')} {differ}" if rows else "no difference", err=True)
    return OK


def _render(app: App, name: str) -> Mapping[str, object]:
    problems: list[Problem] = []
    rules = policy.load(app.root, problems)
    result = judge(configured(app.root, name), rules, problems, to_launch=False)
    if result is None or errors(problems):
        raise RefusedError(problems)
    return compare.flatten(result.rendered.files)


def _committed(app: App, name: str) -> Mapping[str, object]:
    run = rendered_run(Repository(app.root), name)
    try:
        return compare.flatten(run.files)
    except DAMAGED as error:
        damaged(run.folder, error)


def _credentials(rows: Iterable[tuple[str, object, object]]) -> Iterator[Secret]:
    """Yield the credentials among the values, also those that only their key's or variable's name gives away."""
    for path, *values in rows:
        for name in re.split(r"[][.]+", path.removesuffix(".value"))[-2:]:
            for value in values:
                yield from _in_value(name, value)


def _in_value(name: str, value: object) -> Iterator[Secret]:
    if isinstance(value, str):
        yield from find(name, value)
    elif isinstance(value, list):
        for item in value:
            yield from _in_value(name, item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _in_value(str(key), item)
