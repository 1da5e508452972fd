"""Damaged recordings: one problem that names the file as it was given, whatever is wrong in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from content import run
from legacy_content import ROOT

CONTAINER = "kind: JobSet\nspec: {replicatedJobs: [{template: {spec: {template: {spec: {containers: [%s]}}}}}]}\n"
PLACE = "spec.replicatedJobs[0].template.spec.template.spec.containers"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.yml", "kind: JobSet\nspec: 5\n", "spec: must be a mapping"),
        ("a.yml", "kind: JobSet\nspec: {replicatedJobs: [5]}\n", "spec.replicatedJobs[0]: must be a mapping"),
        ("a.yml", "kind: JobSet\nspec: {replicatedJobs: {}}\n", "spec.replicatedJobs: must be a list"),
        ("a.yml", CONTAINER % "{env: [{}]}", f"{PLACE}[0].env[0].name: must be text"),
        ("a.yml", CONTAINER % "", "0 containers in the pod: one is expected"),
        ("a.yml", CONTAINER % "{}", "the container starts the image's own command: only bash and sh can be followed"),
        ("a.yml", "kind: Deployment\nspec: []\n", "spec: must be a mapping"),
        ("a.yml", "kind: List\nitems: 5\n", "holds a document that is not a Kubernetes object"),
        ("a.yml", "[" * 100_000, "is nested too deep"),
        ("a.yml", "", "0 JobSets: one is expected"),
        ("a.json", "[" * 100_000, "is nested too deep"),
        ("a.json", '{"recipe": 1, "launcher_options": 5}', "recipe: must be text, not 1"),
    ],
)
def test_a_damaged_file_is_one_problem(name: str, text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    ran = run(ROOT, "import", str(path))
    assert (ran.code, ran.out, ran.err) == (1, "", f"{path}: {problem}\n")


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    os.mkfifo(path)
    ran = run(ROOT, "import", str(path))
    assert (ran.code, ran.out, ran.err) == (1, "", f"{path}: is not a regular file\n")
