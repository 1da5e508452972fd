"""The one way a program of this package ends early: with a line that GitHub shows as an error or a notice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from json import JSONDecodeError

from github import GithubException


class RefusedError(Exception):
    """Something is not as it must be; the text says what."""


class NothingToDoError(Exception):
    """There is nothing to do here; the text says why."""


def run(main: Callable[[], str]) -> None:
    """Run a program and show its last line; end with 1 where it was refused or GitHub's API failed."""
    try:
        print(_line(main()))  # noqa: T201
    except NothingToDoError as reason:
        print(f"::notice::{_line(str(reason))}")  # noqa: T201
    except (RefusedError, GithubException, OSError, JSONDecodeError) as error:
        print(f"::error::{_line(str(error))}")  # noqa: T201
        sys.exit(1)


def _line(text: str) -> str:
    """Return the text as a line for the runner: one of its own could be a command."""
    return one_line(text).replace("%", "%25")[:1000]


def one_line(text: str) -> str:
    """Return the text with a space for every character that cannot be printed, the ends of lines among them."""
    return "".join(character if character.isprintable() else " " for character in text)
