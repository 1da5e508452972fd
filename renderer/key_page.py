"""docs/keys.md: every key that may stand under `launch:`, `deploy:` and `checks:`, from the tables."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.key_types import Key, Kind
from renderer.keys import CHECKS_KEYS, DEPLOY_KEYS, LAUNCH_KEYS
from renderer.scalars import write

_HEAD = """\
# Keys

Made by `tools/generate.py` from `renderer/keys.py`. Under `maxtext:` stand MaxText's own keys."""


def keys_page() -> str:
    """Return docs/keys.md."""
    lines = [_HEAD]
    for section, keys in (("launch", LAUNCH_KEYS), ("deploy", DEPLOY_KEYS), ("checks", CHECKS_KEYS)):
        lines += ["", f"## {section}:", "", "| key | takes | default | meaning |", "|---|---|---|---|"]
        lines += [f"| `{key.name}` | {_takes(key)} | {_default(key)} | {key.description} |" for key in keys.values()]
    return "\n".join(lines) + "\n"


def _default(key: Key) -> str:
    return f"`{write(key.default)}`" if key.default is not None else ""


def _takes(key: Key) -> str:
    return ", ".join(_words(key)).replace("|", "\\|")


def _words(key: Key) -> Iterator[str]:
    yield key.kind.value
    each = {Kind.TEXT_MAP: "each name ", Kind.TEXT_LIST: "each "}.get(key.kind, "")
    if key.form:
        yield f"{each}{key.form.words}"
    if key.value_form:
        yield f"each value {key.value_form.words}"
    if key.kind in {Kind.INTEGER, Kind.NUMBER} and key.maximum < 2**53:
        yield f"{key.minimum:g} to {key.maximum:.15g}"
