"""The repository's own content: rendered anew, without anything frozen, it is what lies under rendered/."""

from __future__ import annotations

import shutil
from pathlib import Path

from content import SHIPPED, Content, tree


def test_everything_shipped_is_right_and_rendered(tmp_path: Path) -> None:
    for folder in ("presets", "datasets", "experiments"):
        shutil.copytree(SHIPPED / folder, tmp_path / folder)
    content = Content(tmp_path)
    assert content.run("validate").out.startswith("0 errors, 0 warnings ")
    assert content.run("render").code == 0
    assert tree(tmp_path) == tree(SHIPPED), "refresh them: renderer render --refresh experiments/*/*.yml"
