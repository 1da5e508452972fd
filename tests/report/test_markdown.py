"""The comment: within its limit for any report, and no text in it can be anything but text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hostile import TEXTS, report
from markdown_it import MarkdownIt
from markdown_it.token import Token

from renderer.report import markdown, words
from renderer.report.data import VERSION, Report, Totals

PARSER = MarkdownIt("commonmark").enable("table").enable("strikethrough")
EXPECTED = {
    "bullet_list",
    "list_item",
    "paragraph",
    "heading",
    "inline",
    "text",
    "code_inline",
    "strong",
    "softbreak",
    "hr",
    "html_block",
}


def tokens(text: str) -> Iterator[Token]:
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


@pytest.mark.parametrize("seed", range(60))
def test_any_report_stays_within_its_limit_and_its_markup(seed: int) -> None:
    text = markdown.render(report(seed))
    assert markdown.length(text) <= markdown.LIMIT
    found = list(tokens(text))
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in found} <= EXPECTED
    assert [token.content for token in found if token.type == "html_block"] == [f"{markdown.MARK}\n"]
    for token in found:
        if token.type == "text":
            assert not set(token.content) & set("@<>[]`#|\\\x00\u202e"), token.content
            assert "http" not in token.content
            assert "www" not in token.content
            assert "c0ffee0" not in token.content
    assert text.splitlines()[-1].startswith("Left out here: ")


@pytest.mark.parametrize("text", TEXTS)
def test_a_code_span_holds_any_text(text: str) -> None:
    (paragraph,) = (token for token in PARSER.parse(f"- {markdown.code(text)} end") if token.type == "inline")
    kinds = [token.type for token in paragraph.children or ()]
    assert kinds == (["code_inline", "text"] if text else ["text"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "its content changed; run-64c-1a2b3c4d is stopped first",
            "its content changed; `run-64c-1a2b3c4d` is stopped first",
        ),
        ("attempt raised from 1 to 2", "attempt raised from 1 to 2"),
        ("3 x state: stopped, and more", "3 x state: stopped, and more"),
        ("1,000 experiments", "1,000 experiments"),
        ("see @someone or deadbeef", "see `@someone` or `deadbeef`"),
        ("", "(empty)"),
    ],
)
def test_prose_keeps_plain_words(text: str, shown: str) -> None:
    assert markdown.prose(text) == shown


def test_only_an_https_address_becomes_a_link() -> None:
    empty = Report(VERSION, "main", "b" * 40, "c" * 40, "the history of main", Totals())
    assert markdown.render(empty, "https://ci.example/run/1").endswith(
        "It is all in [the whole report](https://ci.example/run/1).\n"
    )
    assert markdown.render(empty, "javascript:alert(1)").endswith("It is all in `javascript:alert(1)`.\n")
    assert markdown.render(empty).endswith("It is all in renderer report --format html.\n")


def test_an_empty_merge_says_so() -> None:
    empty = Report(VERSION, "main", "b" * 40, "c" * 40, "the history of main", Totals())
    assert markdown.render(empty).splitlines() == [
        "<!-- renderer report -->",
        "### On merge: nothing is launched or stopped.",
        "",
        "---",
        "`cccccccccccc` into `main` at `bbbbbbbbbbbb`; launched before by the history of main.",
        "Left out here: nothing but the manifests. It is all in renderer report --format html.",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (67_108_864, "67.1 M"), (3_355_443_200_000, "3.36 T"), (2**60, "1,152 P")],
)
def test_large_counts_are_short(value: int, text: str) -> None:
    assert words.short(value) == text
