"""The only reader of YAML that people write: strict, one reading for everyone, every value with its place.

It stands on libyaml's events (through ruamel.yaml.clib): they carry what the refusals need (tags, anchors, quoting,
places) and are ten times as fast as building ruamel.yaml's round-trip objects.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _ruamel_yaml import CParser
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from renderer.location import Location
from renderer.problem import Problem
from renderer.scalars import AmbiguousError, Value, is_text, meaning, quote

MAX_BYTES = 1 << 20
"""Above this a file is refused: a ConfigMap, which it would have to fit into, holds 1 MiB."""
MAX_DEPTH = 32

# Line breaks to YAML 1.1 only, and characters that no reader takes raw.
_RAW = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_COMMENT = re.compile(r"(?:^|\s)#")
_LINE_BREAKS = {"\x85", "\u2028", "\u2029"}


class Removed:
    """The value of `!remove`: the key is taken out of what the lower layers set."""

    def __repr__(self) -> str:
        return "!remove"


REMOVED = Removed()


class Node:
    """A value with its place: `at` where it stands, `key_at` where its key does, `text` how it was written if unquoted.

    A mapping's value is a dict of nodes; a list holds plain values, because lists replace each other whole.
    """

    __slots__ = ("at", "key_at", "text", "value")

    def __init__(self, value: Any, at: Location, key_at: Location | None = None, text: str | None = None) -> None:
        self.value = value
        self.at = at
        self.key_at = key_at or at
        self.text = text

    def __repr__(self) -> str:
        return f"Node({self.value!r}, {self.at})"


def empty(file: str) -> Node:
    """Return the mapping of a file that holds nothing."""
    return Node({}, Location(file, 1, 1))


def read_file(path: Path, name: str, problems: list[Problem]) -> Node:
    """Return the mapping in the file at `path`, called `name` in messages; append what is wrong to `problems`."""
    data, wrong = b"", ""
    try:
        if path.is_file():
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        else:
            wrong = "is a folder" if path.is_dir() else "is not a regular file" if path.exists() else "does not exist"
    except (OSError, ValueError) as error:
        wrong = f"cannot be read: {error.strerror if isinstance(error, OSError) else error}"
    if wrong:
        problems.append(Problem("file-unreadable", Location(name), "", wrong))
        return empty(name)
    return read(data, name, problems)


def read(data: bytes, name: str, problems: list[Problem]) -> Node:
    """Return the mapping in `data`; append every problem found to `problems`.

    CRLF and a byte order mark are accepted and leave no trace.
    """
    if len(data) > MAX_BYTES:
        problems.append(Problem("file-size", Location(name), "", f"is larger than {MAX_BYTES} bytes"))
        return empty(name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        place = Location(name, before.count("\n") + 1, len(before) - before.rfind("\n"))
        problems.append(Problem("yaml-encoding", place, "", "is not UTF-8 text"))
        return empty(name)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if raw := _RAW.search(text):
        problems.append(_raw_character(text, raw, name))
        return empty(name)
    return _Reader(text, name, problems).document()


def plain(node: Node) -> Value:
    """Return the value of `node` without places."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items()}
    return node.value  # type: ignore[no-any-return]


def words(error: YAMLError) -> str:
    """Return what a parser says of a text that it cannot read."""
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    return f"{context}, {problem}" if context else str(problem)


def _raw_character(text: str, raw: re.Match[str], name: str) -> Problem:
    char = raw.group()
    place = Location(name, text.count("\n", 0, raw.start()) + 1, raw.start() - text.rfind("\n", 0, raw.start()))
    escaped = char.encode("unicode_escape").decode("ascii")
    if char in _LINE_BREAKS:
        message = f"{escaped} is a line break to YAML 1.1 only: write it escaped in a double-quoted string"
        return Problem("yaml-line-break", place, "", message)
    return Problem("yaml-control-character", place, "", f"control character {escaped}: remove it")


class _Stop(Exception):  # noqa: N818
    """The rest of the file cannot be read; the problem is recorded."""


