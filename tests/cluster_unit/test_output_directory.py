"""How the directory that a run writes to is spelled, so that two runs that share one are seen to."""

from __future__ import annotations

import pytest

from renderer.cluster.lease import directory


@pytest.mark.parametrize(
    ("base", "run_name", "found"),
    [
        ("gs://b/runs", "mine", "gs://b/runs/mine"),
        ("gs://b/runs/", "mine", "gs://b/runs/mine"),
        ("gs://b//runs//", "mine/", "gs://b/runs/mine"),
        ("/models/runs", "mine", "/models/runs/mine"),
        ("gs://b", "", "gs://b"),
        ("", "mine", ""),
    ],
)
def test_one_directory_has_one_spelling(base: str, run_name: str, found: str) -> None:
    assert directory(base, run_name) == found
