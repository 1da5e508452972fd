"""What an untrusted job may hand over to be committed."""

from __future__ import annotations

import json

import pytest

from flow.changes import MAX_FILE, MAX_FILES, MAX_JSON, Changes, decode, encode, files_of
from flow.refusal import RefusedError

HEAD = "0123456789abcdef0123456789abcdef01234567"
GOOD = "rendered/test/qwen3-0.6b/run/jobset.yml"


def changes(files: object, head: object = HEAD, base: object = "main") -> bytes:
    return json.dumps({"head": head, "base": base, "files": files}).encode()


def test_what_was_collected_is_read_back() -> None:
    files = {GOOD: "é: 1\r\n".encode(), "rendered/_pod/0123456789ab/train.py": None, "results/m/n/2026.json": b""}
    made = Changes(HEAD, "main", files)
    assert decode(encode(made).encode()) == made


@pytest.mark.parametrize(
    "path",
    [
        "rendered",
        "rendered/",
        "/rendered/a",
        "./rendered/a",
        "rendered//a",
        "rendered/../.github/workflows/check.yml",
        "rendered/..",
        "rendered/./a",
        "rendered/a/",
        "rendered/a\n",
        "rendered/a\0b",
        "rendered/a b",
        "rendered/.gitattributes",
        "rendered/test/.git/config",
        "rendered/-a",
        "rendered/é",
        "rendered\\a",
        "rendered/a\tb",
        'rendered/"a"',
        "Rendered/a",
        "renderer/cli.py",
        "renderedx/a",
        ".github/workflows/check.yml",
        ".git/hooks/post-checkout",
        "presets/policy.yml",
        "results",
        "",
        "rendered/" + "a" * 250,
    ],
)
def test_no_other_path_is_taken(path: str) -> None:
    with pytest.raises(RefusedError, match="is not a path that may be written"):
        decode(changes({path: "x"}))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the changes are no JSON"),
        (b"\xff", "the changes are no JSON"),
        (b"[" * 100_000, "the changes are no JSON"),
        (b"[]", "the changes must be an object of head, base and files"),
        (b'{"head": "%s", "files": {}}' % HEAD.encode(), "the changes must be an object of head, base and files"),
        (changes([]), "the changes must be an object of head, base and files"),
        (changes({}, "main"), "the changes name no commit"),
        (changes({}, HEAD + "\n"), "the changes name no commit"),
        (changes({}, 7), "the changes name no commit"),
        (changes({}, base=None), "the changes name no branch"),
        (changes({GOOD: 1}), f"{GOOD}: its content must be text or null"),
        (changes({GOOD: "\ud800"}), f"{GOOD}: its content is not text"),
        (changes({GOOD: "é" * (MAX_FILE // 2 + 1)}), f"{GOOD}: has more than 1,048,576 bytes"),
        (
            changes({f"rendered/{n}": "" for n in range(MAX_FILES + 1)}),
            "the changes hold 20,001 files, more than 20,000",
        ),
        (b" " * (MAX_JSON + 1), "the changes have more than 33,554,432 bytes"),
    ],
)
def test_nothing_else_is_taken(data: bytes, message: str) -> None:
    with pytest.raises(RefusedError) as error:
        decode(data)
    assert str(error.value) == message


def test_the_untrusted_job_says_what_it_cannot_hand_over() -> None:
    with pytest.raises(RefusedError) as error:
        encode(Changes(HEAD, "main", {GOOD: b"\xff"}))
    assert str(error.value) == f"{GOOD}: is not UTF-8"


@pytest.mark.parametrize(("count", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files")])
def test_files_are_counted_with_their_noun(count: int, text: str) -> None:
    assert files_of(count) == text
