"""The files that rendering changed, as data: what an untrusted job hands to the job that commits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flow.refusal import RefusedError

FOLDERS = ("rendered", "results")
MAX_JSON = 32 << 20
MAX_FILES = 20_000
MAX_FILE = 1 << 20

_PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})(?:/[A-Za-z0-9_][A-Za-z0-9._+=-]*)+", re.ASCII)
"""No part starts with a dot: neither .. nor .gitattributes, which could hide files from reviewers."""
MAX_PATH = 250


@dataclass(frozen=True, slots=True)
class Changes:
    """What to write on top of commit `head`: bytes by path, None for a file that is removed.

    `base` is the branch that it was rendered against: which runs are frozen, and with which bytes, follows from it.
    """

    head: str
    base: str
    files: Mapping[str, bytes | None]


def files_of(count: int) -> str:
    """Return a number of files with its noun."""
    return "1 file" if count == 1 else f"{count} files"


def encode(changes: Changes) -> str:
    """Return the changes as JSON; refuses what `decode` would not take."""
    files = {path: None if data is None else _text(path, data) for path, data in sorted(changes.files.items())}
    text = json.dumps({"head": changes.head, "base": changes.base, "files": files}, indent=1) + "\n"
    decode(text.encode())
    return text


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise RefusedError(f"{path}: is not UTF-8") from None


def decode(data: bytes) -> Changes:
    """Return the changes; refuses every path but regular files of FOLDERS, and whatever is too large."""
    if len(data) > MAX_JSON:
        raise RefusedError(f"the changes have more than {MAX_JSON:,} bytes")
    try:
        raw = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise RefusedError("the changes are no JSON") from None
    if not isinstance(raw, dict) or raw.keys() != {"head", "base", "files"} or not isinstance(raw["files"], dict):
        raise RefusedError("the changes must be an object of head, base and files")
    head, base, files = raw["head"], raw["base"], raw["files"]
    if not isinstance(head, str) or not re.fullmatch("[0-9a-f]{40}", head):
        raise RefusedError("the changes name no commit")
    if not isinstance(base, str):
        raise RefusedError("the changes name no branch")
    if len(files) > MAX_FILES:
        raise RefusedError(f"the changes hold {len(files):,} files, more than {MAX_FILES:,}")
    return Changes(head, base, {path: _content(path, value) for path, value in files.items()})


def _content(path: str, value: Any) -> bytes | None:
    if len(path) > MAX_PATH or not _PATH.fullmatch(path):
        raise RefusedError(f"{path[:MAX_PATH]!r} is not a path that may be written")
    if value is None:
        return None
    if not isinstance(value, str):
        raise RefusedError(f"{path}: its content must be text or null")
    try:
        content = value.encode()
    except UnicodeEncodeError:
        raise RefusedError(f"{path}: its content is not text") from None
    if len(content) > MAX_FILE:
        raise RefusedError(f"{path}: has more than {MAX_FILE:,} bytes")
    return content
