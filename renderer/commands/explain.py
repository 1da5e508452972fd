"""`renderer explain`: where a key's value comes from."""

from __future__ import annotations

from dataclasses import asdict

import click

from renderer.checks import credentials
from renderer.cli import OK, App
from renderer.commands.options import configured, format_option, say, say_json
from renderer.configure import Configuration
from renderer.keys import DEPLOY_KEYS, LAUNCH_KEYS
from renderer.location import Location
from renderer.origins import Assignment, assignments, known_keys
from renderer.problem import refuse
from renderer.scalars import write


@click.command("explain")
@click.argument("experiment")
@click.argument("key")
@format_option("text", "json")
@click.pass_obj
def command(app: App, experiment: str, key: str, form: str) -> int:
    """Print KEY's winning value in EXPERIMENT and everything it replaced, one assignment a line.

    KEY is maxtext.<key>, deploy.<key>, launch.<key>, or the bare key.
    """
    configuration = configured(app.root, experiment)
    found = _assignments(configuration, key)
    if not found:
        near = known_keys(configuration, key)
        hint = f"did you mean {' or '.join(near)}?" if near else ""
        refuse(
            "explain-unknown",
            Location(configuration.file),
            "no layer sets this key, and MaxText does not know it",
            path=key,
            hint=hint,
        )
    known = credentials(configuration)
    if form == "json":
        say_json([{**asdict(item), "place": item.place._asdict()} for item in found], known=known)
    else:
        say(*map(str, found), known=known)
    return OK


def _assignments(configuration: Configuration, key: str) -> list[Assignment]:
    namespace, _, name = key.partition(".")
    if namespace in {"deploy", "maxtext"} and name:
        return list(assignments(configuration, namespace, name))
    if namespace == "launch" and name:
        return _launch(configuration, name)
    if key in LAUNCH_KEYS:
        return _launch(configuration, key)
    return list(assignments(configuration, "deploy" if namespace in DEPLOY_KEYS else "maxtext", key))


def _launch(configuration: Configuration, key: str) -> list[Assignment]:
    place = configuration.launch.places.get(key)
    value = getattr(configuration.launch, key, None)
    return [Assignment(f"launch.{key}", place, "experiment", write(value), "wins")] if place else []
