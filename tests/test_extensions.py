"""A fork's own keys: which it may add, and how its file is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from content import Content

from renderer.extensions import Schemas
from renderer.layers import Repository
from renderer.location import COMMAND_LINE
from renderer.problem import Problem

FILE = "presets/ling3-flash/extensions.yml"


def wrong(content: Content, text: str) -> list[str]:
    content.write(FILE, text)
    return problems(content)


def problems(content: Content) -> list[str]:
    found: list[Problem] = []
    Schemas(Repository(content.root)).snapshot("ling3-flash", "0.2.5", COMMAND_LINE, found)
    return [str(problem) for problem in found]


def test_keys_and_values_are_added(content: Content) -> None:
    assert wrong(content, "keys: {own_key2: {type: string}}\nenums: {dataset_type: [lazy]}\n") == []
    snapshot = Schemas(Repository(content.root)).snapshot("ling3-flash", "0.2.5", COMMAND_LINE, [])
    assert snapshot is not None
    assert snapshot.keys["own_key2"] == {"type": "string"}
    assert "lazy" in str(snapshot.keys["dataset_type"])


@pytest.mark.parametrize("text", ["", "keys:\nenums:\n", "keys: {}\n"])
def test_an_empty_file_adds_nothing(text: str, content: Content) -> None:
    assert wrong(content, text) == []


@pytest.mark.parametrize("key", ["a b", "a: b", "A", "1a", "_a", "a-b", "a.b", "", "a\\n", "é", "${x}", "#"])
def test_a_key_is_small_letters_digits_and_underscores(key: str, content: Content) -> None:
    shown = key.replace("\\n", "\\n")
    message = "is not the name of a key: small letters, digits and _, a letter first"
    assert wrong(content, f'keys: {{"{key}": {{type: string}}}}\n') == [f"{FILE}:1:8: keys.{shown}: {message}"]


@pytest.mark.parametrize("key", ["on", "off", "yes", "no", "y", "n", "true", "false", "null"])
def test_a_key_is_no_boolean_and_no_null(key: str, content: Content) -> None:
    message = "is a boolean or null to some readers: the fork has to name it otherwise"
    assert wrong(content, f'keys: {{"{key}": {{type: string}}}}\n') == [f"{FILE}:1:8: keys.{key}: {message}"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("keys: 5\n", ":1:7: keys: must be a mapping of keys"),
        ("enums: [a]\n", ":1:8: enums: must be a mapping of keys"),
        ("keys: {own: string}\n", ":1:13: keys.own: must be a mapping such as {type: string}"),
        ("enums: {dataset_type: lazy}\n", ":1:23: enums.dataset_type: must be a list of further values"),
        ("key: {}\n", ": key: unknown: write keys: or enums:"),
    ],
)
def test_another_form_is_named(text: str, problem: str, content: Content) -> None:
    assert wrong(content, text) == [f"{FILE}{problem}"]


def test_what_is_there_but_no_file_is_not_absent(content: Content, tmp_path: Path) -> None:
    path = content.root / FILE
    path.rename(tmp_path / "extensions.yml")
    assert problems(content) == []
    path.symlink_to(tmp_path / "extensions.yml")
    assert problems(content) == [f"{FILE}: lies outside the repository: what is launched must be reviewed here"]
    path.unlink()
    path.symlink_to("nowhere.yml")
    assert problems(content) == [f"{FILE}: is a symbolic link, of which git keeps only where it leads"]
    path.unlink()
    os.mkfifo(path)
    assert problems(content) == [f"{FILE}: is not a regular file"]
    path.unlink()
    path.mkdir()
    assert problems(content) == [f"{FILE}: is a folder"]
