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
    assert tuple(content.run("diff", "ling3-flash/one")) == (0, "maxtext.steps: 20 → 6\n", "1 value differs\n")


def test_without_a_rendered_state(content: Content) -> None:
    content.experiment("one")
    ran = content.run("diff", "ling3-flash/one")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "experiments/ling3-flash/one.yml: is not rendered yet; run renderer render\n"


DEEP = b"[" * 200_000
NO_UTF8 = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"


@pytest.mark.parametrize("command", ["diff", "manifests", "smoke"])
@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("jobset.yml", b"", "it is not a mapping of keys"),
        ("jobset.yml", b"[]", "it is not a mapping of keys"),
        ("jobset.yml", b"\xff", NO_UTF8),
        ("jobset.yml", b"metadata: {labels: []}\n", "it has no name"),
        ("jobset.yml", DEEP, "is nested more than 32 levels deep"),
        ("run.yml", b"", "it is not a mapping of keys"),
        ("run.yml", b"1: 2\n", "it is not a mapping of keys"),
        ("run.yml", b"\xff", NO_UTF8),
        ("run.yml", DEEP, "is nested more than 32 levels deep"),
        ("derive.json", b"[]", "it is not a mapping of keys"),
        ("derive.json", b"{}", "it has no run_name_explicit"),
        ("derive.json", b'{"run_name_explicit": 1}', "its run_name_explicit is not true or false"),
        ("derive.json", DEEP, "it is nested too deeply"),
        ("derive.json", b'{"a":' + b"[" * 99 + b"]" * 99 + b"}", "it is nested more than 32 levels deep"),
        ("watcher.yml", b"kind: Deployment\n", "it has no metadata"),
    ],
)
def test_a_damaged_rendered_file_is_refused_by_name(
    command: str, name: str, data: bytes, reason: str, content: Content
) -> None:
    content.experiment("one")
    content.run("render")
    file = f"rendered/test/ling3-flash/one/{name}"
    content.write(file, data)
    ran = content.run(command, "ling3-flash/one")
    assert tuple(ran) == (1, "", f"{file}: is not a rendered run's: {reason}\n    run renderer render\n")


SECRET = "abcdef0123456789"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_committed_secret_is_not_shown(form: str, content: Content) -> None:
    content.experiment("one", deploy={"ENV": {"HF_TOKEN": "x"}}, maxtext={"hf_access_token": "x"})
    content.run("render")
    folder = "rendered/test/ling3-flash/one"
    content.edit(f"{folder}/run.yml", 'hf_access_token: "x"', f'hf_access_token: "{SECRET}"')
    content.edit(f"{folder}/jobset.yml", 'value: "x"', f'value: "{SECRET}A"')
    ran = content.run("diff", "ling3-flash/one", "--format", form)
    env = "jobset.spec.replicatedJobs[slice-job].template.spec.template.spec.containers[trainer].env[HF_TOKEN].value"
    assert ran.code == 0
    if form == "text":
        assert ran.out == f'{env}: "****" → "x"\nmaxtext.hf_access_token: "****" → "x"\n'
    else:
        assert json.loads(ran.out) == [
            {"path": env, "old": "****", "new": "x"},
            {"path": "maxtext.hf_access_token", "old": "****", "new": "x"},
        ]
