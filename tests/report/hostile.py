"""Reports whose every text was chosen by an attacker."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from renderer.report.data import Report

TEXTS = (
    "@everyone",
    "owner@example.com",
    "#1 GH-2 owner/repo#3 c0ffee0c0ffee0c0ffee0c0ffee0c0ffee0c0ffe c0ffee0",
    "https://evil.example/?a=`b`",
    "www.evil.example",
    "[a](javascript:alert(1))",
    "![a](https://evil.example/x.png)",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!-- --> --> <!--",
    "`",
    "``` ` `` a",
    "` leading and trailing `",
    "\\`a\\` \\",
    "a | b \\| c",
    "| --- | --- |",
    "\n\n# heading\n\n- item\n\n    code\n",
    "\r\n> quote",
    "**bold** _em_ ~~no~~ <b>x</b>",
    "&lt;b&gt; &amp; &#64;me",
    "$\\frac{a}{b}$ :tada: [^1]",
    "{{ 7 * 7 }} {% raw %}",
    "\u202eRLO \u2066LRI \u200bzero \u00ad",
    "\x00\x1b[31m\x7f\ud800",
    " ",
    "",
    "🜚🜚🜚",
    "'\" onmouseover=alert(1) x='",
    "x" * 4000,
    "`" * 4000,
    "🜚" * 4000,
    "`a" * 2000,
)


NUMBERS = (0, 1, 7, 12_345, 2**60)
BEYOND_TEXTS = (*TEXTS, "x" * 4001, "🜚" * 5000, "\ud800" * 1000)
BEYOND_NUMBERS = (*NUMBERS, -1, 2**62 + 1, 2**80)
BEYOND_FLOATS = (*BEYOND_NUMBERS, 1e300, math.inf, -math.inf, math.nan)


def report(seed: int) -> Report:
    """Return a report of random shape and size, within the published schema."""
    chance = random.Random(seed)
    leaves = {str: TEXTS, int: NUMBERS, float: NUMBERS}
    made: Report = _make(Report, chance, 40 if seed % 3 else 400, leaves)
    return made


def beyond(seed: int) -> Report:
    """Return a report of random shape and size, with texts, numbers and lists that the published schema refuses."""
    chance = random.Random(seed)
    leaves = {str: BEYOND_TEXTS, int: BEYOND_NUMBERS, float: BEYOND_FLOATS}
    made: Report = _make(Report, chance, 40, leaves)
    name = chance.choice(["rows", "deleted", "values", "derived", "notes", "limits", "pending", "notices", "left_out"])
    return replace(made, **{name: getattr(made, name) * 2000})


def _make(kind: Any, chance: random.Random, most: int, leaves: Mapping[type, Sequence[Any]]) -> Any:
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        values = {field.name: _make(hints[field.name], chance, min(most, 60), leaves) for field in fields(kind)}
        return kind(**({**values, "version": 1} if kind is Report else values))  # type: ignore[operator]
    if get_origin(kind) is tuple:
        return tuple(_make(get_args(kind)[0], chance, 4, leaves) for _ in range(chance.randint(0, most)))
    if get_origin(kind) is UnionType:
        return chance.choice((None, _make(get_args(kind)[0], chance, most, leaves)))
    if issubclass(kind, StrEnum):
        return chance.choice(list(kind))
    return kind(chance.choice(leaves[kind]))
