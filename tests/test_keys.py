"""The closed tables of keys: every deploy key does something, and no value outside its form is taken."""

from __future__ import annotations

import re
from typing import Any

import pytest
from content import Content

from renderer.key_types import Kind
from renderer.keys import CHECKS_KEYS, DEPLOY_KEYS, LAUNCH_KEYS

PROD = {"environment": "prod", "chips": 256, "image": "v1", "branch": None}
SOURCE: dict[str, Any] = {}
# What each key is changed to, in which mode, and whether that is a run (some files differ) or refused (a message).
CHANGED: dict[str, tuple[dict[str, Any], Any, set[str] | str]] = {
    "K8S_NAMESPACE": (SOURCE, "other", {"jobset.yml"}),
    "K8S_MAX_RESTARTS": (SOURCE, 7, {"jobset.yml"}),
    "ACCELERATOR": (SOURCE, "v5p", "1 x 1 x 128 x 1 = 128, but the slice has 64 devices"),
    "TPU_TOPOLOGY": (SOURCE, "4x4x8", "deploy.TPU_TOPOLOGY: 4x4x8 has 128 chips, but the run asks for 64"),
    "COMPLETIONS": (SOURCE, 17, "deploy.COMPLETIONS: 17, but 4x4x4 has 16 hosts: write 16"),
    "IMAGE_REPOSITORY": (PROD, "registry.example.com/other/maxtext", {"jobset.yml"}),
    "GIT_REPOSITORY": (SOURCE, "github.com/other/maxtext.git", {"jobset.yml"}),
    "GCS_BUCKET": (SOURCE, "other-bucket", "maxtext.base_output_directory"),
    "DATASETS_YAML": (SOURCE, "fin_35p", {"run.yml", "derive.json"}),
    "MAXTEXT_VERSION": (SOURCE, "df1b359", {"derive.json", "jobset.yml"}),
    "MAXTEXT_MODEL": (SOURCE, "qwen3-0.6b", {"run.yml", "derive.json"}),
    "DERIVATIONS": (SOURCE, ["D1"], {"derive.json"}),
    "VOLUMES": (SOURCE, {"/models_prod": "other-pvc"}, {"jobset.yml"}),
    "GITHUB_TOKEN_SECRET": (SOURCE, "other-token", {"jobset.yml"}),
    "ENV": (SOURCE, {"A": "b"}, {"jobset.yml"}),
    "LIBTPU_INIT_ARGS": (SOURCE, {"xla_tpu_x": "1"}, {"jobset.yml"}),
    "WARMUP_ITERS": (SOURCE, 5, {"derive.json"}),
    "LOAD_PARAMETERS_PATH_SCANNED": (SOURCE, "/models_prod/other", {"derive.json"}),
    "LOAD_PARAMETERS_PATH_UNSCANNED": (SOURCE, "/models_prod/other", {"derive.json"}),
    "QUEUE": (SOURCE, "tpu-queue", {"jobset.yml"}),
    "PRIORITY_CLASS": (SOURCE, "high", {"jobset.yml"}),
    "SERVICE_ACCOUNT": (SOURCE, "trainer", {"jobset.yml"}),
    "TTL_SECONDS": (SOURCE, 600, {"jobset.yml"}),
    "MAX_HOURS": (SOURCE, 1.5, {"jobset.yml"}),
    "GRACE_SECONDS": (SOURCE, 60, {"jobset.yml"}),
    "ENABLE_HF_CONVERSION": (PROD, False, {"watcher.yml"}),
    "HF_OUTPUT_DIRECTORY": (PROD, "gs://ant-data-prod/other", {"watcher.yml"}),
    "HF_WATCHER_IMAGE": (PROD, "registry.example.com/other/watcher:v2", {"watcher.yml"}),
    "HF_SERVICE_ACCOUNT": (PROD, "other-account", {"watcher.yml"}),
    "HF_INTERVAL_SECONDS": (PROD, 60, {"watcher.yml"}),
}


