"""Questions before what cannot be undone, and the API server's refusals as problems."""

from __future__ import annotations

import io
import sys

import click
import pytest

from renderer.cluster.api import ApiError
from renderer.commands.on_cluster import agreed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "agrees", "said"),
    [("y\n", True, "Stop it? [y/N]: "), ("\n", False, "Stop it? [y/N]: nothing was changed\n")],
)
def test_a_person_is_asked(answer: str, agrees: bool, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", terminal)
    assert agreed("Stop it?", yes=False) is agrees
    assert terminal.getvalue() == said


def test_nobody_can_be_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(click.UsageError, match="add --yes"):
        agreed("Stop it?", yes=False)
    assert agreed("Stop it?", yes=True)


def test_a_refusal_without_words_gives_its_number() -> None:
    assert str(ApiError(403, "Forbidden", "")) == "the API server answered 403 Forbidden"
    assert str(ApiError(403, "Forbidden", "you may not")) == "you may not"
