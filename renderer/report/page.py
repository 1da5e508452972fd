"""The report as one self-contained page: it loads nothing, and no value in it can be more than text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import jinja2

from renderer.plan import LAUNCHES, Effect
from renderer.problem import visible
from renderer.report import words
from renderer.report.data import Report, Role
from renderer.report.side_by_side import File

_FOLDER = Path(__file__).parent
_KINDS = (
    ("launch", "launches"),
    ("stop", "stops"),
    ("refuse", "refused"),
    ("nothing", "nothing"),
    ("value", "values"),
    ("warning", "warnings"),
)
_POLICY = ("default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'")
MAX_MANIFESTS = 3 << 20
"""Characters of manifests in a page; a phone can still open it."""

Manifests = Iterable[tuple[str, Iterable[File]]]
"""The differing files of experiments, made when asked for."""


def render(report: Report, manifests: Manifests = ()) -> str:
    """Return the page. Of very many manifests the first are shown, and it says how many are left out."""
    kept, dropped = _within(manifests)
    left_out = [*report.left_out]
    if dropped:
        left_out.append(f"the manifests of {words.plural(dropped, 'experiment')}")
    css, script = ((_FOLDER / name).read_text("utf-8") for name in ("page.css", "page.js"))
    return _template().render(
        report=report,
        rows=[*words.happening(report), *(row for row in report.rows if row.effect is Effect.NOTHING)],
        manifests=kept,
        left_out=left_out,
        kinds=_KINDS,
        css=css,
        script=script,
        policy="; ".join((*_POLICY, f"style-src {_hash(css)}", f"script-src {_hash(script)}")),
    )


def _within(manifests: Manifests) -> tuple[Mapping[str, Sequence[File]], int]:
    kept: dict[str, Sequence[File]] = {}
    used = dropped = 0
    for experiment, files in manifests:
        if used >= MAX_MANIFESTS:
            dropped += 1
            continue
        found = list(files)
        size = sum(file.size for file in found)
        if used + size > MAX_MANIFESTS:
            dropped += 1
        else:
            kept[experiment] = found
            used += size
    return kept, dropped


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _group(effect: Effect) -> str:
    return "launch" if effect in LAUNCHES else effect.value


def _escaped(value: object) -> object:
    """Show control characters, as everywhere; jinja2 escapes the rest."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return "\n".join(map(visible, value.split("\n"))) if "\n" in value else visible(value)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escaped,
    )
    environment.globals.update(words=words, group=_group, Role=Role)
    return environment.get_template("page.html.j2")
