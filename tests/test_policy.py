from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from content import SHIPPED, Content

from renderer import clusters, policy
from renderer.layers import Repository
from renderer.location import Location
from renderer.pipeline import render_paths
from renderer.policy import Limits, Policy, Rules, Ruling
from renderer.problem import Problem, RefusedError, Severity

FILE = "presets/policy.yml"


def problems(content: Content) -> list[str]:
    repository = Repository(content.root)
    paths, strays = repository.experiment_paths()
    try:
        return [str(problem) for problem in render_paths(repository, paths, strays).problems]
    except RefusedError as error:
        return [str(problem) for problem in error.problems]


def wrong(content: Content, text: str) -> list[str]:
    content.write(FILE, text)
    found: list[Problem] = []
    policy.load(content.root, found)
    return [str(problem) for problem in found]


def test_without_the_file_nothing_is_restricted(tmp_path: Path) -> None:
    found: list[Problem] = []
    assert policy.load(tmp_path, found) == Policy(rules={}, rulings={}, limits=Limits(None, None, None), paused="")
    assert clusters.load(tmp_path, found) == clusters.Clusters()
    assert found == []


def test_the_shipped_files_are_right_and_allow_every_shipped_experiment() -> None:
    found: list[Problem] = []
    rules = policy.load(SHIPPED, found)
    assert set(rules.rules) == {"prod", "test"}
    assert set(clusters.load(SHIPPED, found).by_environment) == {"prod", "test"}
    assert found == []
    repository = Repository(SHIPPED)
    paths, strays = repository.experiment_paths()
    assert render_paths(repository, paths, strays).problems == ()


def test_a_whole_policy(content: Content) -> None:
    text = """\
environments:
  test:
    buckets: [b]
    images: []
    image_form: digest
    scale_from_zero: true
checks:
  placeholder:
    severity: "off"
    reason: because
  launch-ignored:
    severity: error
merge: {launches: 1, stops: 2, chips: 3}
paused: maintenance
"""
    assert wrong(content, text) == []
    rulings = {
        "placeholder": Ruling(None, "because", Location(FILE, 8, 3)),
        "launch-ignored": Ruling(Severity.ERROR, "", Location(FILE, 11, 3)),
    }
    rules = {"test": Rules(buckets=("b",), namespaces=None, images=(), image_form="digest", scale_from_zero=True)}
    assert policy.load(content.root, []) == Policy(rules, rulings, Limits(1, 2, 3), "maintenance")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("limits: {}\n", [":1:1: limits: unknown key\n    known: environments, checks, merge, paused"]),
        ("environments: [prod]\n", [":1:15: environments: must be a mapping of keys"]),
        ("environments: {stage: {}}\n", [":1:16: environments.stage: unknown key\n    known: prod, test"]),
        (
            "environments: {prod: {bucket: [a]}}\n",
            [":1:23: environments.prod.bucket: unknown key\n    known: buckets"],
        ),
        (
            "environments: {prod: {buckets: a}}\n",
            [':1:32: environments.prod.buckets: must be a list of texts, not the text "a"'],
        ),
        (
            "environments: {prod: {image_form: sha}}\n",
            [':1:35: environments.prod.image_form: "sha" is not tag or digest'],
        ),
        (
            "environments: {test: {scale_from_zero: tpu7x}}\n",
            [':1:40: environments.test.scale_from_zero: must be true or false, not the text "tpu7x"'],
        ),
        (
            'checks: {no-such-code: {severity: "off", reason: r}}\n',
            [":1:10: checks.no-such-code: no check has this code\n    docs/checks.md lists them"],
        ),
        (
            'checks: {placeholders: {severity: "off", reason: r}}\n',
            [":1:10: checks.placeholders: no check has this code\n    did you mean placeholder?"],
        ),
        (
            'checks: {placeholder: {severity: "off"}}\n',
            [":1:10: checks.placeholder: off needs a reason: write reason: beside it"],
        ),
        (
            "checks: {placeholder: {severity: warning}}\n",
            [":1:10: checks.placeholder: warning needs a reason: write reason: beside it"],
        ),
        (
            'checks: {placeholder: {severity: warning, reason: " "}}\n',
            [':1:51: checks.placeholder.reason: " " is not a reason'],
        ),
        (
            "checks: {parallelism-product: {severity: warning, reason: r}}\n",
            [
                ":1:10: checks.parallelism-product: stays an error:"
                " no run can be made without it, or nobody may waive it"
            ],
        ),
        (
            "checks: {placeholder: {reason: r}}\n",
            [":1:10: checks.placeholder.severity: missing: error, warning or off."],
        ),
        (
            "merge: {chips: -1}\n",
            [":1:16: merge.chips: -1 is out of range: must be at least 0"],
        ),
        ("paused: true\n", [":1:9: paused: must be the reason why nothing is launched, or absent"]),
    ],
)
def test_what_is_wrong_in_the_file_is_named(content: Content, text: str, expected: list[str]) -> None:
    assert wrong(content, text) == [f"{FILE}{line}" for line in expected]


def test_a_wrong_policy_refuses_to_render(content: Content) -> None:
    content.experiment()
    content.write(FILE, "limits: {}\n")
    assert problems(content) == [f"{FILE}:1:1: limits: unknown key\n    known: environments, checks, merge, paused"]


RESTRICTED = """\
environments:
  test:
    buckets: [elsewhere]
    namespaces: [elsewhere]
    images: ["registry.example.com/ling3/*"]
"""


