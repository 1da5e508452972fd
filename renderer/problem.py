"""Problems are data: a place, a path, a message and what to write instead; only the command line prints them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NoReturn

from renderer.location import Location
from renderer.secrets import Secret, is_secret_path, mask, mask_given, mask_values


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
        told = self.masked()
        where = f"{told.location}: {told.path}: " if told.path else f"{told.location}: "
        lines = [f"{where}{kind}{told.message}", *(f"    {line}" for line in told.hint.splitlines())]
        return "\n".join(visible(line) for line in lines)

    def masked(self) -> Problem:
        """Return the problem as it may be shown: without credentials, and without any value of a secret's key."""
        message, hint = self.message, self.hint
        if is_secret_path(self.path):
            message, hint = mask_values(message), mask_values(hint)
        place = self.location._replace(file=mask(mask_given(self.location.file)))
        return replace(self, location=place, path=mask(self.path), message=mask(message), hint=mask(hint))


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


def counted(number: int, what: str) -> str:
    """Return a number with what it counts: "1 file", "2 files"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def visible(text: str) -> str:
    """Return `text` with control characters escaped: a hostile value must not steer a terminal or a CI log."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def shown(line: str, known: tuple[Secret, ...] = ()) -> str:
    """Return one line as it may be printed: credentials masked, control characters escaped."""
    return visible(mask(line, known))
