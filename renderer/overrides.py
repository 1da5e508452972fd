"""KEY=VALUE on the command line: the highest layer, for previews and scaffolding only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from renderer.key_types import Kind
from renderer.keys import DEPLOY_KEYS, LAUNCH_KEYS
from renderer.layers import Layer
from renderer.location import COMMAND_LINE
from renderer.problem import Problem, RefusedError
from renderer.scalars import command_line_value
from renderer.schema import Entry, nearest
from renderer.yaml_io import Node, read

_TEXT = re.compile(r"[A-Za-z0-9_.]+")
_BEGINNING = re.compile(r"[A-Za-z0-9_.-]*")


def split(argument: str) -> tuple[str, str]:
    """Return the key and the text of one KEY=VALUE. Raises RefusedError if it is none."""
    key, equals, text = argument.partition("=")
    if not equals or not _TEXT.fullmatch(key):
        key = _BEGINNING.match(argument)[0]  # type: ignore[index]  # the rest may be a secret
        message = f"{key}{'...' if key != argument else ''} is not KEY=VALUE: write for example learning_rate=1e-4"
        raise RefusedError([Problem("override-form", COMMAND_LINE, "", message)])
    return key, text


def split_values(text: str) -> list[str]:
    """Return the values of a sweep: `text` split at the commas that stand outside quotes and brackets."""
    values, depth, quote, start = [], 0, "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char == "," and depth <= 0:
            values.append(text[start:index])
            start = index + 1
    return [*values, text[start:]]


def parse(arguments: Iterable[str], maxtext_keys: Mapping[str, Entry], problems: list[Problem]) -> Layer:
    """Return the command line's layer. A bare key goes to the namespace that knows it."""
    deploy: dict[str, Node] = {}
    maxtext: dict[str, Node] = {}
    given: set[str] = set()
    for argument in arguments:
        key, text = split(argument)
        namespace, _, name = key.partition(".")
        bare = name if namespace in {"deploy", "maxtext"} and name else key
        if bare in given:
            problems.append(Problem("override-twice", COMMAND_LINE, bare, "given twice: give it once"))
        given.add(bare)
        if namespace == "deploy" and name:
            _put_deploy(deploy, name, text, problems)
        elif namespace == "maxtext" and name:
            maxtext[name] = _node(text, _wants_text(maxtext_keys.get(name), text), name, problems)
        elif key in maxtext_keys:
            maxtext[key] = _node(text, _wants_text(maxtext_keys[key], text), key, problems)
        elif namespace in DEPLOY_KEYS:
            _put_deploy(deploy, key, text, problems)
        else:
            problems.append(_unknown(key, maxtext_keys))
    return Layer("command line", "command line", deploy, maxtext)


def _put_deploy(deploy: dict[str, Node], name: str, text: str, problems: list[Problem]) -> None:
    key, _, entry = name.partition(".")
    known = DEPLOY_KEYS.get(key)
    wants_text = known is None or known.kind in {Kind.TEXT, Kind.TEXT_MAP}
    node = _node(text, wants_text and (bool(entry) or known is None or known.kind is Kind.TEXT), name, problems)
    if not entry:
        deploy[key] = node
    else:
        mapping = deploy.setdefault(key, Node({}, COMMAND_LINE))
        if isinstance(mapping.value, dict):
            mapping.value[entry] = node


def _node(text: str, wants_text: bool, path: str, problems: list[Problem]) -> Node:
    """Return the value of `text`: itself where text is expected, so that 0012 stays 0012; else as YAML reads it."""
    if text.startswith(("[", "{", '"', "'")):
        found: list[Problem] = []
        node = read(f"value: {text}\n".encode("utf-8", "surrogateescape"), COMMAND_LINE.file, found).value.get("value")
        if node is None or found:
            reason = found[0].message if found else "not a value"
            problems.append(Problem("override-value", COMMAND_LINE, path, f"{text}: {reason}"))
            return Node(None, COMMAND_LINE)
        return Node(node.value, COMMAND_LINE)
    if text == "!remove":
        return read(b"value: !remove\n", COMMAND_LINE.file, problems).value["value"]  # type: ignore[no-any-return]
    return Node(text if wants_text else command_line_value(text), COMMAND_LINE, None, text)


def _wants_text(entry: Entry | None, text: str) -> bool:
    """Return whether only text fits: then a number-like value on the command line is text."""
    if entry is None or text == "null":
        return False
    types = {choice.get("type") for choice in entry.get("anyOf", (entry,))}
    return types <= {"string", "null"} and "string" in types


_OPTIONS = {
    **{key: key for key in ("model", "chips", "context", "owner", "image", "branch", "name")},
    "environment": "env",
}
"""The selectors that are options too, by their key."""


def _unknown(key: str, maxtext_keys: Mapping[str, Entry]) -> Problem:
    if key in LAUNCH_KEYS:
        how = f"write --{_OPTIONS[key]}" if key in _OPTIONS else "write it under launch: in the file"
        return Problem("override-unknown", COMMAND_LINE, key, f"is a key of launch: {how}")
    near = nearest(key, [*maxtext_keys, *DEPLOY_KEYS])
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    return Problem("override-unknown", COMMAND_LINE, key, "neither MaxText nor deploy: knows this key", hint)
