"""Judges a value against what a MaxText key takes, in well under a microsecond where it is fine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from renderer.maxtext_words import LONG_ENUM, Entry, Refusal, expected, got, text_read_otherwise, wrong
from renderer.scalars import quote, write
from renderer.schema import nearest
from renderer.schema_shapes import OPEN

Validator = Callable[[Any, str | None], Refusal | None]

_NUMBERS = (int, float)
_TRUE_TEXTS = frozenset({"1", "t", "y", "true", "yes", "on"})
_FALSE_TEXTS = frozenset({"0", "f", "n", "false", "no", "off"})
_INT64_LIMIT = 2.0**63

# The entry is kept beside its validator, so that its id stays its own.
_compiled: dict[int, tuple[Entry, Validator]] = {}


def judge(entry: Entry, value: Any, text: str | None = None) -> str:
    """Return what is wrong with `value` for the key that `entry` describes, or nothing.

    `text` is how the value was written, if unquoted, for the message; `entry` must not change later.
    """
    refused = refusal(entry, value, text)
    return refused.message if refused else ""


def refusal(entry: Entry, value: Any, text: str | None = None) -> Refusal | None:
    """Return what judge says, with the kind of STRICTER it belongs to."""
    found = _compiled.get(id(entry))
    if found is None:
        found = _compiled[id(entry)] = (entry, _top(entry))
    return found[1](value, text)


def _top(entry: Entry) -> Validator:
    """Return the validator of a key: MaxText reads some texts as null, but not those inside lists and maps."""
    validate = _validator(entry)
    if entry.get(OPEN):
        validate = _of_kind("open-type", validate)
    nullable = validate(None, None) is None

    def top(value: Any, text: str | None) -> Refusal | None:
        if type(value) is str and (value == "???" or (len(value) == 4 and value.lower() == "none")):
            return text_read_otherwise(value, nullable=nullable)
        return validate(value, text)

    return top


def _of_kind(kind: str, validate: Validator) -> Validator:
    def validate_as(value: Any, text: str | None) -> Refusal | None:
        refused = validate(value, text)
        return refused._replace(kind=kind) if refused else None

    return validate_as


def _validator(entry: Entry) -> Validator:
    if "anyOf" in entry:
        return _any_of(entry)
    if "const" in entry:
        return _one_of(entry, [entry["const"]])
    if "enum" in entry:
        return _one_of(entry, entry["enum"])
    return _BY_TYPE.get(entry.get("type", ""), _anything)(entry)


def _anything(_entry: Entry) -> Validator:
    return lambda _value, _text: None


def _boolean(entry: Entry) -> Validator:
    def validate(value: Any, text: str | None) -> Refusal | None:
        if value is True or value is False:
            return None
        if type(value) in _NUMBERS and (value == 0 or value == 1):
            return wrong(entry, value, text, "true" if value else "false", "number-for-boolean")
        if type(value) is str and value.lower() in _TRUE_TEXTS | _FALSE_TEXTS:
            instead = "true" if value.lower() in _TRUE_TEXTS else "false"
            return wrong(entry, value, text, instead, "quoted-boolean")
        return wrong(entry, value, text)

    return validate


def _integer(entry: Entry) -> Validator:
    limits = _limit_check(entry)

    def validate(value: Any, text: str | None) -> Refusal | None:
        if type(value) is int:
            return limits(value, text) if limits else None
        if type(value) is float and value.is_integer() and abs(value) < _INT64_LIMIT:
            return wrong(entry, value, text, str(int(value)), "whole-float")
        return _not_a_number(entry, value, text)

    return validate


def _number(entry: Entry) -> Validator:
    limits = _limit_check(entry)

    def validate(value: Any, text: str | None) -> Refusal | None:
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return limits(value, text) if limits else None
        return _not_a_number(entry, value, text)

    return validate


def _not_a_number(entry: Entry, value: Any, text: str | None) -> Refusal:
    if type(value) is bool:
        return wrong(entry, value, text, kind="boolean-for-number")
    if type(value) is float and not math.isfinite(value):
        return Refusal("not-finite", f"expected {expected(entry)}, got {value}, which is not a finite number")
    if type(value) is float and value.is_integer():
        return Refusal("", f"{got(value, text)} does not fit into 64 bits")
    if type(value) is str and _is_number(value):
        return wrong(entry, value, text, value.strip().replace("_", ""), "quoted-number")
    return wrong(entry, value, text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _limit_check(entry: Entry) -> Validator | None:
    minimum, maximum = entry.get("minimum"), entry.get("maximum")
    above, below = entry.get("exclusiveMinimum"), entry.get("exclusiveMaximum")
    if minimum is None and maximum is None and above is None and below is None:
        return None

    def check(value: Any, text: str | None) -> Refusal | None:
        if minimum is not None and value < minimum:
            return Refusal("", f"must be at least {minimum}, got {got(value, text)}")
        if above is not None and value <= above:
            return Refusal("", f"must be above {above}, got {got(value, text)}")
        if maximum is not None and value > maximum:
            return Refusal("", f"must be at most {maximum}, got {got(value, text)}")
        if below is not None and value >= below:
            return Refusal("", f"must be below {below}, got {got(value, text)}")
        return None

    return check


def _string(entry: Entry) -> Validator:
    def validate(value: Any, text: str | None) -> Refusal | None:
        if type(value) is str:
            return None
        scalar = isinstance(value, bool | int | float)
        return wrong(entry, value, text, quote(text or write(value)) if scalar else "")

    return validate


def _null(entry: Entry) -> Validator:
    return lambda value, text: None if value is None else wrong(entry, value, text)


def _one_of(entry: Entry, values: list[Any]) -> Validator:
    texts = {value for value in values if type(value) is str}
    numbers = {value for value in values if type(value) is int}

    def validate(value: Any, text: str | None) -> Refusal | None:
        if (type(value) is str and value in texts) or (type(value) in _NUMBERS and value in numbers):
            return None
        return _not_one_of(entry, values, value, text)

    return validate


def _not_one_of(entry: Entry, values: list[Any], value: Any, text: str | None) -> Refusal:
    texts = [known for known in values if isinstance(known, str)]
    if isinstance(value, str) and len(values) > LONG_ENUM:
        near = nearest(value, texts)
        nearby = f"; nearest: {', '.join(near)}" if near else ""
        return Refusal("", f"{got(value, text)} is not one of the {len(values)} known values{nearby}")
    if isinstance(value, bool) and len(texts) < len(values):
        return wrong(entry, value, text, kind="boolean-for-number")
    if isinstance(value, str) and len(texts) < len(values) and _is_number(value):
        return wrong(entry, value, text, value.strip(), "quoted-number")
    return wrong(entry, value, text)


def _array(entry: Entry) -> Validator:
    prefix = [_validator(item) for item in entry.get("prefixItems", ())]
    item = _validator(entry["items"]) if entry.get("items") else None

    def validate(value: Any, text: str | None) -> Refusal | None:
        if type(value) is not list:
            if value is None or isinstance(value, dict):
                return wrong(entry, value, text)
            return wrong(entry, value, text, "[]" if value == "" else f"[{text or write(value)}]", "scalar-for-list")
        if prefix and len(value) != len(prefix):
            return Refusal("", f"expected {expected(entry)}, got {len(value)}")
        if prefix or item:
            return _items(value, prefix or [item] * len(value))
        return None

    return validate


def _items(values: list[Any], validators: list[Any]) -> Refusal | None:
    for index, (value, validate) in enumerate(zip(values, validators, strict=True)):
        refused: Refusal | None = validate(value, None)
        if refused:
            kind = "" if refused.kind == "null-filled-in" else refused.kind
            return Refusal(kind, f"item {index + 1}: {refused.message}")
    return None


def _object(entry: Entry) -> Validator:
    members = {key: _validator(member) for key, member in entry.get("properties", {}).items()}

    def validate(value: Any, text: str | None) -> Refusal | None:
        if type(value) is not dict:
            return wrong(entry, value, text)
        return _members(value, members) if members else None

    return validate


def _members(value: dict[str, Any], members: Mapping[str, Validator]) -> Refusal | None:
    for key, item in value.items():
        if key not in members:
            near = nearest(key, members)
            return Refusal("unknown-member", f"unknown key {key}{f'; nearest: {", ".join(near)}' if near else ''}")
        refused = members[key](item, None)
        if refused:
            kind = "" if refused.kind == "null-filled-in" else refused.kind
            return Refusal(kind, f"{key}: {refused.message}")
    return None


def _any_of(entry: Entry) -> Validator:
    choices = entry["anyOf"]
    validators = [_validator(choice) for choice in choices]

    def validate(value: Any, text: str | None) -> Refusal | None:
        refused = []
        for validator in validators:
            found = validator(value, text)
            if found is None:
                return None
            refused.append(found)
        return _closest(entry, choices, refused, value, text)

    return validate


def _closest(
    entry: Entry,
    choices: list[Any],
    refused: list[Refusal],
    value: Any,
    text: str | None,
) -> Refusal:
    """Return what the one choice of the value's own type says, else what all of them expect."""
    of_type = [found for choice, found in zip(choices, refused, strict=True) if _same_type(choice, value)]
    if len(of_type) == 1:
        return of_type[0]
    kind = next((found.kind for found in refused if found.kind), "")
    instead = next((found.instead for found in refused if found.instead), "")
    return wrong(entry, value, text, instead, kind)


def _same_type(choice: Entry, value: Any) -> bool:
    kinds = {"string": str, "array": list, "object": dict, "boolean": bool}
    kind = choice.get("type", "")
    if kind in {"integer", "number"}:
        return type(value) in _NUMBERS
    return kind in kinds and type(value) is kinds[kind]


_BY_TYPE: dict[str, Callable[[Mapping[str, Any]], Validator]] = {
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "string": _string,
    "null": _null,
    "array": _array,
    "object": _object,
}
