from __future__ import annotations

import json
from typing import Any

import pytest
from content import SHIPPED, Content, run

from renderer import validation
from renderer.commands.validate import LEVEL_2
from renderer.layers import Repository

SUMMARY = f"({LEVEL_2})\n"
TOKEN = "ghp_" + "a1" * 18


def listed(text: str) -> Any:
    return json.loads(text)


def test_everything_shipped_is_right() -> None:
    code, out, err = run(SHIPPED, "validate")
    assert (code, out.splitlines()[-1], err) == (0, f"0 errors, 0 warnings {SUMMARY}".rstrip(), "")


def test_every_topology_in_every_environment_is_right_alone() -> None:
    repository = Repository(SHIPPED)
    chosen = list(validation.selections(repository))
    assert len(chosen) == 2 * sum(len(repository.topologies(model)) for model in repository.models())
    assert validation.of_presets(repository) == []


def test_one_experiment_by_name_and_by_path(content: Content) -> None:
    content.experiment("good")
    path = content.experiment("bad", maxtext={"steps": "8"})
    assert content.run("validate", "ling3-flash/good").code == 0
    for name in ("ling3-flash/bad", str(path)):
        ran = content.run("validate", name)
        assert ran.code == 1
        assert 'maxtext.steps: expected an integer of at least -1, got the text "8": write 8' in ran.out
        assert ran.out.endswith(f"1 error, 0 warnings {SUMMARY}")
        assert ran.err == ""


def test_problems_as_json(content: Content) -> None:
    content.experiment("bad", maxtext={"steps": "8"})
    ran = content.run("validate", "--format", "json")
    assert (ran.code, ran.err) == (1, "")
    (problem,) = listed(ran.out)
    assert problem.pop("hint").startswith("it replaces 20 (environment, presets/ling3-flash/environment/test.yml:")
    assert problem.pop("line") > 1
    assert problem.pop("column") > 1
    assert problem == {
        "code": "maxtext-value",
        "severity": "error",
        "file": "experiments/ling3-flash/bad.yml",
        "path": "maxtext.steps",
        "message": 'expected an integer of at least -1, got the text "8": write 8',
    }


def test_no_problems_as_json(content: Content) -> None:
    content.experiment()
    assert tuple(content.run("validate", "--format", "json")) == (0, "[]\n", "")


def test_warnings_do_not_fail(content: Content) -> None:
    content.experiment(launch={"image": "v1", "branch": "main"})
    ran = content.run("validate", "--format", "json")
    assert ran.code == 0
    assert [(problem["code"], problem["severity"]) for problem in listed(ran.out)] == [("launch-ignored", "warning")]


def test_an_unknown_experiment_is_a_problem_in_json_too(content: Content) -> None:
    ran = content.run("validate", "ling3-flash/none", "--format", "json")
    assert (ran.code, ran.err) == (1, "")
    assert [problem["code"] for problem in listed(ran.out)] == ["experiment-missing"]


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("experiments/ling3-flash/x.yaml", "", "stray-file"),
        ("presets/policy.yml", "limits: {}\n", "policy-file"),
        ("presets/clusters.yml", "cluster: {}\n", "clusters-file"),
    ],
)
def test_files_beside_experiments_are_checked_where_none_is_named(
    content: Content, path: str, text: str, code: str
) -> None:
    content.experiment()
    content.write(path, text)
    assert [problem["code"] for problem in listed(content.run("validate", "--format", "json").out)] == [code]


def test_a_preset_that_no_experiment_uses_is_checked(content: Content) -> None:
    content.edit("presets/qwen3-0.6b/topology/64chips/4k.yml", "COMPLETIONS: 16", "COMPLETIONS: 17")
    problems = listed(content.run("validate", "--format", "json").out)
    assert [(problem["code"], problem["file"]) for problem in problems] == [
        ("completions-hosts", "presets/qwen3-0.6b/topology/64chips/4k.yml")
    ]


def test_what_is_missing_in_a_preset_is_reported_at_the_topology(content: Content) -> None:
    content.edit("presets/qwen3-0.6b/topology/64chips/4k.yml", "  COMPLETIONS: 16\n", "")
    problems = listed(content.run("validate", "--format", "json").out)
    assert [(problem["code"], problem["file"], problem["line"]) for problem in problems] == [
        ("deploy-missing", "presets/qwen3-0.6b/topology/64chips/4k.yml", 0)
    ]


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "where",
    [
        {"maxtext": {"steps": TOKEN}},
        {"maxtext": {"base_output_directory": f"gs://x/{TOKEN}"}},
        {"launch": {"commit": TOKEN}},
        {"launch": {"resume": TOKEN}},
        {"deploy": {"ENV": {"A": f"${{X}} {TOKEN}"}}},
        {"deploy": {"COMPLETIONS": TOKEN}},
    ],
    ids=str,
)
def test_no_message_shows_a_token(content: Content, form: str, where: dict[str, Any]) -> None:
    content.experiment(**where)
    ran = content.run("validate", "--format", form)
    assert ran.code == 1
    assert TOKEN not in ran.out + ran.err
