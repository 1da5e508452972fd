"""`renderer validate`: what its text and its JSON show of secrets and control characters."""

from __future__ import annotations

import json

import pytest
from content import Content

TOKEN = "ghp_" + "a1" * 18
START = "launch: {model: ling3-flash, chips: 64, context: 8k, environment: test, owner: team, branch: main}\n"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("!hunter x", "unknown tag ****: only !remove is known; quote text instead"),
        ("!<hunter> x", "unknown tag ****: only !remove is known; quote text instead"),
        ("*hunter", "alias ****: write the value itself"),
        (
            "0123456701234567",
            "leading zero: readers take **** for octal, decimal or text: write ****, or **** for the text",
        ),
        ("1_234_567", "**** is a number to YAML 1.1 and text to YAML 1.2: write ****, or **** for the text"),
        ("12:34:56", "**** is a number in base 60 to YAML 1.1 and text to YAML 1.2: write ****"),
    ],
)
def test_a_refused_value_of_a_secrets_key_is_not_shown(written: str, message: str, content: Content) -> None:
    content.write("experiments/ling3-flash/run.yml", f"{START}maxtext:\n  hf_access_token: {written}\n")
    ran = content.run("validate", "ling3-flash/run", "--format", "json")
    (found,) = [problem for problem in json.loads(ran.out) if problem["path"] == "maxtext.hf_access_token"]
    assert (ran.code, found["message"], found["hint"]) == (1, message, "")
    text = content.run("validate", "ling3-flash/run").out
    assert f"experiments/ling3-flash/run.yml:3:20: maxtext.hf_access_token: {message}" in text


def test_what_a_value_replaces_is_masked_before_it_is_cut(content: Content) -> None:
    content.write("datasets/long.yml", f'run_name: "{"x" * 60} {TOKEN}"\n')
    content.experiment(deploy={"DATASETS_YAML": "long"}, maxtext={"run_name": "<your-name>"})
    out = content.run("validate", "ling3-flash/run").out
    assert f'it replaces "{"x" * 60} ****" (dataset, datasets/long.yml:1)' in out
    assert "ghp_" not in out


def test_json_masks_the_file_and_the_path(content: Content) -> None:
    content.write(f"experiments/ling3-flash/{TOKEN}.yml", f"{START}maxtext:\n  {TOKEN}: 1\n")
    ran = content.run("validate", "--format", "json")
    assert TOKEN not in ran.out
    assert ("experiments/ling3-flash/****.yml", "maxtext.****") in [
        (problem["file"], problem["path"]) for problem in json.loads(ran.out)
    ]


def test_json_holds_no_raw_control_character(content: Content) -> None:
    content.experiment(maxtext={"a\x9b\u2028\U000e0001": 1})
    ran = content.run("validate", "--format", "json")
    assert ran.out.replace("\n", "").isprintable()
    assert "maxtext.a\x9b\u2028\U000e0001" in [problem["path"] for problem in json.loads(ran.out)]
