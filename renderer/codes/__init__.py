"""Every code a problem can have: its cause, its remedy, and whether policy.yml may lower it."""

from __future__ import annotations

from collections.abc import Iterable

from renderer.codes.cluster import CLUSTER
from renderer.codes.code import Code
from renderer.codes.files import FILES, LAYERS, OVERRIDES
from renderer.codes.legacy import LEGACY
from renderer.codes.report import REPORT
from renderer.codes.runs import POLICY, RENDERED, RUNS
from renderer.codes.values import CONTENT, KEYS, SLICE
from renderer.maxtext_words import STRICTER
from renderer.problem import Severity

SECTIONS: tuple[tuple[str, tuple[Code, ...]], ...] = (
    ("Reading files", FILES),
    ("Layers and merging", LAYERS),
    ("KEY=VALUE on the command line", OVERRIDES),
    ("Keys and values", KEYS),
    ("Slice, mesh and batch", SLICE),
    ("What values say", CONTENT),
    ("Runs", RUNS),
    ("Files under rendered/", RENDERED),
    ("Policy", POLICY),
    ("Clusters", CLUSTER),
    ("Legacy launchers", LEGACY),
    ("Reports and snapshots", REPORT),
)

CODES = {code.name: code for _, codes in SECTIONS for code in codes}
"""Every code by its name."""


def page() -> str:
    """Return docs/checks.md."""
    lines = [_HEAD]
    for title, codes in SECTIONS:
        lines += ["", f"## {title}", "", "| code | cause | remedy | policy |", "|---|---|---|---|", *_rows(codes)]
    lines += ["", _STRICTER, "", "| refused although MaxText takes it | why, and what to write |", "|---|---|"]
    lines += [f"| {what} | {why} |" for what, why in STRICTER.values()]
    return "\n".join(lines) + "\n" + _TAIL


def _rows(codes: Iterable[Code]) -> Iterable[str]:
    for code in codes:
        name = f"`{code.name}`" + (" (warning)" if code.severity is Severity.WARNING else "")
        yield f"| {name} | {code.cause} | {code.remedy} | {'yes' if code.adjustable else 'no'} |"


_HEAD = """<!-- Generated from renderer/codes/ by tools/generate.py: change it there. -->
# Checks

`renderer validate` checks files, layers, keys, values, runs and policy in milliseconds (level 1),
`renderer render --check` the files under rendered/ too; the commands for clusters, launchers and reports have codes of
their own. `renderer render` refuses to write while any error is left. A problem names its file, line, column and key;
`--format json` gives its code. An error always blocks, a warning never does. The last column says whether
[presets/policy.yml](../presets/policy.yml) may make the code a warning or switch it off; that takes a written reason.
Any code can be raised to an error."""

_STRICTER = """## Where level 1 refuses more than MaxText

What the pinned MaxText's loader refuses for its keys, types, enums, limits and nulls, level 1 refuses too. On purpose
it refuses more: text that YAML readers take differently, meshes that do not fill the slice, batches that are not whole,
and these values."""

_TAIL = """
## What level 1 does not judge

MaxText's rules between keys (for example: `use_random_routing` needs expert parallelism) are judged by MaxText when the
run starts (exit code 2), and in part by `renderer smoke`, which has sizes, a mesh and data of its own. The schema of a
JobSet is made from JobSet's CRD by tools/jobset_schema.py; the CRD's CEL rules and the controllers' own validation are
left to the API server.
"""