def test_what_an_environment_may_not_use_is_named_where_it_stands(content: Content) -> None:
    content.experiment()
    content.write(FILE, RESTRICTED)
    found = [re.sub(r"\.yml:\d+:\d+:", ".yml:", text) for text in problems(content)]
    start = "presets/ling3-flash/environment/test.yml: "
    assert found == [
        f"{start}deploy.K8S_NAMESPACE: default is not allowed in test\n    {FILE} allows: elsewhere",
        f"{start}deploy.GCS_BUCKET: data_ant is not allowed in test\n    {FILE} allows: elsewhere",
        f"{start}maxtext.base_output_directory: data_ant is not allowed in test\n    {FILE} allows: elsewhere",
        "experiments/ling3-flash/run.yml: launch.image: python:3.12 is not allowed in test\n"
        f"    {FILE} allows: registry.example.com/ling3/*",
    ]


DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("form", "image", "expected"),
    [
        ("tag", "v1", ""),
        ("tag", DIGEST, ""),
        ("tag", "latest", "registry.example.com/ling3/maxtext-tpu-pretrain:latest does not say which version"),
        ("tag", "registry.example.com/x", "registry.example.com/x does not say which version"),
        ("digest", DIGEST, ""),
        ("digest", "registry.example.com/x:v1", "registry.example.com/x:v1 is no digest"),
    ],
)
def test_the_form_of_an_image(content: Content, form: str, image: str, expected: str) -> None:
    content.experiment(launch={"image": image, "branch": None})
    content.write(FILE, f"environments: {{test: {{image_form: {form}}}}}\n")
    found = problems(content)
    assert len(found) == bool(expected)
    assert expected in "".join(found)


def test_an_image_reference_may_name_a_port(content: Content) -> None:
    content.experiment(launch={"image": "registry.example.com:5000/x", "branch": None})
    content.write(FILE, "environments: {test: {image_form: tag}}\n")
    assert "does not say which version" in "".join(problems(content))


TODO = {"tokenizer_path": "TODO"}


def test_a_lowered_error_does_not_block_and_says_why(content: Content) -> None:
    content.experiment(maxtext=TODO)
    assert "placeholder TODO" in problems(content)[0]
    content.write(FILE, "checks:\n  placeholder:\n    severity: warning\n    reason: a test\n")
    (found,) = problems(content)
    assert found.endswith(
        f"maxtext.tokenizer_path: warning: placeholder TODO: write the real value\n    warning by {FILE}:2: a test"
    )


def test_a_code_that_is_off_is_not_reported(content: Content) -> None:
    content.experiment(maxtext=TODO)
    content.write(FILE, 'checks: {placeholder: {severity: "off", reason: a test}}\n')
    assert problems(content) == []


def test_a_raised_warning_blocks(content: Content) -> None:
    content.experiment(launch={"image": "v1", "branch": "main"})
    content.write(FILE, "checks: {launch-ignored: {severity: error}}\n")
    (found,) = problems(content)
    assert "warning" not in found


def test_applying_twice_changes_nothing_more() -> None:
    rules = Policy(rulings={"placeholder": Ruling(Severity.WARNING, "r", Location(FILE, 1, 1))})
    once = policy.apply(rules, [Problem("placeholder", Location("f"), "", "m", "hint")])
    assert once == policy.apply(rules, once)
    assert once[0].hint == f"hint\nwarning by {FILE}:1: r"


def test_limits_of_a_merge() -> None:
    rules = Policy(limits=Limits(launches=1, stops=None, chips=64))
    assert policy.exceeded(rules, launches=1, stops=99, chips=64) == []
    assert policy.exceeded(rules, launches=2, stops=0, chips=128) == [
        "would launch 2 runs, at most 1 is allowed",
        "would take 128 chips, at most 64 are allowed",
    ]
    assert policy.exceeded(Policy(limits=Limits(stops=0, chips=0)), launches=0, stops=1, chips=1) == [
        "would stop 1 run, at most 0 are allowed",
        "would take 1 chip, at most 0 are allowed",
    ]


def loaded(content: Content) -> list[str]:
    found: list[Problem] = []
    policy.load(content.root, found)
    clusters.load(content.root, found)
    return [str(problem) for problem in found]


@pytest.mark.parametrize("file", [FILE, clusters.FILE])
def test_what_is_there_but_no_file_is_not_absent(file: str, content: Content, tmp_path: Path) -> None:
    path = content.root / file
    path.unlink(missing_ok=True)
    assert loaded(content) == []
    (tmp_path / "file.yml").write_text("{}\n")
    path.symlink_to(tmp_path / "file.yml")
    assert loaded(content) == [f"{file}: lies outside the repository: what is launched must be reviewed here"]
    path.unlink()
    path.symlink_to("nowhere.yml")
    assert loaded(content) == [f"{file}: is a symbolic link, of which git keeps only where it leads"]
    path.unlink()
    path.symlink_to(path.name)
    assert loaded(content) == [f"{file}: is a symbolic link, of which git keeps only where it leads"]
    path.unlink()
    os.mkfifo(path)
    assert loaded(content) == [f"{file}: is not a regular file"]
    path.unlink()
    path.mkdir()
    assert loaded(content) == [f"{file}: is a folder"]


def test_a_policy_that_is_no_file_refuses_to_render(content: Content) -> None:
    content.experiment()
    (content.root / FILE).symlink_to("nowhere.yml")
    assert problems(content) == [f"{FILE}: is a symbolic link, of which git keeps only where it leads"]
