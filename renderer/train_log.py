"""What MaxText's log says of each training step.

The line changed between versions (a colon after loss or not, per device or not, a logger's prefix), so it is read as
`name: value` pairs, not by one pattern. Lines of evaluations are not training steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_STEP = re.compile(r"completed step: (\d{1,18})\b(.*)")
_NUMBER = r"[-+]?(?:\d++\.?\d*+(?:[eE][-+]?\d++)?|nan|inf)"
_PAIR = re.compile(rf"([A-Za-z][\w/ ]{{0,60}}?):? ({_NUMBER})(?=,|\s|$)")
"""A pod's log may hold any text: names have an end, and digits are read once, so that a long line takes no longer."""


@dataclass(frozen=True, slots=True)
class Step:
    """One training step; `values` by the log's own names, such as loss, seconds, Tokens/s/device."""

    number: int
    values: Mapping[str, float]


def parse_step(line: str) -> Step | None:
    """Return the training step that a line of the log reports, nothing for any other line."""
    match = _STEP.search(line)
    if match is None:
        return None
    return Step(int(match[1]), {name.strip(): float(value) for name, value in _PAIR.findall(match[2])})


_CONFIG_ERROR = "CONFIG ERROR: "
_OWN_WORDS = re.compile(r"bootstrap: failed\b|run_pretrain: (?!D[1-7] |warning: )")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception)\b")
_LONGEST = 300


def first_error(lines: Sequence[str]) -> str:
    """Return what a failed run's log says went wrong, nothing if it does not say.

    In this order: MaxText's own configuration error with its details, the pod scripts' words, the last exception.
    """
    for number, line in enumerate(lines):
        if _CONFIG_ERROR in line:
            return "\n".join([_cut(line[line.index(_CONFIG_ERROR) :]), *map(_cut, _details(lines[number + 1 :]))])
    own = next((line for line in lines if _OWN_WORDS.match(line)), "")
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    return _cut(own or (exceptions[-1] if exceptions else ""))


def _details(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines that belong to a configuration error: up to the rule that MaxText draws below it."""
    for line in lines[:5]:
        if line.endswith("====="):
            return
        yield line


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
