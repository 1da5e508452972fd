"""What a plain YAML scalar means, where every reader agrees, and how a value is written so that they do.

YAML 1.1 (PyYAML, OmegaConf, kubectl, the API server) and YAML 1.2 (ruamel.yaml, yq) read some plain scalars
differently. Those are refused, with the form to write instead, and none of them is ever written.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache

Scalar = str | int | float | bool | None
Value = Scalar | list["Value"] | dict[str, "Value"]
"""What a file can hold once its positions are left aside."""

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_YAML_1_1_BOOLEANS = {
    variant: word in {"y", "yes", "on"}
    for word in ("y", "yes", "on", "n", "no", "off")
    for variant in (word, word.capitalize(), word.upper())
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?")
_PREFIXED = re.compile(r"[-+]?0(?:o[0-7_]+|x[0-9a-fA-F_]+|b[01_]+)")
_UNDERSCORES = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9].*)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INT64 = range(-(2**63), 2**63)


class AmbiguousError(ValueError):
    """A plain scalar that readers take for different values; the text says why and what to write."""


@lru_cache(maxsize=4096)
def meaning(text: str) -> Scalar:
    """Return what the plain scalar `text` means to every reader.

    Raises AmbiguousError where YAML 1.1 and 1.2 disagree, or where the number is not finite or above 64 bits.
    """
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in "-+.0123456789yYnNoO=<":
        return text
    reason = _ambiguity(text)
    if reason:
        raise AmbiguousError(reason)
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _ambiguity(text: str) -> str:
    """Return why readers disagree about `text`, with the form to write, or nothing."""
    quoted = quote(text)
    if text in _YAML_1_1_BOOLEANS:
        boolean = "true" if _YAML_1_1_BOOLEANS[text] else "false"
        return f"{text} is a boolean to YAML 1.1 and text to YAML 1.2: write {boolean}, or {quoted} for the text"
    if text in {"=", "<<"}:
        return f"{text} has a meaning of its own in YAML 1.1: write {quoted}"
    if _DATE.fullmatch(text):
        return f"{text} is a date to YAML 1.1 and text to YAML 1.2: write {quoted}"
    if _SEXAGESIMAL.fullmatch(text):
        return f"{text} is a number in base 60 to YAML 1.1 and text to YAML 1.2: write {quoted}"
    if _PREFIXED.fullmatch(text):
        return f"{text} is a number to some readers and text to others: write it in decimal, or {quoted} for the text"
    if _LEADING_ZERO.fullmatch(text):
        digits = text.replace("_", "").lstrip("+-0")
        decimal = ("-" if text[0] == "-" else "") + (digits if digits[:1].isdigit() else f"0{digits}")
        return (
            f"leading zero: readers take {text} for octal, decimal or text: write {decimal}, or {quoted} for the text"
        )
    if "_" in text and _UNDERSCORES.fullmatch(text):
        return (
            f"{text} is a number to YAML 1.1 and text to YAML 1.2: "
            f"write {text.replace('_', '')}, or {quoted} for the text"
        )
    if text[0] in "-+" and text[1:2] == "." and _FLOAT.fullmatch(text):
        return (
            f"{text} is text to YAML 1.1 and a number to YAML 1.2: write {text[0]}0{text[1:]}, or {quoted} for the text"
        )
    if _NOT_FINITE.fullmatch(text):
        return f"{text} is not a finite number: write a number, or {quoted} for the text"
    if _INTEGER.fullmatch(text):
        too_large = int(text[:40]) not in _INT64
        return f"{text} does not fit into 64 bits: write {quoted} for the text" if too_large else ""
    return _float_ambiguity(text, quoted) if _FLOAT.fullmatch(text) else ""


def _float_ambiguity(text: str, quoted: str) -> str:
    number = float(text)
    if math.isinf(number):
        return f"{text} is an infinite number to some readers and text to others: write {quoted} for the text"
    if number == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        return f"{text} is too small for a number, which would be 0: write 0.0, or {quoted} for the text"
    if text.lstrip("+-").startswith(".") and "e" in text.lower():
        form = text.replace(".", "0.", 1)
        return f"{text} is text to YAML 1.1 and a number to others: write {form}, or {quoted} for the text"
    return ""


def is_text(text: str) -> bool:
    """Return whether the plain scalar `text` is text to every reader."""
    try:
        return isinstance(meaning(text), str)
    except AmbiguousError:
        return False


def command_line_value(text: str) -> Scalar:
    """Return what KEY=`text` means: the text itself where readers would disagree about it."""
    try:
        return meaning(text)
    except AmbiguousError:
        return text


# json.dumps escapes what JSON must; YAML also gives these a meaning as line breaks or refuses them raw.
_ESCAPES = {code: f"\\x{code:02x}" for code in range(0x7F, 0xA0)}
_ESCAPES |= {0x2028: "\\u2028", 0x2029: "\\u2029", 0xFEFF: "\\ufeff", 0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}
_ESCAPES |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}
_encode = json.JSONEncoder(ensure_ascii=False).encode


def quote(text: str) -> str:
    """Return `text` double-quoted, the one style that reads back the same in every YAML reader."""
    encoded = _encode(text)
    return encoded if encoded.isascii() and "\x7f" not in encoded else encoded.translate(_ESCAPES)


def write(value: Value) -> str:
    """Return `value` as one YAML flow node: strings double-quoted, floats as YAML 1.1 and 1.2 both know them."""
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(write, value)) + "]"
    return "{" + ", ".join(f"{quote(key)}: {write(item)}" for key, item in value.items()) + "}"


def _write_float(value: float) -> str:
    """PyYAML takes 1e-05 for text: a mantissa needs its point."""
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if mark and "." not in mantissa else text
