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
from renderer.scalars import Value, write
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
        # ruamel.yaml raises IndexError, ComposerError and others: the file stays as it is, tidied
        ("run_name:   -_\r\n\n", "run_name:   -_\n"),
        ("run_name: +_", "run_name: +_\n"),
        ("a:   1\n...\n...\n", "a:   1\n...\n...\n"),
        # a comment stays with its key, and therefore the keys in their order
        ("# m\nmaxtext: {}\n# l\nlaunch: {}\n", "# m\nmaxtext: {}\n# l\nlaunch: {}\n"),
        ("maxtext: {}\n# l\nlaunch: {}\n", "maxtext: {}\n# l\nlaunch: {}\n"),
        ("maxtext:\n  a: 1\n  # b: 2\nlaunch: {}\n", "maxtext:\n  a: 1\n  # b: 2\nlaunch: {}\n"),
        ("launch:\n  chips: 1\n  # m\n  model: m\n", "launch:\n  chips: 1\n  # m\n  model: m\n"),
        (
            "# m\nmaxtext: {}\nlaunch:\n  chips: 1\n  model: m\n",
            "# m\nmaxtext: {}\nlaunch:\n  model: m\n  chips: 1\n",
        ),
        (
            "maxtext:  # m\n  # a\n  a: 1\n  # b\n  b: 1\nlaunch: {}  # l\n",
            "launch: {}  # l\nmaxtext:  # m\n  # a\n  a: 1\n  # b\n  b: 1\n",
        ),
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
    changes = {("launch", "branch"): text, ("deploy", "ENV", "B"): text, ("maxtext", "x"): value}
    out = edited(base, "f.yml", changes)
    assert plain(read(out, "f.yml", [])) == {
        "launch": {"branch": text},
        "deploy": {"ENV": {"A": "b", "B": text}},
        "maxtext": {"x": value},
    }
    assert comments(out)[:2] == comments(base) or "#" in text + write(value)
    values(out)


def test_an_edit_replaces_an_empty_section_and_keeps_the_order() -> None:
    changes: dict[tuple[str, ...], Value] = {("maxtext", "steps"): 5, ("launch", "model"): "m"}
    out = edited(b"maxtext:\nlaunch:\n  chips: 64\n", "f.yml", changes)
    assert out == b"launch:\n  model: m\n  chips: 64\nmaxtext:\n  steps: 5\n"


def change(text: str, changes: dict[tuple[str, ...], Value]) -> str:
    return edited(text.encode(), "f.yml", changes).decode()


def test_a_dot_in_a_key_does_not_part_it() -> None:
    changes: dict[tuple[str, ...], Value] = {("deploy", "VOLUMES", "/mnt/a.b"): "c", ("maxtext", "x"): {"a.b": {}}}
    assert change("launch: {}\n", changes) == (
        "launch: {}\ndeploy:\n  VOLUMES:\n    /mnt/a.b: c\nmaxtext:\n  x:\n    a.b: {}\n"
    )


def test_a_file_of_comments_keeps_them() -> None:
    assert change("# why\n\n# more\n", {("launch", "model"): "m"}) == "# why\n\n# more\nlaunch:\n  model: m\n"


def test_new_keys_do_not_come_between_a_comment_and_its_key() -> None:
    before = "launch:\n  a: 1  # x\n# about maxtext\nmaxtext:\n  b: 1\n# foot\n"
    after = (
        "launch:\n  a: 1  # x\n  owner: m\n# about maxtext\nmaxtext:\n  b: 1\n# foot\n"
        '  l:\n    - 1\n    - [2, "on"]\ndeploy:\n  ENV:\n    B: "0012"\n'
    )
    changes: dict[tuple[str, ...], Value] = {
        ("launch", "owner"): "m",
        ("deploy", "ENV", "B"): "0012",
        ("maxtext", "l"): [1, [2, "on"]],
    }
    assert change(before, changes) == after


def test_a_mapping_joins_the_one_that_is_there_and_an_empty_one_changes_nothing() -> None:
    changes: dict[tuple[str, ...], Value] = {("deploy", "ENV"): {"B": "2"}, ("deploy", "VOLUMES"): {}}
    before = "deploy:\n  ENV: {A: b}\n  VOLUMES: {c: d}\n"
    assert change(before, changes) == 'deploy:\n  ENV: {A: b, B: "2"}\n  VOLUMES: {c: d}\n'


def test_a_replaced_value_takes_the_comments_inside_it_along() -> None:
    assert change("a:\n  - 1  # x\n  - 2\nb: 3  # y\n", {("a",): 4}) == "a: 4\nb: 3  # y\n"


WHOLE = "f.yml: is written in a way that no edit keeps whole: simplify it, or copy it and change the copy by hand"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("run_name: -_\n", WHOLE),
        ("run_name: +_\n", WHOLE),
        ("a: 1\n...\n...\n", WHOLE),
        ("launch:\n  a: |\n    x\n# m\nmaxtext: {}\n", WHOLE),
        (
            "launch: 5\n",
            "f.yml: launch: is a single value in this file, but a mapping is given: write the same shape in both",
        ),
        (
            "launch:\n  model: {a: 1}\n",
            "f.yml: launch.model: is a mapping in this file, but a single value is given: write the same shape in both",
        ),
        (
            "launch: !remove\n",
            "f.yml: launch: is a single value in this file, but a mapping is given: write the same shape in both",
        ),
    ],
)
def test_what_no_edit_keeps_whole_is_refused(text: str, problem: str) -> None:
    with pytest.raises(RefusedError) as refused:
        change(text, {("launch", "model"): "m"})
    assert str(refused.value) == problem
