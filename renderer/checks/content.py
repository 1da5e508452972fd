"""Checks of texts wherever they stand: control characters, placeholders, and what something would expand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from renderer.configure import Configuration
from renderer.merge import leaves
from renderer.problem import Problem
from renderer.scalars import quote
from renderer.yaml_io import Node

_UNFIT = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"  # control
    r"\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"  # invisible, or turning the text around
)
_CONTROL = re.compile(_UNFIT)
_MARKS = r"\b(?:TODO|FIXME|TBD|XXX+)\b|\bX_[A-Z0-9_]+_X\b|\{\{[^{}\n]{0,80}\}\}"
_PLACEHOLDER = re.compile(
    rf"<[A-Za-z][^<>\n]*>|{_MARKS}|(?i:\b(?:change|replace)[-_]?me\b|\byour[-_][a-z]\w*|\bpath/to/\w*)"
)
_WORDS = r"TODO|FIXME|TBD|XXX|X_[A-Z]|\{\{|your|Your|YOUR|hange|HANGE|eplace|EPLACE|path/to|PATH/TO|Path/"
# Texts without any of this hold no problem: one quick look instead of three.
_SUSPECT = re.compile(rf"[<$]|{_UNFIT}|{_WORDS}")


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem per text that would not arrive as written, or that someone forgot to fill in."""
    for key, node in configuration.experiment.launch.items() if configuration.experiment else ():
        if isinstance(node.value, str) and _SUSPECT.search(node.value):
            yield from _problems(node.value, node, f"launch.{key}")
    for namespace, tree in (("deploy", configuration.deploy), ("maxtext", configuration.maxtext)):
        for path, leaf in leaves(tree):
            for text in _texts(leaf.node.value):
                if _SUSPECT.search(text):
                    yield from _problems(text, leaf.node, f"{namespace}.{path}")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)


def _problems(text: str, node: Node, path: str) -> Iterator[Problem]:
    control = _CONTROL.search(text)
    if control:
        escaped = control.group().encode("unicode_escape", "surrogatepass").decode("ascii")
        kind = "invisible" if unicodedata.category(control.group()) == "Cf" else "control"
        yield Problem("control-character", node.at, path, f"{kind} character {escaped}: remove it")
    if found := placeholder(text, path):
        yield Problem("placeholder", node.at, path, f"placeholder {found}: write the real value")
    if "${" in text:
        message = f"{quote(text)} holds ${{, which OmegaConf or a shell would expand in the pod: write the value itself"
        yield Problem("interpolation", node.at, path, message)
    elif path.startswith("deploy.") and ("$(" in text or "$$" in text):
        message = f"{quote(text)} holds $( or $$, which Kubernetes would expand: write the value itself"
        yield Problem("interpolation", node.at, path, message)


# Values that are language, or a tokenizer's own words such as <eos>: anything may stand in them.
_LANGUAGE = re.compile(r".*(?:_token|prompt|chat_template|_placeholder)")


def placeholder(text: str, path: str) -> str:
    """Return the placeholder in a value, or nothing."""
    found = _PLACEHOLDER.search(text) if _SUSPECT.search(text) else None
    return found.group() if found and not _LANGUAGE.fullmatch(path) else ""
