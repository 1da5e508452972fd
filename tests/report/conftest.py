"""Fixtures of the report's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from repository import Repo, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A git repository with the shipped presets, committed on main."""
    return make_repo(tmp_path / "repository")
