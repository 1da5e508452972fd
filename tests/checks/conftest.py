from __future__ import annotations

from pathlib import Path

import pytest
from small_content import Small, create


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return create(tmp_path)
