"""Folders of examples: cases/<case>/experiment.yml and the problems it has, as they are printed.

A number is that of a case that broke tools of this kind in public.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from small_content import Small

CASES = sorted(Path(__file__).with_name("cases").iterdir())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(small: Small, case: Path) -> None:
    small.file("experiments/llama2-7b/e.yml", (case / "experiment.yml").read_text(encoding="utf-8"))
    texts = [text.replace("experiments/llama2-7b/e.yml", "experiment.yml") for text in small.texts()]
    assert "".join(f"{text}\n" for text in texts) == (case / "problems.txt").read_text(encoding="utf-8")
