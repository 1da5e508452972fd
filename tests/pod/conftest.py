"""Fixtures of the pod's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_in_pod import Pod, make_pod


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return make_pod(tmp_path)