@pytest.mark.parametrize("key", DEPLOY_KEYS)
def test_changing_one_deploy_key_changes_an_output_or_is_refused(key: str, content: Content) -> None:
    launch, value, outcome = CHANGED[key]
    before = content.render(content.experiment(launch=launch))
    path = content.experiment(launch=launch, deploy={key: value})
    if isinstance(outcome, str):
        code, _, err = content.run("render", "ling3-flash/run")
        assert code == 1
        assert outcome in err
        return
    after = content.render(path)
    assert after.names.content_digest != before.names.content_digest
    names = {*before.files, *after.files}
    strip = {name: (_unnamed(before, name), _unnamed(after, name)) for name in names}
    assert {name for name, (old, new) in strip.items() if old != new} == outcome


def _unnamed(rendered: Any, name: str) -> bytes:
    """Return a file without the names and digests that follow from the content."""
    data: bytes = rendered.files.get(name, b"")
    for word in (rendered.names.object, rendered.names.content_digest, rendered.names.experiment_digest):
        data = data.replace(word.encode(), b"-")
    return re.sub(rb'(files-digest: )"[0-9a-f]*"', rb"\1", data)


WRONG: dict[Kind, tuple[Any, str]] = {
    Kind.TEXT: (5, 'must be text, not the number 5: write "5" for the text'),
    Kind.INTEGER: ("5", 'must be an integer, not the text "5"'),
    Kind.NUMBER: ("5", 'must be a number, not the text "5"'),
    Kind.BOOLEAN: (1, 'must be true or false, not the number 1: write "1" for the text'),
    Kind.TEXT_LIST: ("D1", 'must be a list of texts, not the text "D1"'),
    Kind.TEXT_MAP: ("x", "must be a mapping of names to texts"),
}


