"""Problems as text: one line each and its hint, whatever the values in them hold."""

from __future__ import annotations

import pytest

from renderer.location import COMMAND_LINE, Location
from renderer.problem import Problem, RefusedError, Severity, counted, errors, refuse, shown, visible

AT = Location("f.yml", 3, 5)
TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("c", AT, "a.b", "is wrong"), "f.yml:3:5: a.b: is wrong"),
        (Problem("c", AT, "", "is wrong"), "f.yml:3:5: is wrong"),
        (Problem("c", Location("f.yml"), "", "is wrong"), "f.yml: is wrong"),
        (Problem("c", COMMAND_LINE, "a", "is wrong"), "command line: a: is wrong"),
        (Problem("c", AT, "a", "is wrong", "one\ntwo"), "f.yml:3:5: a: is wrong\n    one\n    two"),
        (Problem("c", AT, "a", "is odd", severity=Severity.WARNING), "f.yml:3:5: a: warning: is odd"),
        (Problem("c", AT, "a", "x\n::error::forged\r\x1b[31m"), "f.yml:3:5: a: x\\n::error::forged\\r\\x1b[31m"),
        (Problem("c", AT, "a\nb", "x\x0b\x1c\x85\u2028y"), "f.yml:3:5: a\\nb: x\\x0b\\x1c\\x85\\u2028y"),
        (Problem("c", Location("a\nb.yml"), "", "x"), "a\\nb.yml: x"),
        (Problem("c", AT, "a", f"{TOKEN} is wrong", f"not {TOKEN}"), "f.yml:3:5: a: **** is wrong\n    not ****"),
    ],
)
def test_text(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_refusal_carries_every_problem_and_their_text() -> None:
    problems = [Problem("c", AT, "a", "one"), Problem("d", AT, "b", "two", severity=Severity.WARNING)]
    refused = RefusedError(iter(problems))
    assert refused.problems == tuple(problems)
    assert str(refused) == "f.yml:3:5: a: one\nf.yml:3:5: b: warning: two"
    assert errors(problems) == problems[:1]


def test_refuse_is_one_problem() -> None:
    with pytest.raises(RefusedError) as refused:
        refuse("c", AT, "is wrong", path="a", hint="write b")
    assert refused.value.problems == (Problem("c", AT, "a", "is wrong", "write b"),)


def test_visible_keeps_what_can_be_read() -> None:
    assert visible("Ω 日本 🙂 ") == "Ω 日本 🙂 "
    assert visible("a\tb\ud800\xad") == "a\\tb\\ud800\\xad"


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            Problem("c", AT, "maxtext.hf_access_token", "unknown tag !hunter: only !remove is known", 'not "hunter"'),
            "f.yml:3:5: maxtext.hf_access_token: unknown tag ****: only !remove is known\n    not ****",
        ),
        (Problem("c", AT, "maxtext.run_name", "alias *x: write it"), "f.yml:3:5: maxtext.run_name: alias *x: write it"),
        (Problem("c", Location("hf_access_token:hunter"), "", "is not"), "hf_access_token:****: is not"),
        (Problem("c", Location(f"{TOKEN}.yml"), TOKEN, "is not"), "****.yml: ****: is not"),
    ],
)
def test_no_value_of_a_secret_is_shown(problem: Problem, text: str) -> None:
    assert str(problem) == text
    told = problem.masked()
    assert str(told) == text
    assert TOKEN not in repr(told)


def test_shown_is_one_line_without_a_secret() -> None:
    assert shown(f"a\n{TOKEN} x\x1b[31m") == "a\\n**** x\\x1b[31m"


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
