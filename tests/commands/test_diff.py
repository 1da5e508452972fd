"""`renderer diff`: by value, between experiments or with the rendered state."""

from __future__ import annotations

import json

import pytest
from content import Content


def test_two_experiments(content: Content) -> None:
    content.experiment("one", maxtext={"steps": 5})
    content.experiment("two", maxtext={"steps": 6, "learning_rate": 1e-4}, deploy={"ENV": {"A": "b"}})
    code, out, err = content.run("diff", "ling3-flash/one", "ling3-flash/two")
    env = "jobset.spec.replicatedJobs[slice-job].template.spec.template.spec.containers[trainer].env[A]"
    assert (code, err) == (0, "4 values differ\n")
    assert out.splitlines() == [
        f'{env}.name: (absent) → "A"',
        f'{env}.value: (absent) → "b"',
        "maxtext.learning_rate: (absent) → 0.0001",
        "maxtext.steps: 5 → 6",
    ]


def test_json(content: Content) -> None:
    content.experiment("one", maxtext={"steps": 5})
    content.experiment("two", maxtext={"log_period": 6})
    found = json.loads(content.run("diff", "ling3-flash/one", "ling3-flash/two", "--format", "json").out)
    assert found == [
        {"path": "maxtext.log_period", "old": None, "new": 6},
        {"path": "maxtext.steps", "old": 5, "new": 20},
    ]


def test_with_the_rendered_state(content: Content) -> None:
    content.experiment("one")
    content.run("render")
    ran = content.run("diff", "ling3-flash/one")
    assert (ran.code, ran.out, ran.err) == (0, "", "no difference\n")
    content.experiment("one", maxtext={"steps": 6})
    assert content.run("diff", "ling3-flash/one").out == "maxtext.steps: 20 → 6\n"


def test_without_a_rendered_state(content: Content) -> None:
    content.experiment("one")
    ran = content.run("diff", "ling3-flash/one")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "experiments/ling3-flash/one.yml: is not rendered yet; run renderer render\n"


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"metadata: {labels: []}\n", b"a: [\n"])
def test_rendered_files_that_are_no_run_are_refused(data: bytes, content: Content) -> None:
    content.experiment("one")
    content.run("render")
    content.write("rendered/test/ling3-flash/one/jobset.yml", data)
    ran = content.run("diff", "ling3-flash/one")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("ling3-flash/one: its rendered files are no run's: ")
