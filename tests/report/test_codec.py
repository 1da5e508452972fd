"""The report as JSON: there and back, and what a forged artifact cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from content import SHIPPED
from hostile import beyond, report
from repository import Repo

from renderer.report import codec, markdown
from renderer.report.codec import UnreadableError, decode, encode
from renderer.report.data import Impact, Report, Row


@pytest.mark.parametrize("seed", range(10))
def test_there_and_back(seed: int) -> None:
    made = replace(report(seed), base="b" * 40, head="c" * 40)
    back = decode(encode(made).encode())
    assert decode(encode(back).encode()) == back
    if back.left_out == made.left_out:
        assert markdown.render(back) == markdown.render(made)


def test_the_published_schema_is_the_one_in_use() -> None:
    published = (SHIPPED / "schemas/report.schema.json").read_text("utf-8")
    assert published == codec.published(), "run tools/generate.py"


def test_a_report_that_is_too_large_is_cut_and_says_so() -> None:
    made = report(0)
    row = next(row for row in report(1).rows)
    rows: tuple[Row, ...] = (replace(row, reason="x" * 900),) * 9000
    text = encode(replace(made, rows=rows, left_out=()))
    assert len(text.encode()) <= codec.MAX_BYTES
    back = decode(text.encode())
    assert len(back.rows) < 5000
    assert back.left_out[0] == f"{9000 - len(back.rows)} of 9000 rows"
    assert markdown.length(markdown.render(back)) <= markdown.LIMIT


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_report_holds_its_reader_takes_it(seed: int) -> None:
    text = encode(beyond(seed))
    assert len(text.encode()) <= codec.MAX_BYTES
    back = decode(text.encode())
    assert decode(encode(back).encode()) == back


def test_what_the_schema_has_no_room_for_is_cut() -> None:
    row = next(row for row in report(1).rows)
    hours = replace(row.size, chip_hours=2.0**70, steps=-1)
    made = replace(report(2), rows=(replace(row, owner="x" * 4001, size=hours),), left_out=())
    back = decode(encode(made).encode())
    assert back.rows[0].owner == "x" * 3999 + "…"
    assert (back.rows[0].size.chip_hours, back.rows[0].size.steps) == (2**62, 0)
    assert back.left_out == ()


def test_very_many_edited_files_are_cut_too() -> None:
    files = tuple(f"datasets/{'x' * 1000}{number}.yml" for number in range(6000))
    empty = replace(report(2), **dict.fromkeys(("rows", "values", "derived", "notes", "left_out"), ()))
    back = decode(encode(replace(empty, impact=Impact(files, 6, 0, 0, 0))).encode())
    assert back.impact is not None
    assert back.impact.files == files[:2500]
    assert back.left_out[-1] == "3500 of 6000 edited files"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "is not a report: version: 1 was expected"),
        ({"number": 7}, "is not a report: the file: Additional properties are not allowed ('number' was unexpected)"),
        ({"base": 1}, 'is not a report: base: 1 is not of type "string"'),
        ({"base": "x" * 5000}, None),
        ({"rows": [{}]}, 'is not a report: rows/0: "effect" is a required property'),
        ({"totals": None}, None),
        ({"deleted": ["x"] * 6000}, None),
    ],
)
def test_a_forged_artifact_is_refused(change: dict[str, Any], message: str | None) -> None:
    data = {**json.loads(encode(report(2))), **change}
    with pytest.raises(UnreadableError) as refused:
        decode(json.dumps(data).encode())
    assert message is None or str(refused.value) == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"a": NaN}',
        b"\xff\xfe",
        b"1" * 10_000,
        b" " * (10 << 20),
        b'"\\ud800"',
    ],
)
def test_what_is_no_report_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableError):
        decode(data)


def test_markdown_is_made_from_the_artifact(repo: Repo, tmp_path: Path) -> None:
    repo.branch("topic")
    repo.experiment()
    repo.commit()
    artifact = tmp_path / "report.json"
    assert repo.report("--format", "json", "--output", str(artifact)).code == 0
    assert repo.content.run("report", "--from-json", str(artifact)).out == repo.report().out
    artifact.write_bytes(b"{}")
    ran = repo.content.run("report", "--from-json", str(artifact))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == 'report.json: is not a report: the file: "version" is a required property\n'
    assert repo.content.run("report", "--from-json", str(tmp_path)).code == 1


def test_text_of_any_kind_survives(tmp_path: Path) -> None:
    made: Report = replace(report(3), paused="\ud800 \x00 🜚")
    assert decode(encode(made).encode()).paused == "\\ud800 \x00 🜚"