class _Reader:
    """Reads one document from the parser's events and records every refusal on the way."""

    def __init__(self, text: str, name: str, problems: list[Problem]) -> None:
        self.text = text
        self.name = name
        self.problems = problems
        self.parser = CParser(text)
        self.spans: list[tuple[int, int]] = []

    def document(self) -> Node:
        try:
            return self._document()
        except MarkedYAMLError as error:
            self._syntax(error)
        except YAMLError as error:
            self.problems.append(Problem("yaml-syntax", Location(self.name), "", words(error)))
        except _Stop:
            pass
        return empty(self.name)

    def _document(self) -> Node:
        self.parser.get_event()
        event = self.parser.get_event()
        if isinstance(event, StreamEndEvent):
            return empty(self.name)
        if event.version or event.tags:
            self._problem("yaml-directive", event, "", "a % directive changes how the file is read: remove it")
        event = self.parser.get_event()
        root = self._node(event, "", 0)
        self.parser.get_event()
        after = self.parser.get_event()
        if not isinstance(after, StreamEndEvent):
            self._problem("yaml-documents", after, "", "a second document: write one file for each")
        elif "\t" in self.text:
            self._tabs()
        if root.value is not None and not isinstance(root.value, dict):
            self._problem("yaml-mapping", event, "", "the file must be a mapping of keys, not a list or a single value")
        return root if isinstance(root.value, dict) else empty(self.name)

    def _node(self, event: Any, path: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self._problem("yaml-depth", event, path, f"nested more than {MAX_DEPTH} levels deep")
            raise _Stop
        if isinstance(event, AliasEvent):
            self._problem("yaml-alias", event, path, f"alias *{event.anchor}: write the value itself")
            return Node(None, self._place(event))
        if event.anchor:
            self._problem("yaml-alias", event, path, f"anchor &{event.anchor}: write the value where it is needed")
        if isinstance(event, ScalarEvent):
            return self._scalar(event, path)
        if event.tag:
            self._tag(event, path)
        if isinstance(event, MappingStartEvent):
            return self._mapping(event, path, depth)
        items = []
        for index, item in enumerate(self._until(SequenceEndEvent)):
            child = self._node(item, f"{path}[{index}]", depth + 1)
            if child.value is REMOVED:
                message = "!remove takes a key out of a mapping, not an item out of a list"
                self._problem("yaml-tag", item, f"{path}[{index}]", message)
            items.append(plain(child))
        return Node(items, self._place(event))

    def _until(self, end: type) -> Iterator[Any]:
        while not isinstance(event := self.parser.get_event(), end):
            yield event

    def _mapping(self, event: Any, path: str, depth: int) -> Node:
        entries: dict[str, Node] = {}
        for key_event in self._until(MappingEndEvent):
            key = self._key(key_event, path, depth)
            child_path = f"{path}.{key}" if path else key
            child = self._node(self.parser.get_event(), child_path, depth + 1)
            child.key_at = self._place(key_event)
            if key in entries:
                message = f"written twice, first on line {entries[key].key_at.line}: keep one"
                self._problem("yaml-duplicate-key", key_event, child_path, message)
            entries.setdefault(key, child)
        return Node(entries, self._place(event))

    def _key(self, event: Any, path: str, depth: int) -> str:
        if not isinstance(event, ScalarEvent):
            self._problem("yaml-key", event, path, "a key must be text")
            self._node(event, path, depth + 1)
            return ""
        if event.anchor or event.tag:
            self._problem("yaml-key", event, path, "a key must be plain text, without anchor or tag")
        text: str = event.value
        if text == "<<":  # quoted too: yq merges it all the same
            message = "merge key <<: the layers are merged, so write the keys themselves"
            self._problem("yaml-merge-key", event, path, message)
        elif not event.style and not is_text(text):
            message = f"the key {text or '(empty)'} is not text to every reader: write {quote(text)}"
            self._problem("yaml-key", event, path, message)
        return text

    def _scalar(self, event: Any, path: str) -> Node:
        text, style, tag = event.value, event.style, event.tag
        place = self._place(event)
        if style:
            self.spans.append((event.start_mark.index, event.end_mark.index))
        if tag == "!remove":
            if text or style:
                self._problem("yaml-tag", event, path, "!remove takes no value")
            return Node(REMOVED, place)
        if tag:
            self._tag(event, path)
        if tag or style:
            return Node(text, place)
        try:
            return Node(meaning(text), place, None, text)
        except AmbiguousError as error:
            self._problem("yaml-ambiguous", event, path, str(error))
            return Node(text, place)

    def _tag(self, event: Any, path: str) -> None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        if tag == "!remove":
            self._problem("yaml-tag", event, path, "!remove takes no value")
        else:
            self._problem("yaml-tag", event, path, f"unknown tag {tag}: only !remove is known; quote text instead")

    def _tabs(self) -> None:
        """Refuse tabs outside quoted and block scalars and comments: some readers take them for indentation."""
        starts = [first for first, _ in self.spans]
        index = self.text.find("\t")
        while index >= 0:
            rank = bisect(starts, index) - 1
            end = self.spans[rank][1] if rank >= 0 else 0
            if index < end:
                index = self.text.find("\t", end)
                continue
            line = self.text.rfind("\n", 0, index) + 1
            if not _COMMENT.search(self.text[max(line, end) : index]):
                place = Location(self.name, self.text.count("\n", 0, index) + 1, index - line + 1)
                self.problems.append(Problem("yaml-tab", place, "", "tab character: write spaces"))
                return
            after = self.text.find("\n", index)
            index = self.text.find("\t", after) if after >= 0 else -1

    def _syntax(self, error: MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        place = Location(self.name, mark.line + 1, mark.column + 1) if mark else Location(self.name)
        lines = self.text.split("\n")
        line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
        if "\t" in line[: len(line) - len(line.lstrip())] or line[place.column - 1 : place.column] == "\t":
            place = Location(self.name, place.line, line.index("\t") + 1)
            self.problems.append(Problem("yaml-tab", place, "", "tab character: write spaces"))
        else:
            self.problems.append(Problem("yaml-syntax", place, "", words(error)))

    def _place(self, event: Any) -> Location:
        mark = event.start_mark
        return Location(self.name, mark.line + 1, mark.column + 1)

    def _problem(self, code: str, event: Any, path: str, message: str) -> None:
        self.problems.append(Problem(code, self._place(event), path, message))
