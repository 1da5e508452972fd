"""The comment: within its limit for any report, and no text in it can be anything but text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hostile import TEXTS, report
from markdown_it import MarkdownIt
from markdown_it.token import Token

from renderer.plan import Effect
from renderer.report import markdown, words
from renderer.report.data import VERSION, Impact, Report, Row, Size, Totals

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
        ("é 東京 №5 α", "`é 東京 №5 α`"),
        ("א→ב", "`\\u05d0→\\u05d1`"),
        ("ع١ 1", "`\\u0639\\u0661 1`"),
        ("\U0001e900", "`\\U0001e900`"),
        ("\u202e\u2067x\u200f", "`\\u202e\\u2067x\\u200f`"),
    ],
    ids=ascii,
)
def test_no_letter_has_a_line_shown_from_right_to_left(text: str, shown: str) -> None:
    assert markdown.code(text) == shown


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
        ("the owner is אב now", "the owner is `\\u05d0\\u05d1` now"),
    ],
)
def test_prose_keeps_plain_words(text: str, shown: str) -> None:
    assert markdown.prose(text) == shown


def test_only_an_https_address_becomes_a_link() -> None:
    empty = Report(VERSION, "main", "b" * 40, "c" * 40, "the history of main", Totals())
    assert markdown.render(empty, "https://ci.example/run/1").endswith(
        "It is all in [the whole report](https://ci.example/run/1), which the branch's own code made, unchecked.\n"
    )
    assert markdown.render(empty, "javascript:alert(1)").endswith(
        "It is all in `javascript:alert(1)`, which the branch's own code made, unchecked.\n"
    )
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


def row(**size: int) -> Row:
    return Row(Effect.LAUNCH, "m/run", "test", "run", "f.yml", "", "", "", "", "", Size(**size))


@pytest.mark.parametrize(
    ("count", "texts"),
    [
        (1, ["1 chip, 1 device", "1 step", "1 chip-hour by its last result"]),
        (2, ["2 chips, 2 devices", "2 steps", "2 chip-hours by its last result"]),
    ],
)
def test_sizes_agree_with_their_nouns(count: int, texts: list[str]) -> None:
    assert list(words.sizes(row(chips=count, devices=count, steps=count, chip_hours=count))) == texts
    assert list(words.sizes(row(chips=count, steps=count, tokens=2000)))[1] == f"2 k tokens in {texts[1]}"


@pytest.mark.parametrize(
    ("impact", "said"),
    [
        (
            Impact((), frozen=1, changed=0, earlier=1, invalid=0),
            "Of 1 frozen run that uses an edited file, 0 would change; 1 differs only by earlier edits. "
            "It stays as rendered until someone renders it again.",
        ),
        (
            Impact((), frozen=3, changed=1, earlier=2, invalid=0),
            "Of 3 frozen runs that use an edited file, 1 would change; 2 differ only by earlier edits. "
            "They stay as rendered until someone renders them again.",
        ),
    ],
)
def test_frozen_runs_agree_with_their_verbs(impact: Impact, said: str) -> None:
    assert words.blast(impact) == said
