from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from renderer.codes import CODES, SECTIONS, page

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for path in (ROOT / "renderer").rglob("*.py") if path.parent.name != "codes")
_REPORTS = re.compile(r"(?i)problem|refuse|^_at$|^_code$")
_CODE = re.compile(r"[a-z]+(?:-[a-z0-9]+)*")


def name_of(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def literals(source: Path) -> set[str]:
    """Return every text in a module that could be a code."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CODE.fullmatch(node.value)
    }


def reported(source: Path) -> Iterator[str]:
    """Yield the code that each problem made in a module is given as a text: always the first such argument."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and _REPORTS.search(name_of(node)):
            first = node.args[:1] if name_of(node) in {"Problem", "refuse"} else node.args
            for argument in first:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and argument.value:
                    if _CODE.fullmatch(argument.value):
                        yield argument.value
                    break


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_code_is_in_the_table(source: Path) -> None:
    assert set(reported(source)) - CODES.keys() == set()


def test_every_code_of_the_table_is_reported_somewhere() -> None:
    used = set().union(*map(literals, SOURCES))
    assert CODES.keys() - used == set()


def test_codes_are_named_once() -> None:
    assert sum(len(codes) for _, codes in SECTIONS) == len(CODES)


def test_texts_are_sentences() -> None:
    for code in CODES.values():
        for text in (code.cause, code.remedy):
            assert text.endswith("."), code.name
            assert "|" not in text, code.name


def test_the_page_is_what_the_table_says() -> None:
    assert (ROOT / "docs/checks.md").read_text(encoding="utf-8") == page(), "run python tools/generate.py"
