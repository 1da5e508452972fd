"""Problems are data: a place, a path, a message and what to write instead; only the command line prints them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from renderer.location import Location
from renderer.secrets import mask


class Severity(StrEnum):
    """An error blocks, a warning never does."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    `code` is a stable name such as `parallelism-product`; `path` the dotted key, empty where none applies;
    `hint` what to write instead or what surrounds the fault, one or more lines.
    """

    code: str
    location: Location
    path: str
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        kind = "warning: " if self.severity is Severity.WARNING else ""
        where = mask(f"{self.location}: {self.path}: ") if self.path else f"{self.location}: "
        lines = [f"{where}{kind}{mask(self.message)}", *(f"    {line}" for line in mask(self.hint).splitlines())]
        return "\n".join(visible(line) for line in lines)


class RefusedError(Exception):
    """A stage found problems: nothing may be written."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def refuse(code: str, location: Location, message: str, *, path: str = "", hint: str = "") -> NoReturn:
    """End the stage with the one problem that makes going on pointless."""
    raise RefusedError([Problem(code, location, path, message, hint)])


def errors(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems that block."""
    return [problem for problem in problems if problem.severity is Severity.ERROR]


def visible(text: str) -> str:
    """Return `text` with control characters escaped: a hostile value must not steer a terminal or a CI log."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
