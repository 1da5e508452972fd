"""What policy.yml forbids a committed run, by its rendered files."""

from __future__ import annotations

from pathlib import Path

import pytest

from renderer.cluster.objects import Objects, objects
from renderer.cluster.permitted import forbidden
from renderer.layers import Repository
from renderer.outputs import RUN_FILES
from renderer.policy import Rules, load
from renderer.problem import Problem
from renderer.run_text import CONTENT_DIGEST, EXPERIMENT_DIGEST, NAME, value
from renderer.runs import Committed
from tests.content import SHIPPED

PROD = "rendered/prod/ling3-flash/lr3e4-fineweb"
TEST = "rendered/test/qwen3-0.6b/smoke-64"


def shipped(folder: str) -> Objects:
    """Return a shipped run as apply reads it."""
    files = {name: (SHIPPED / folder / name).read_bytes() for name in RUN_FILES if (SHIPPED / folder / name).is_file()}
    pod = {path.relative_to(SHIPPED).as_posix(): path.read_bytes() for path in SHIPPED.glob("rendered/_pod/*/*")}
    jobset, environment = files["jobset.yml"], folder.split("/")[1]
    own, content = value(EXPERIMENT_DIGEST, jobset), value(CONTENT_DIGEST, jobset)
    about = {"name": value(NAME, jobset), "content": content, "own": own}
    return objects(Committed("m/run", "experiments/m/run.yml", environment, **about), folder, files, pod)


def test_shipped_runs_are_permitted() -> None:
    problems: list[Problem] = []
    rules = load(Path(Repository(SHIPPED).root), problems).rules
    assert problems == []
    for folder in (PROD, TEST):
        environment = folder.split("/")[1]
        assert list(forbidden(rules[environment], environment, shipped(folder))) == []


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (Rules(), []),
        (Rules(namespaces=("other",)), ["ling3-prod is not allowed in prod; presets/policy.yml allows: other"]),
        (Rules(namespaces=()), ["ling3-prod is not allowed in prod; presets/policy.yml allows: none"]),
        (Rules(buckets=("ant-*",)), ["ant-data-prod is not allowed in prod; presets/policy.yml allows: ant-*"]),
        (
            Rules(images=("registry.example.com/ling3/maxtext-*",)),
            [
                "registry.example.com/ling3/hf-watcher:2026-06-09 is not allowed in prod; "
                "presets/policy.yml allows: registry.example.com/ling3/maxtext-*"
            ],
        ),
        (
            Rules(image_form="digest"),
            [
                "registry.example.com/ling3/maxtext-tpu-pretrain:main-abc1234-20260609 is no digest: "
                "prod takes registry.example.com/ling3/maxtext-tpu-pretrain@sha256:... only"
            ],
        ),
        (Rules(image_form="tag"), []),
    ],
)
def test_a_stricter_policy_forbids(rules: Rules, said: list[str]) -> None:
    assert list(forbidden(rules, "prod", shipped(PROD))) == said


def test_what_is_cloned_is_judged_in_source_mode() -> None:
    run = shipped(TEST)
    source = run.jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    source["args"] = ["--mode", "source", "--repository", "github.com/a/b.git"]
    said = "github.com/a/b.git is not allowed in test; presets/policy.yml allows: github.com/c/*"
    assert list(forbidden(Rules(repositories=("github.com/c/*",)), "test", run)) == [said]
    assert list(forbidden(Rules(repositories=("github.com/a/*",), image_form="digest"), "test", run)) == []
