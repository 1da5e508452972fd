"""How the directory that a run writes to is spelled, so that two runs that share one are seen to."""

from __future__ import annotations

import pytest

from renderer.names import output_directory


@pytest.mark.parametrize(
    ("base", "run_name", "found"),
    [
        ("gs://b/runs", "mine", "gs://b/runs/mine"),
        ("gs://b/runs/", "mine", "gs://b/runs/mine"),
        ("gs://b//runs//", "mine/", "gs://b/runs/mine"),
        ("/models/runs", "mine", "/models/runs/mine"),
        ("gs://b", "", "gs://b"),
        ("gs://b/./runs/../runs", "mine", "gs://b/runs/mine"),
        ("runs", "mine", "runs/mine"),
        ("", "mine", ""),
    ],
)
def test_one_directory_has_one_spelling(base: str, run_name: str, found: str) -> None:
    assert output_directory(base, run_name) == found
