"""Two runs never write into one folder unnoticed, however the folder is spelt."""

from __future__ import annotations

import pytest
from content import Content

BASE = "gs://data_ant"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            {"run_name": "shared", "base_output_directory": f"{BASE}/o"},
            {"run_name": "shared", "base_output_directory": f"{BASE}/o/"},
        ),
        (
            {"run_name": "shared", "base_output_directory": f"{BASE}/o"},
            {"run_name": "shared", "base_output_directory": f"{BASE}/o"},
        ),
    ],
)
def test_one_folder_spelt_twice(first: dict[str, str], second: dict[str, str], content: Content) -> None:
    content.experiment("a", maxtext=first)
    content.experiment("b", maxtext=second)
    code, _, err = content.run("render")
    assert code == 1
    assert err.splitlines() == [
        "experiments/ling3-flash/b.yml:1:1: maxtext.run_name: run_name shared and its output directory are taken by "
        "experiments/ling3-flash/a.yml"
    ]


def test_two_runs_that_continue_the_same_one(content: Content) -> None:
    content.experiment("a", launch={"resume": "old-64c-01234567"})
    content.experiment("b", launch={"resume": "old-64c-01234567"})
    assert content.run("render").code == 1


def test_a_run_continues_another(content: Content) -> None:
    content.experiment("a", maxtext={"run_name": "mine"})
    content.experiment("b", launch={"resume": "mine"})
    assert content.run("render").code == 0


def test_long_names_get_labels_of_their_own(content: Content) -> None:
    for ending in "ab":
        content.experiment("x" * 70 + ending)
    content.run("render")
    labels = {
        line
        for path in content.root.glob("rendered/*/*/*/jobset.yml")
        for line in path.read_text().splitlines()
        if "renderer/experiment:" in line
    }
    assert len(labels) == 2
