"""The keys that people write, from the paths of a run's files."""

from __future__ import annotations

import time

import pytest

from renderer.report.values import _key

POD = "jobset.spec.replicatedJobs[slice-job].template.spec.template.spec"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (f"{POD}.containers[trainer].image", "launch.image"),
        (f"{POD}.containers[trainer].env[A].value", "deploy.ENV.A"),
        (f"{POD}.containers[trainer].volumeMounts[/data].mountPath", ""),
        (f"{POD}.containers[trainer].volumeMounts[/data]", f"{POD}.containers[trainer].volumeMounts[/data]"),
        ("maxtext.steps", "maxtext.steps"),
        ("derive.model", ""),
    ],
)
def test_a_path_is_the_key_that_sets_it(path: str, key: str) -> None:
    assert _key(path) == key


@pytest.mark.parametrize("part", [".volumeMounts[/", "watcher.", "]", "."])
def test_a_path_takes_time_in_proportion_to_its_length(part: str) -> None:
    started = time.process_time()
    _key(f"jobset{part * (1_000_000 // len(part))}")
    _key(f"watcher.{part * (1_000_000 // len(part))}")
    assert time.process_time() - started < 2
