"""The shipped snapshot against the MaxText it describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from renderer.schema import FOLDER
from renderer.schema_update import snapshot_from, write


@pytest.mark.deep
def test_the_shipped_snapshot_is_what_the_package_says(maxtext_python: Path, tmp_path: Path) -> None:
    data = snapshot_from(maxtext_python)
    assert data["version"] == "0.2.5"
    path = write(data, "0.2.5", tmp_path)
    assert path.read_text("utf-8") == (FOLDER / "0.2.5.json").read_text("utf-8")
