"""`renderer explain`: where a key's value comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import NoReturn

import click

from renderer.checks import credentials
from renderer.cli import OK, App
from renderer.commands.options import configured, format_option, say, say_json
from renderer.configure import Configuration
from renderer.keys import CHECKS_KEYS, DEPLOY_KEYS, LAUNCH_KEYS
from renderer.location import Location
from renderer.origins import Assignment, assignments, known_keys, table_default, table_key
from renderer.problem import refuse
from renderer.scalars import write

_SECTIONS = ("launch", "deploy", "maxtext", "checks")


@click.command("explain")
@click.argument("experiment")
@click.argument("key")
@format_option("text", "json")
@click.pass_obj
def command(app: App, experiment: str, key: str, form: str) -> int:
    """Print KEY's winning value in EXPERIMENT and everything it replaced, one assignment a line.

    KEY is maxtext.<key>, deploy.<key>, launch.<key>, checks.<key>, or the bare key.
    """
    configuration = configured(app.root, experiment)
    section, name = _split(key)
    found = [*_assigned(configuration, section, name), *table_default(section, name)]
    if not found:
        _refuse(configuration, section, name, key)
    known = credentials(configuration)
    if form == "json":
        say_json([{**asdict(item), "place": item.place._asdict()} for item in found], known=known)
    else:
        say(*map(str, found), known=known)
    return OK


def _split(key: str) -> tuple[str, str]:
    """Return the section that a key belongs to, and its name there; MaxText's where no other knows it."""
    section, _, name = key.partition(".")
    if section in _SECTIONS and name:
        return section, name
    if key in LAUNCH_KEYS:
        return "launch", key
    if key in CHECKS_KEYS:
        return "checks", key
    return "deploy" if section in DEPLOY_KEYS else "maxtext", key


def _assigned(configuration: Configuration, section: str, name: str) -> Iterator[Assignment]:
    if section == "launch":
        place = configuration.launch.places.get(name)
        if place:
            value = write(getattr(configuration.launch, name))
            yield Assignment(f"launch.{name}", place, "experiment", value, "wins")
    elif section == "checks":
        node = configuration.checks.get(name)
        if node:
            yield Assignment(f"checks.{name}", node.key_at, "experiment", write(node.value), "wins")
    else:
        yield from assignments(configuration, section, name)


def _refuse(configuration: Configuration, section: str, name: str, key: str) -> NoReturn:
    known = table_key(section, name)
    if key in _SECTIONS:
        message, hint = f"is a section: name a key of it, as {key}.<key>", ""
    elif known:
        message, hint = "no layer sets this key, and it has no default", f"it means: {known.description}"
    else:
        near = known_keys(configuration, key)
        hint = f"did you mean {' or '.join(near)}?" if near else ""
        message = "no layer sets this key, and MaxText does not know it"
        if section != "maxtext":
            message = f"no layer sets this key, and {section}: has none of this name"
    refuse("explain-unknown", Location(configuration.file), message, path=key, hint=hint)
