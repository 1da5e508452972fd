"""Where something stands: a file, a line and a column, as compilers and editors write it."""

from __future__ import annotations

from typing import NamedTuple


class Location(NamedTuple):
    """A place in a file the user wrote. Lines and columns count from 1; 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def in_line(self) -> str:
        """The place without its column, as `explain` prints it."""
        return f"{self.file}:{self.line}" if self.line else self.file


COMMAND_LINE = Location("command line")
"""The place of a value that was given as KEY=VALUE or as an option."""
