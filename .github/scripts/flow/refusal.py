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
    """Return the text as one printable line: a line of its own could be a command to the runner."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown.replace("%", "%25")[:1000]
