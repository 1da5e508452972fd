"""run.yml and derive.json: what MaxText reads, and what the pod needs to pass the rest as arguments."""

from __future__ import annotations

import json
from itertools import groupby

from renderer.run_spec import Run
from renderer.scalars import quote, write


def run_yml(run: Run, run_name: str) -> bytes:
    """Return run.yml: base_config first, then every key under the file of the layer that won it.

    No line numbers: an edit elsewhere in a layer must not change a byte here.
    """
    lines = [
        f"# Rendered from {run.file}: reviewed and launched as it stands. Change the source and render again.",
        "base_config: base.yml",
        "",
        "# launch:",
        f"model_name: {quote(run.maxtext_model)}",
        f"run_name: {quote(run_name)}",
    ]
    for file, keys in groupby(run.origins, run.origins.__getitem__):
        lines += ["", f"# {file}", *(f"{key}: {write(run.maxtext[key])}" for key in keys)]
    return ("\n".join(lines) + "\n").encode()


def derive_json(run: Run) -> bytes:
    """Return derive.json, one key a line."""
    return (json.dumps(run.derive, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
