"""Writes the files that are made from the code: docs/checks.md and the editors' schemas.

    python tools/generate.py

A test fails while one of them is not what this writes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from renderer.codes import page
from renderer.editor_schema import schemas
from renderer.key_page import keys_page
from renderer.layers import Repository
from renderer.report import codec

ROOT = Path(__file__).parent.parent


def generated(root: Path) -> dict[str, str]:
    """Return the text of every generated file by its path under `root`."""
    generated_schemas = {**schemas(Repository(root)), "schemas/report.schema.json": codec.published()}
    return {"docs/checks.md": page(), "docs/keys.md": keys_page(), **generated_schemas}


def main() -> int:
    """Write every generated file and return 0."""
    for path, text in generated(ROOT).items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