@pytest.mark.parametrize("key", DEPLOY_KEYS)
def test_a_value_of_the_wrong_type_is_refused(key: str, content: Content) -> None:
    value, message = WRONG[DEPLOY_KEYS[key].kind]
    problems = content.problems(content.experiment(model="qwen3-0.6b", launch={"image": "v1"}, deploy={key: value}))
    path = f": deploy.{key}: "
    if key == "MAXTEXT_VERSION":
        message = "unknown MaxText version 5; known: "
    elif key == "DATASETS_YAML":
        message = 'must be text, not the number 5: write "5" for the text'
    assert [problem for problem in problems if path in problem and message in problem], problems


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("K8S_NAMESPACE", "Prod", '"Prod" is not a DNS label: lower-case letters, digits and -, at most 63 characters'),
        (
            "K8S_NAMESPACE",
            "a" * 64,
            f'"{"a" * 64}" is not a DNS label: lower-case letters, digits and -, at most 63 characters',
        ),
        ("K8S_MAX_RESTARTS", -1, "-1 is out of range: must be at least 0"),
        ("K8S_MAX_RESTARTS", 1001, "1001 is out of range: must be at most 1000"),
        ("ACCELERATOR", "tpu8", '"tpu8" is not one of tpu7x, v6e, v5p, v5e'),
        (
            "IMAGE_REPOSITORY",
            "registry.example.com/a:tag",
            '"registry.example.com/a:tag" is not host/path without tag, in lower case',
        ),
        (
            "GIT_REPOSITORY",
            "https://github.com/o/r.git",
            '"https://github.com/o/r.git" is not host/path without https://',
        ),
        ("GCS_BUCKET", "gs://bucket", '"gs://bucket" is not a bucket\'s name, without gs://'),
        ("DERIVATIONS", ["D1", "D6"], '"D6" is not D1 to D5'),
        ("VOLUMES", {"models": "claim"}, '"models" is not an absolute path'),
        ("VOLUMES", {"/models": "Claim"}, '"Claim" is not a Kubernetes name: lower-case letters, digits, - and .'),
        ("ENV", {"1A": "x"}, '"1A" is not the name of an environment variable: letters, digits and _'),
        ("ENV", {"PORT": 9080}, 'must be text, not the number 9080: write "9080" for the text'),
        ("ENV", {"FLAG": True}, 'must be text, not the boolean true: write "true" for the text'),
        ("ENV", {"A": None}, "must be text, not null"),
        ("LIBTPU_INIT_ARGS", {"--xla": "1"}, '"--xla" is not a flag\'s name without --'),
        (
            "LIBTPU_INIT_ARGS",
            {"xla": "a b"},
            '"a b" is not a flag\'s value: not empty, no spaces, quotes or backslashes',
        ),
        ("MAX_HOURS", 0, "0 is out of range: must be at least 0.0166667"),
        ("GRACE_SECONDS", 0, "0 is out of range: must be at least 1"),
        ("TTL_SECONDS", 2**31, "2147483648 is out of range: must be at most 2147483647"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused(key: str, value: Any, message: str, content: Content) -> None:
    problems = content.problems(content.experiment(model="qwen3-0.6b", deploy={key: value}))
    found = [problem.splitlines()[0] for problem in problems if f" deploy.{key}" in problem]
    found = [problem for problem in found if "has no effect" not in problem]
    assert [problem.partition(": ")[2].partition(": ")[2] for problem in found] == [message]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("chips", "64", 'must be an integer, not the text "64": write 64'),
        ("chips", 0, "0 is out of range: must be at least 1"),
        ("environment", "staging", '"staging" is not prod or test'),
        (
            "owner",
            "a team",
            '"a team" is not a label: at most 63 letters, digits, - _ . with a letter or digit at both ends',
        ),
        ("image", 8202758, 'must be text, not the number 8202758: write "8202758" for the text'),
        ("image", "a b", '"a b" is not a tag, a digest (sha256: and 64 hex digits), or a full image reference'),
        ("branch", "a..b", '"a..b" is not the name of a git branch'),
        ("branch", "-x", '"-x" is not the name of a git branch'),
        ("branch", "a;b", '"a;b" is not the name of a git branch'),
        ("branch", "x.lock", '"x.lock" is not the name of a git branch'),
        ("commit", "0" * 41, f'"{"0" * 41}" is not a commit: 40 hex digits'),
        ("commit", "abc", '"abc" is not a commit: 40 hex digits'),
        ("name", "Run", '"Run" is not a run\'s name: at most 63 lower-case letters, digits and -, first a letter'),
        ("attempt", 100, "100 is out of range: must be at most 99"),
        ("attempt", 0, "0 is out of range: must be at least 1"),
        ("supersede", "both", '"both" is not keep or stop'),
        ("state", "running", '"running" is not stopped (or leave the key out)'),
        ("model", "../x", '"../x" is not a name: letters, digits, - _ .'),
    ],
)
def test_a_selector_of_the_wrong_form_is_refused(key: str, value: Any, message: str, content: Content) -> None:
    problems = content.problems(content.experiment(launch={key: value}))
    assert [problem.partition(f": launch.{key}: ")[2] for problem in problems] == [message]


def test_a_removed_selector_is_named_as_it_was_written(content: Content) -> None:
    path = content.write(
        "experiments/ling3-flash/run.yml",
        "launch:\n  model: ling3-flash\n  chips: 64\n  context: 8k\n  environment: test\n  owner: !remove\n",
    )
    assert content.problems(path) == ["experiments/ling3-flash/run.yml:6:10: launch.owner: must be text, not !remove"]


@pytest.mark.parametrize("table", [DEPLOY_KEYS, LAUNCH_KEYS, CHECKS_KEYS], ids=["deploy", "launch", "checks"])
def test_every_key_is_described_in_a_sentence(table: Any) -> None:
    for name, key in table.items():
        assert key.name == name
        assert key.description.endswith("."), name
