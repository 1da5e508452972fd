"""A run's files side by side: what was, what is, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from renderer.outputs import RUN_FILES
from renderer.secrets import mask

_CONTEXT = 3
_LONGEST = 4_000
"""Files of more lines are compared whole only: finding the lines that moved would take too long."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line on both sides; a number of 0 where a side has none."""

    old_number: int
    old: str
    new_number: int
    new: str

    @property
    def changed(self) -> bool:
        """Whether the sides differ."""
        return not (self.old_number and self.new_number and self.old == self.new)


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are shown at once, or equal ones that are folded."""

    folded: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class File:
    """One file of a run. `text` instead of blocks where only one side has it; `side` says which."""

    name: str
    side: str
    text: str
    blocks: tuple[Block, ...]

    @property
    def size(self) -> int:
        """About how many characters it takes to show."""
        return len(self.text) + sum(len(line.old) + len(line.new) + 60 for block in self.blocks for line in block.lines)


def files(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[File]:
    """Yield the files of a run that differ, and those that only one side has."""
    for name in RUN_FILES:
        before, after = (mask(side[name].decode("utf-8", "replace")) if name in side else None for side in (old, new))
        if before is not None and after is not None:
            if before != after:
                yield File(name, "both", "", tuple(_blocks(before.split("\n"), after.split("\n"))))
        elif after is not None:
            yield File(name, "new", after, ())
        elif before is not None:
            yield File(name, "old", before, ())


def _blocks(old: list[str], new: list[str]) -> Iterator[Block]:
    lines = list(_lines(old, new))
    near = {
        at for index, line in enumerate(lines) if line.changed for at in range(index - _CONTEXT, index + _CONTEXT + 1)
    }
    block: list[Line] = []
    for index, line in enumerate(lines):
        if block and (index in near) != (index - 1 in near):
            yield Block(index - 1 not in near, tuple(block))
            block = []
        block.append(line)
    if block:
        yield Block(len(lines) - 1 not in near, tuple(block))


def _lines(old: list[str], new: list[str]) -> Iterator[Line]:
    if max(len(old), len(new)) > _LONGEST:
        steps = [("replace", 0, len(old), 0, len(new))]
    else:
        steps = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    for _, start, end, other, other_end in steps:
        for step in range(max(end - start, other_end - other)):
            left, right = start + step, other + step
            has_left, has_right = left < end, right < other_end
            yield Line(
                left + 1 if has_left else 0,
                old[left] if has_left else "",
                right + 1 if has_right else 0,
                new[right] if has_right else "",
            )
