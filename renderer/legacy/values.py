"""What MaxText makes of the text after `key=` on its command line, and which value it ends up with."""

from __future__ import annotations

import io
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from renderer.scalars import AmbiguousError, meaning
from renderer.schema import Entry, is_nullable

_PLAIN = re.compile(r"[A-Za-z0-9_./:,%+@*?~=-]+")
_NULL_TEXTS = {"None", "none", "NONE"}
_LETTERS = {"y", "Y", "n", "N"}
"""Booleans to YAML 1.1, but not to PyYAML, on which OmegaConf stands."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*")
_OMEGACONF_FLOAT = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)*(?:\.[0-9_]*)?[eE][-+]?[0-9]+")
_TRUE_TEXTS = {"1", "t", "y", "true", "yes", "on"}
_FALSE_TEXTS = {"0", "f", "n", "false", "no", "off"}


def read_argument(text: str) -> Any:
    """Return what OmegaConf reads from the text after `key=`: YAML 1.1 without dates, and with floats such as 1e-4.

    Text that is no YAML stays text; MaxText refuses it.
    """
    if text in _LETTERS:
        return text
    if _PLAIN.fullmatch(text) and text[0] not in "*?@%=,:-" and text[-1] != ":":
        try:
            return meaning(text)
        except AmbiguousError:
            pass
    if _DATE.fullmatch(text):
        return text
    if _OMEGACONF_FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    try:
        return _plain(_yaml_1_1().load(io.StringIO(text)))
    except (YAMLError, ValueError):
        return text


def _yaml_1_1() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    yaml.allow_duplicate_keys = True
    return yaml


def _plain(value: Any) -> Any:
    """Return `value` with lists, maps and scalars of Python only."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def typed(entry: Entry | None, value: Any) -> Any:
    """Return `value` as the key that `entry` describes holds it after loading: 8.0 for an integer is 8, "true" is true.

    What does not fit is returned as it is: it is for the checks to refuse, here it only must not become equal.
    """
    if entry is None:
        return value
    types = {choice.get("type") for choice in entry.get("anyOf", (entry,))}
    if isinstance(value, str):
        return _typed_text(entry, types, value)
    if isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return int(value)
    if isinstance(value, int) and "number" in types and "integer" not in types:
        return float(value)
    if isinstance(value, int) and types <= {"boolean", "null"} and value in (0, 1):
        return bool(value)
    return value


def _typed_text(entry: Entry, types: set[Any], value: str) -> Any:
    if value in _NULL_TEXTS and is_nullable(entry):
        return None
    if "string" in types or not types & {"boolean", "integer", "number"}:
        return value
    word = value.strip().lower()
    if "boolean" in types and word in _TRUE_TEXTS | _FALSE_TEXTS:
        return word in _TRUE_TEXTS
    try:
        return typed(entry, float(word) if types & {"number"} else int(word))
    except ValueError:
        return value
