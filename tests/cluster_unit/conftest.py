"""What the tests of renderer/cluster/ share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster_unit.committed_repo import CommittedRepo, make_committed_repo


@pytest.fixture
def repo(tmp_path: Path) -> CommittedRepo:
    """A git repository with presets only."""
    return make_committed_repo(tmp_path / "repo")
