"""Two runs compared by value: lists by name, names and digests left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from content import Content

from renderer.compare import ABSENT, differences, flatten, text

JOB = "jobset.spec.replicatedJobs[slice-job].template.spec.template.spec"


def compared(content: Content, old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    files = [content.render(content.experiment(**changes)).files for changes in (old, new)]
    return list(differences(*map(flatten, files)))


def test_equal_runs_have_no_difference(content: Content) -> None:
    assert compared(content, {}, {}) == []
    assert compared(content, {}, {"name": "renamed", "launch": {"attempt": 3}}) == []


def test_one_inserted_variable_is_one_difference(content: Content) -> None:
    old = {"deploy": {"ENV": {"B": "1", "C": "2"}}}
    new = {"deploy": {"ENV": {"A": "0", "B": "1", "C": "3"}}}
    path = f"{JOB}.containers[trainer].env"
    assert compared(content, old, new) == [
        (f"{path}[A].name", ABSENT, "A"),
        (f"{path}[A].value", ABSENT, "0"),
        (f"{path}[C].value", "2", "3"),
    ]


def test_values_of_every_file_are_compared(content: Content) -> None:
    prod = {"environment": "prod", "chips": 256, "image": "v1", "branch": None}
    old = {"launch": prod, "maxtext": {"steps": 5}}
    new = {
        "launch": prod,
        "maxtext": {"steps": 6, "learning_rate": 0.1},
        "deploy": {"WARMUP_ITERS": 7, "HF_INTERVAL_SECONDS": 60},
    }
    found = compared(content, old, new)
    assert found == [
        ("derive.warmup_iters", 2000, 7),
        ("maxtext.learning_rate", ABSENT, 0.1),
        ("maxtext.steps", 5, 6),
        ("watcher.spec.template.spec.containers[watcher].env[HF_INTERVAL_SECONDS].value", "300", "60"),
    ]


def test_one_and_one_point_nought_and_true_differ() -> None:
    assert list(differences({"a": 1, "b": 1, "c": None}, {"a": 1.0, "b": True, "c": None})) == [
        ("a", 1, 1.0),
        ("b", 1, True),
    ]


def test_an_explicit_run_name_is_compared(content: Content) -> None:
    found = compared(content, {"maxtext": {"run_name": "one"}}, {"maxtext": {"run_name": "two"}})
    assert found == [
        (f"{JOB}.containers[trainer].env[RUN_NAME].value", "one", "two"),
        ("maxtext.run_name", "one", "two"),
    ]


@pytest.mark.parametrize(
    ("value", "line"), [(ABSENT, "(absent)"), ("a\nb", '"a\\nb"'), (None, "null"), (1e-05, "1.0e-05"), ([], "[]")]
)
def test_a_value_is_one_line(value: Any, line: str) -> None:
    assert text(value) == line


@pytest.mark.parametrize("name", ["jobset.yml", "run.yml", "derive.json"])
@pytest.mark.parametrize("data", [b"", b"[]", b"x", b"\xff", b"5"])
def test_files_that_are_no_runs_are_told(name: str, data: bytes, content: Content) -> None:
    files = {**content.render(content.experiment()).files, name: data}
    if (name, data) == ("run.yml", b""):
        data = json.dumps(1).encode()
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        flatten({**files, name: data})
