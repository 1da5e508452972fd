"""Strict reading: every refusal with its place and the form to write, and no trace of line ends or byte order marks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer.location import Location
from renderer.manifest_yaml import load
from renderer.problem import Problem
from renderer.scalars import write
from renderer.yaml_io import MAX_BYTES, REMOVED, plain, read, read_file


def problems(text: str | bytes) -> list[str]:
    found: list[Problem] = []
    read(text if isinstance(text, bytes) else text.encode(), "f.yml", found)
    return [str(problem) for problem in found]


REFUSED = {
    "a: 1\na: 2\n": ["f.yml:2:1: a: written twice, first on line 1: keep one"],
    "m:\n  a: 1\n  b: 2\n  a: 3\n": ["f.yml:4:3: m.a: written twice, first on line 2: keep one"],
    "<<: {a: 1}\n": ["f.yml:1:1: merge key <<: the layers are merged, so write the keys themselves"],
    "a: &x 1\nb: *x\n": [
        "f.yml:1:4: a: anchor &x: write the value where it is needed",
        "f.yml:2:4: b: alias *x: write the value itself",
    ],
    "a: &x [1]\nb: {c: *x}\n": [
        "f.yml:1:4: a: anchor &x: write the value where it is needed",
        "f.yml:2:8: b.c: alias *x: write the value itself",
    ],
    "a: !!str 1\n": ["f.yml:1:4: a: unknown tag !!str: only !remove is known; quote text instead"],
    "a: !x {b: 1}\n": ["f.yml:1:4: a: unknown tag !x: only !remove is known; quote text instead"],
    "a: !remove 1\n": ["f.yml:1:4: a: !remove takes no value"],
    "a: !remove [1]\n": ["f.yml:1:4: a: !remove takes no value"],
    "a: [1, !remove ]\n": ["f.yml:1:8: a[1]: !remove takes a key out of a mapping, not an item out of a list"],
    "a: 1\n---\nb: 2\n": ["f.yml:2:1: a second document: write one file for each"],
    "%YAML 1.1\n---\na: 1\n": ["f.yml:1:1: a % directive changes how the file is read: remove it"],
    "- 1\n": ["f.yml:1:1: the file must be a mapping of keys, not a list or a single value"],
    "just text\n": ["f.yml:1:1: the file must be a mapping of keys, not a list or a single value"],
    "a: 1\n\tb: 2\n": ["f.yml:2:1: tab character: write spaces"],
    "a:\t1\n": ["f.yml:1:3: tab character: write spaces"],
    "a:\n  - 1\n  -\t2\n": ["f.yml:3:4: tab character: write spaces"],
    "a: [1, 2\n": ["f.yml:2:1: while parsing a flow sequence, did not find expected ',' or ']'"],
    "a: 1\n b: 2\n": ["f.yml:2:3: mapping values are not allowed in this context"],
    'a: "\n': ["f.yml:2:1: while scanning a quoted scalar, found unexpected end of stream"],
    "on: 1\n": ['f.yml:1:1: the key on is not text to every reader: write "on"'],
    "1: a\n": ['f.yml:1:1: the key 1 is not text to every reader: write "1"'],
    "null: a\n": ['f.yml:1:1: the key null is not text to every reader: write "null"'],
    "? \n: a\n": ['f.yml:1:2: the key (empty) is not text to every reader: write ""'],
    "2026-01-01: a\n": ['f.yml:1:1: the key 2026-01-01 is not text to every reader: write "2026-01-01"'],
    "? [a]\n: 1\n": ["f.yml:1:3: a key must be text"],
    "? {a: 1}\n: 1\n": ["f.yml:1:3: a key must be text"],
    "&x a: 1\n": ["f.yml:1:1: a key must be plain text, without anchor or tag"],
    "!!str a: 1\n": ["f.yml:1:1: a key must be plain text, without anchor or tag"],
    "a: 010\nb: no\n": [
        'f.yml:1:4: a: leading zero: readers take 010 for octal, decimal or text: write 10, or "010" for the text',
        'f.yml:2:4: b: no is a boolean to YAML 1.1 and text to YAML 1.2: write false, or "no" for the text',
    ],
    "a: [1, on]\n": [
        'f.yml:1:8: a[1]: on is a boolean to YAML 1.1 and text to YAML 1.2: write true, or "on" for the text'
    ],
    "a: x\x00y\n": ["f.yml:1:5: control character \\x00: remove it"],
    "a: 1\n# \x1b[31m\n": ["f.yml:2:3: control character \\x1b: remove it"],
    "a: x\u2028y\n": [
        "f.yml:1:5: \\u2028 is a line break to YAML 1.1 only: write it escaped in a double-quoted string"
    ],
    "a: 1\n\ufeffb: 2\n": ["f.yml:2:1: control character \\ufeff: remove it"],
    'a: "\\ud800"\n': ["f.yml:1:7: while parsing a quoted scalar, found invalid Unicode character escape code"],
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_refusal(text: str) -> None:
    assert problems(text) == REFUSED[text]


def test_bytes_that_are_no_text_are_placed() -> None:
    assert problems(b"a: 1\nb: \xff\n") == ["f.yml:2:4: is not UTF-8 text"]


def test_nesting_ends_where_people_stop_reading() -> None:
    assert problems("a: " + "[" * 33 + "]" * 33) == [f"f.yml:1:36: a{'[0]' * 32}: nested more than 32 levels deep"]
    assert problems("a: " + "[" * 32 + "]" * 32) == []
    assert len(problems("? " * 5000)) > 0


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "null\n", "~"])
def test_a_file_with_nothing_in_it_is_an_empty_mapping(text: str) -> None:
    found: list[Problem] = []
    assert read(text.encode(), "f.yml", found).value == {}
    assert found == []


def test_every_value_has_its_place_and_its_text() -> None:
    node = read(b"a:\n  b: 3e-4\n  c: 'x'\n  d: !remove\n", "f.yml", [])
    inner = node.value["a"].value
    assert (node.value["a"].key_at, node.value["a"].at) == (Location("f.yml", 1, 1), Location("f.yml", 2, 3))
    assert (inner["b"].value, inner["b"].text, inner["b"].key_at, inner["b"].at) == (
        0.0003,
        "3e-4",
        Location("f.yml", 2, 3),
        Location("f.yml", 2, 6),
    )
    assert (inner["c"].value, inner["c"].text) == ("x", None)
    assert inner["d"].value is REMOVED


def test_block_scalars_and_tabs_inside_text_stay() -> None:
    text = 'a: |\n  x\ty\n\n  z\nb: >-\n  one\n  two\nc: "t\tu" # a\ttab\n# \t comment\n'
    found: list[Problem] = []
    assert plain(read(text.encode(), "f.yml", found)) == {"a": "x\ty\n\nz\n", "b": "one two", "c": "t\tu"}
    assert found == []


VALUES = st.dictionaries(
    st.text(min_size=1, max_size=6),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(VALUES)
def test_what_the_renderer_writes_it_reads_back(data: dict[str, object]) -> None:
    text = "".join(f"{write(key)}: {write(value)}\n" for key, value in data.items())  # type: ignore[arg-type]
    found: list[Problem] = []
    assert plain(read(text.encode(), "f.yml", found)) == data
    assert found == []
    assert load(text) == (data or None)


@given(VALUES, st.sampled_from([b"\r\n", b"\r", b"\n"]), st.booleans())
def test_line_ends_and_byte_order_mark_leave_no_trace(data: dict[str, object], end: bytes, mark: bool) -> None:
    text = "".join(f"{write(key)}: {write(value)}\n# comment\n" for key, value in data.items())  # type: ignore[arg-type]
    written = (b"\xef\xbb\xbf" if mark else b"") + text.encode().replace(b"\n", end)
    one, other = read(text.encode(), "f.yml", []), read(written, "f.yml", [])
    assert plain(one) == plain(other)
    assert [(key, node.at, node.key_at) for key, node in one.value.items()] == [
        (key, node.at, node.key_at) for key, node in other.value.items()
    ]


def test_a_multi_line_block_in_crlf_is_the_same_text() -> None:
    assert plain(read(b"a: |\r\n  x\r\n  y\r\n", "f.yml", [])) == {"a": "x\ny\n"}


@pytest.mark.parametrize(
    "data",
    [
        b"# " + b"\t" * 900_000,
        b"a: [" + b'"\t",' * 200_000 + b"]\n",
        b"# \t\n" * 200_000,
        b"a: " + b"[" * 900_000,
        b"? " * 400_000,
        b"a: {" + b"b: " * 300_000,
        b"k: 1\n" * 200_000,
        b'"' + b"a" * 900_000,
    ],
    ids=[
        "comment of tabs",
        "quoted tabs",
        "comments with tabs",
        "brackets",
        "keys",
        "values",
        "one key again",
        "no end",
    ],
)
def test_the_largest_hostile_file_is_read_in_seconds(data: bytes) -> None:
    start = time.process_time()
    problems(data)
    assert time.process_time() - start < 10


def test_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "large.yml").write_bytes(b"#" * (MAX_BYTES + 1))
    (tmp_path / "folder.yml").mkdir()
    found: list[Problem] = []
    for name in ("large.yml", "folder.yml", "absent.yml", "nul\0.yml", "x" * 300):
        assert read_file(tmp_path / name, name[:10], found).value == {}
    assert [str(problem) for problem in found] == [
        "large.yml: is larger than 1048576 bytes",
        "folder.yml: is a folder",
        "absent.yml: does not exist",
        "nul\\x00.yml: does not exist",
        "xxxxxxxxxx: cannot be read: File name too long",
    ]


def test_what_is_larger_than_a_file_may_be_is_not_parsed() -> None:
    text = "#" * (MAX_BYTES - 5) + "\na: 1"
    assert len(text) == MAX_BYTES
    found: list[Problem] = []
    assert plain(read(text.encode(), "f.yml", found)) == {"a": 1}
    assert found == []
    assert problems(f"{text}\n") == ["f.yml: is larger than 1048576 bytes"]
