"""Reports whose every text was chosen by an attacker."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass
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


def report(seed: int) -> Report:
    """Return a report of random shape and size, within the published schema."""
    made: Report = _make(Report, random.Random(seed), 40 if seed % 3 else 400)
    return made


def _make(kind: Any, chance: random.Random, most: int) -> Any:
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        values = {field.name: _make(hints[field.name], chance, min(most, 60)) for field in fields(kind)}
        return kind(**({**values, "version": 1} if kind is Report else values))  # type: ignore[operator]
    if get_origin(kind) is tuple:
        return tuple(_make(get_args(kind)[0], chance, 4) for _ in range(chance.randint(0, most)))
    if get_origin(kind) is UnionType:
        return chance.choice((None, _make(get_args(kind)[0], chance, most)))
    if issubclass(kind, StrEnum):
        return chance.choice(list(kind))
    if kind is str:
        return chance.choice(TEXTS)
    return kind(chance.choice((0, 1, 7, 12_345, 2**60)))
