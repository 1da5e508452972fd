"""Fixtures of all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from content import Content, make_content
from hypothesis import settings
from repository import Repo, make_repo

# Shared cores make single examples slow now and then: that says nothing about the code. Hypothesis knows CI itself.
if "CI" not in os.environ:
    settings.register_profile("no-deadline", deadline=None)
    settings.load_profile("no-deadline")


@pytest.fixture
def content(tmp_path: Path) -> Content:
    """A repository with the shipped presets and datasets, no experiment yet."""
    return make_content(tmp_path / "repository")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A git repository with the shipped presets, committed on main."""
    return make_repo(tmp_path / "repository")
