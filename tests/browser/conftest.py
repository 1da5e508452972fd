"""The browser's tests share the repositories and the hostile reports of the report's."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "report"))
