"""What a key of a closed namespace is, and whether a value fits it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from renderer.problem import Problem
from renderer.scalars import quote
from renderer.yaml_io import REMOVED, Node


class Kind(Enum):
    """What type of value a key takes."""

    TEXT = "text"
    INTEGER = "an integer"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    TEXT_LIST = "a list of texts"
    TEXT_MAP = "a mapping of names to texts"


@dataclass(frozen=True, slots=True)
class Form:
    """What a text must look like: a pattern for all of it, and the same in words."""

    pattern: str
    words: str


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a closed namespace.

    `form` is that of a text, of each item of a list, or of each name of a mapping, `value_form` that of a mapping's
    values.
    """

    name: str
    kind: Kind
    description: str
    default: Any = None
    minimum: float = 0
    maximum: float = 2**53
    form: Form | None = None
    value_form: Form | None = None


def judge(key: Key, node: Node, path: str) -> Iterator[Problem]:
    """Yield what is wrong with the value in `node` for a key that is not a mapping."""
    value = node.value
    if key.kind is Kind.TEXT:
        yield from judge_text(node, path, key.form)
    elif key.kind is Kind.TEXT_LIST and isinstance(value, list) and all(isinstance(item, str) for item in value):
        for item in value:
            yield from judge_text(Node(item, node.at), path, key.form)
    elif not _has_type(key.kind, value):
        yield _type_problem(node, path, key.kind)
    elif key.kind is not Kind.BOOLEAN and not key.minimum <= value <= key.maximum:
        limit = f"at least {key.minimum:g}" if value < key.minimum else f"at most {key.maximum:.15g}"
        yield Problem("value-form", node.at, path, f"{value} is out of range: must be {limit}")


def _has_type(kind: Kind, value: Any) -> bool:
    if kind is Kind.BOOLEAN or isinstance(value, bool):
        return kind is Kind.BOOLEAN and isinstance(value, bool)
    return isinstance(value, int) if kind is Kind.INTEGER else kind is Kind.NUMBER and isinstance(value, int | float)


def judge_entry(key: Key, name: str, node: Node, path: str) -> Iterator[Problem]:
    """Yield what is wrong with the entry `name` of a mapping key such as ENV."""
    if key.form and not re.fullmatch(key.form.pattern, name):
        yield Problem("value-form", node.key_at, path, f"{quote(name)} is not {key.form.words}")
    yield from judge_text(node, path, key.value_form)


def judge_text(node: Node, path: str, form: Form | None) -> Iterator[Problem]:
    """Yield a problem unless `node` holds text of the form."""
    if not isinstance(node.value, str):
        yield _type_problem(node, path, Kind.TEXT)
    elif form and not re.fullmatch(form.pattern, node.value):
        yield Problem("value-form", node.at, path, f"{quote(node.value)} is not {form.words}")


def _type_problem(node: Node, path: str, kind: Kind) -> Problem:
    numbers = kind in {Kind.INTEGER, Kind.NUMBER} and isinstance(node.value, str)
    instead = f": write {node.value}" if numbers and node.value.isdecimal() else ""
    return Problem("value-type", node.at, path, f"must be {kind.value}, not {describe(node)}{instead}")


def describe(node: Node) -> str:
    """Return what `node` holds and, for an unquoted number or boolean, the quoted form to write for the text."""
    value = node.value
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "null"
    if value is REMOVED:
        return "!remove"
    if isinstance(value, str):
        return f"the text {quote(value)}"
    what = "the boolean" if isinstance(value, bool) else "the number"
    written = node.text if node.text is not None else str(value)
    return f"{what} {written}: write {quote(written)} for the text"
