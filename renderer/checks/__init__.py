"""Level 1: everything that can be known before a TPU is held, one short module per family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from renderer.checks import (
    batch,
    content,
    deploy,
    destination,
    labels,
    launch,
    maxtext,
    parallelism,
    paths,
    secrets,
    topology,
)
from renderer.configure import Configuration
from renderer.location import Location
from renderer.merge import Leaf
from renderer.problem import Problem
from renderer.scalars import write
from renderer.secrets import Secret, mask

Check = Callable[[Configuration], Iterator[Problem]]

FAMILIES: tuple[Check, ...] = (
    deploy.check,
    launch.check,
    maxtext.check,
    topology.check,
    parallelism.check,
    batch.check,
    content.check,
    destination.check,
    paths.check,
    labels.check,
    secrets.check,
)


def check(configuration: Configuration) -> list[Problem]:
    """Return every problem of a configuration, none of which shows a credential.

    What only a launch needs is `launch.needed`'s.
    """
    problems = [problem for family in FAMILIES for problem in family(configuration)]
    if not problems:
        return []
    known = credentials(configuration)
    texts: dict[int, str] = {}
    told = (_with_replaced(configuration, problem, known, texts) for problem in sorted(problems, key=_place))
    return [replace(each, message=mask(each.message, known), hint=mask(each.hint, known)) for each in told]


def credentials(configuration: Configuration) -> tuple[Secret, ...]:
    """Return every credential among the values, so that texts can be masked which only their key's name gives away."""
    return tuple(found.secret for found in secrets.found(configuration))


def _place(problem: Problem) -> Location:
    return problem.location


def _with_replaced(
    configuration: Configuration, problem: Problem, known: tuple[Secret, ...], texts: dict[int, str]
) -> Problem:
    """Return `problem` with what its value replaced: often the value to return to.

    `texts` are the masked texts of replaced leaves so far, by id: one long value may have a problem in every part.
    """
    namespace, _, path = problem.path.partition(".")
    key, _, entry = path.partition(".")
    item = {"deploy": configuration.deploy, "maxtext": configuration.maxtext}.get(namespace, {}).get(key)
    if entry and isinstance(item, dict):
        item = item.get(entry)
    if not isinstance(item, Leaf) or problem.location not in {item.at, item.node.key_at}:
        return problem
    old = item.previous
    if not isinstance(old, Leaf) or old.removed or isinstance(old.node.value, dict):
        return problem
    if id(old) not in texts:  # masked before it is cut: half a credential is not found
        texts[id(old)] = mask(write(old.node.value), known)
    text = texts[id(old)]
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    said = f"it replaces {shown} ({old.layer.name}, {old.node.key_at.in_line})"
    return replace(problem, hint=f"{problem.hint}\n{said}".lstrip("\n"))


_LONGEST = 80
"""Of a longer value a hint shows the beginning."""
