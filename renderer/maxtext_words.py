"""The words of a refusal: what a MaxText key takes, what it got, and where we refuse more than MaxText."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from renderer.problem import counted
from renderer.scalars import quote, write

Entry = Mapping[str, Any]

STRICTER = {
    "quoted-number": ('a number in quotes (`"8"`)', "MaxText converts it: write `8`"),
    "whole-float": ("`8.0` where an integer is expected", "MaxText converts it: write `8`"),
    "quoted-boolean": ('a boolean in quotes (`"true"`)', "MaxText converts it: write `true`"),
    "number-for-boolean": ("0 or 1 where a boolean is expected", "write `false` or `true`"),
    "boolean-for-number": (
        "a boolean where a number is expected",
        "MaxText takes it for 1 or 0: write the number",
    ),
    "scalar-for-list": (
        "a single value where a list is expected",
        "MaxText wraps it for a few keys: write `[value]`",
    ),
    "not-finite": ("`.nan` and `.inf`", "write a finite number"),
    "none-text": ('the text `"None"`, in any case', "MaxText turns it into null: write `null`"),
    "missing-text": ('the text `"???"`', "MaxText's reader takes it for a missing value: leave the key out"),
    "null-filled-in": (
        "null where it is not allowed",
        "MaxText fills in an empty text for a few keys: leave the key out",
    ),
    "unknown-member": (
        "an unknown key inside a map such as `dpo`",
        "MaxText ignores it silently: correct it",
    ),
    "open-type": (
        "what MaxText demands outside its config classes: `[[name, axes], ...]` for `logical_axis_rules`, "
        "limits of a few keys",
        "some of it fails only later, when the mesh is made",
    ),
    "overwritten": (
        "a wrong `tokenizer_type` for a model whose tokenizer MaxText knows",
        "MaxText overwrites it without looking: correct it or leave it out",
    ),
}
"""What is refused here although MaxText's loader takes it: kind → (what, why and what to write instead)."""

OVERWRITTEN = frozenset({"tokenizer_type"})
"""Keys whose refusals belong to the kind `overwritten`."""

LONG_ENUM = 30
"""An enum with more values than this is not listed whole in a message."""
LONGEST_TEXT = 80
"""Of a longer text a message shows the beginning."""

_LIMITS = (
    ("minimum", "of at least"),
    ("exclusiveMinimum", "above"),
    ("maximum", "of at most"),
    ("exclusiveMaximum", "below"),
)
_NAMES = {
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "object": "a map",
    "null": "null",
}
_ITEMS = {"integer": "integers", "number": "numbers", "string": "text", "array": "lists"}


class Refusal(NamedTuple):
    """Why a value is refused. `kind` is one of STRICTER, or empty where MaxText refuses the value too."""

    kind: str
    message: str
    instead: str = ""
    """The value to write, where it can be told."""


def expected(entry: Entry) -> str:
    """Return what the key takes in words: `an integer of at least 1`, `one of adamw, sgd`, `text or null`."""
    if "anyOf" in entry:
        choices = sorted(entry["anyOf"], key=lambda choice: choice.get("type") == "null")
        return " or ".join(dict.fromkeys(map(expected, choices)))
    if "const" in entry:
        return _show(entry["const"])
    if "enum" in entry:
        values = entry["enum"]
        many = len(values) > LONG_ENUM
        return f"one of {len(values)} known values" if many else f"one of {', '.join(map(_show, values))}"
    if entry.get("type") == "array":
        return _expected_list(entry)
    limits = [f"{phrase} {entry[word]}" for word, phrase in _LIMITS if word in entry]
    return f"{_NAMES.get(entry.get('type', ''), 'a value')} {' and '.join(limits)}".rstrip()


def _expected_list(entry: Entry) -> str:
    if "prefixItems" in entry:
        return f"a list of {counted(len(entry['prefixItems']), 'item')}"
    plural = _ITEMS.get(entry.get("items", {}).get("type"))
    return f"a list of {plural}" if plural else "a list"


def _show(value: Any) -> str:
    return value if isinstance(value, str) and value else write(value)


def got(value: Any, text: str | None) -> str:
    """Return `value` as a message names it; `text` is how it was written, if unquoted."""
    if isinstance(value, str):
        return f"the text {quote(value if len(value) <= LONGEST_TEXT else value[: LONGEST_TEXT - 3] + '...')}"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a map"
    return text or write(value)


def wrong(entry: Entry, value: Any, text: str | None, instead: str = "", kind: str = "") -> Refusal:
    """Return the refusal of a value of the wrong type; `instead` is what to write."""
    if value is None:
        return Refusal("null-filled-in", f"null is not allowed here, expected {expected(entry)}")
    hint = f": write {instead}" if instead else ""
    return Refusal(kind, f"expected {expected(entry)}, got {got(value, text)}{hint}", instead)


def text_read_otherwise(value: str, *, nullable: bool) -> Refusal:
    """Return the refusal of a text that MaxText does not take for text."""
    if value == "???":
        message = 'MaxText\'s reader takes the text "???" for a missing value: leave the key out'
        return Refusal("missing-text", message)
    rest = ": write null" if nullable else ", which is not allowed here"
    return Refusal("none-text", f"MaxText turns the text {quote(value)} into null{rest}")
