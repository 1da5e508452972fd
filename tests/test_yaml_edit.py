"""Rewriting files: the stable form keeps every value and comment, and an edit writes what every reader reads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from content import SHIPPED
from hypothesis import example, given
from hypothesis import strategies as st
from test_fuzz import MUTATIONS

from renderer.problem import Problem, RefusedError
from renderer.scalars import write
from renderer.yaml_edit import edited, formatted
from renderer.yaml_io import plain, read

FILES = [
    path for folder in ("experiments", "presets", "datasets") for path in sorted((SHIPPED / folder).rglob("*.yml"))
]


def values(data: bytes) -> str:
    problems: list[Problem] = []
    found = plain(read(data, "f.yml", problems))
    assert problems == []
    return json.dumps(found, sort_keys=True, default=repr)


def comments(data: bytes) -> list[str]:
    return sorted(line.partition("#")[2].strip() for line in data.decode().splitlines() if "#" in line)


def check(data: bytes) -> bytes:
    out = formatted(data, "f.yml")
    assert values(out) == values(data)
    assert comments(out) == comments(data)
    assert formatted(out, "f.yml") == out
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SHIPPED).as_posix())
def test_shipped_file_is_in_its_stable_form(path: Path) -> None:
    assert check(path.read_bytes()) == path.read_bytes()


@given(st.sampled_from(FILES), st.integers(0, 2**32))
def test_any_readable_edit_of_a_real_file_keeps_its_values_and_comments(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    text = path.read_text()
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(MUTATIONS)(rng, text)
    data = text.encode("utf-8", "replace")
    problems: list[Problem] = []
    read(data, "f.yml", problems)
    if not problems:
        check(data)
    else:
        with pytest.raises(RefusedError):
            formatted(data, "f.yml")


COMMENT = st.sampled_from(["", "  # why", "# x: 1", "#", "   #    spaced   "])
KEY = st.sampled_from(["launch", "deploy", "maxtext", "checks", "model", "chips", "a b", "state", "name", "x"])
VALUE = st.sampled_from(
    [
        "1",
        "1.0",
        "true",
        "null",
        '"q"',
        "'s'",
        "text",
        "[1, 2]",
        "{a: 1}",
        "!remove",
        "|\n  a\n  b",
        ">-\n  a\n  b",
        "|+\n  a\n\n",
        "3.0e-4",
        '"#"',
    ]
)
LINES = st.lists(st.tuples(KEY, VALUE, COMMENT, st.booleans()), max_size=6, unique_by=lambda line: line[0])


@given(LINES)
@example([("x", "|+\n  a\n\n", "", False)])
@example([("maxtext", "1", "  # why", True), ("launch", "{a: 1}", "# x", True)])
def test_any_readable_file_keeps_its_values_and_comments(lines: list[tuple[str, str, str, bool]]) -> None:
    text = ""
    for key, value, comment, above in lines:
        text += f"{comment}\n" if above else ""
        text += f"{key}: {value}" + ("" if above or "\n" in value else f" {comment}") + "\n"
    problems: list[Problem] = []
    read(text.encode(), "f.yml", problems)
    if not problems:
        check(text.encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("maxtext: {}\nlaunch: {}\n", "launch: {}\nmaxtext: {}\n"),
        ("launch:\n    chips: 64\n    model: m\n", "launch:\n  model: m\n  chips: 64\n"),
        ("a:\n- 1\n- 2\n", "a:\n  - 1\n  - 2\n"),
        ("a: 1\r\nb: 2", "a: 1\nb: 2\n"),
        ("\ufeffa: 1\n\n\n", "a: 1\n"),
        ("", ""),
        ("# only this", "# only this\n"),
        ("a: 3.0e-4  # rate\nb: 'x'\n", "a: 3.0e-4  # rate\nb: 'x'\n"),
        ("a: |+\n  x\n\n\n", "a: |+\n  x\n\n\n"),
    ],
)
def test_stable_form(before: str, after: str) -> None:
    assert formatted(before.encode(), "f.yml").decode() == after
    assert formatted(after.encode(), "f.yml").decode() == after


def test_what_the_strict_reader_refuses_is_refused() -> None:
    with pytest.raises(RefusedError) as refused:
        formatted(b"a: 010\n", "f.yml")
    assert str(refused.value).startswith("f.yml:1:4: a: leading zero: ")


TEXT = st.one_of(
    st.sampled_from(
        [
            "on",
            "n",
            "0012",
            "1e5",
            "12:30",
            "2026-01-01",
            "null",
            "",
            " lead",
            "trail ",
            "# x",
            "a: b",
            "- x",
            "!remove",
            "*a",
            "a\nb",
            "1_000",
            "=",
            "<<",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
)


@given(
    TEXT, st.recursive(TEXT | st.integers(-5, 5) | st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=4)
)
def test_an_edit_is_read_back_as_it_was_given(text: str, value: Any) -> None:
    base = b"# kept\nlaunch: {}\ndeploy:\n  ENV: {A: b}  # kept too\n"
    out = edited(base, "f.yml", {"launch": {"branch": text}, "deploy": {"ENV.B": text}, "maxtext": {"x": value}})
    assert plain(read(out, "f.yml", [])) == {
        "launch": {"branch": text},
        "deploy": {"ENV": {"A": "b", "B": text}},
        "maxtext": {"x": value},
    }
    assert comments(out)[:2] == comments(base) or "#" in text + write(value)
    values(out)


def test_an_edit_replaces_an_empty_section_and_keeps_the_order() -> None:
    out = edited(b"maxtext:\nlaunch:\n  chips: 64\n", "f.yml", {"maxtext": {"steps": 5}, "launch": {"model": "m"}})
    assert out == b"launch:\n  model: m\n  chips: 64\nmaxtext:\n  steps: 5\n"
