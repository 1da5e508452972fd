"""jobset.yml and watcher.yml: the whole manifests, and what must never be in one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from content import SHIPPED, Content, container, manifest, pod_spec, settled
from syrupy.assertion import SnapshotAssertion

from renderer.jobset import FOLDER, SCRIPTS
from renderer.jobset_schema import jobset_problems
from renderer.location import Location
from renderer.manifest_yaml import load

JOBSETS = sorted(SHIPPED.glob("rendered/*/*/*/jobset.yml"))
MANIFESTS = [*JOBSETS, *sorted(SHIPPED.glob("rendered/*/*/*/watcher.yml"))]


def rendered_manifest(path: Any) -> str:
    return f"{path.parent.parent.name}/{path.parent.name}/{path.name}"


def test_source_mode(content: Content, snapshot: SnapshotAssertion) -> None:
    assert settled(content.render(content.experiment()).files["jobset.yml"].decode()) == snapshot


def test_everything_set(content: Content, snapshot: SnapshotAssertion) -> None:
    rendered = content.render(
        content.experiment(
            launch={"environment": "prod", "chips": 256, "image": "v1", "branch": None, "attempt": 3},
            deploy={
                "ENV": {"B": "no", "A": 'say "hi"\n0012'},
                "LIBTPU_INIT_ARGS": {"xla_tpu_b": "true", "xla_tpu_a": "1"},
                "QUEUE": "tpu-queue",
                "PRIORITY_CLASS": "high",
                "SERVICE_ACCOUNT": "trainer",
                "TTL_SECONDS": 86400,
                "MAX_HOURS": 1.5,
                "GRACE_SECONDS": 900,
            },
        )
    )
    assert settled(rendered.files["jobset.yml"].decode()) == snapshot
    assert settled(rendered.files["watcher.yml"].decode()) == snapshot


@pytest.mark.parametrize("path", JOBSETS, ids=rendered_manifest)
def test_shipped_jobset_is_one_the_api_server_takes(path: Any) -> None:
    assert jobset_problems(load(path.read_text()), Location(path.name)) == []


@pytest.mark.parametrize("path", MANIFESTS, ids=rendered_manifest)
def test_no_none_no_expansion_nothing_empty(path: Any) -> None:
    text = path.read_text()
    assert not re.search(r"\bNone\b", text)
    assert not re.search(r"\$\{|\$\(|\$\$", text)
    for value in walk(load(text)):
        assert value is not None
        assert value not in ({}, [])


def walk(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(found for item in items for found in walk(item))]


@pytest.mark.parametrize("path", MANIFESTS, ids=rendered_manifest)
def test_every_string_that_yaml_1_1_might_take_for_something_else_is_quoted(path: Any) -> None:
    """Unquoted stands only what the template itself says: words, never a value from a file."""
    plain = re.findall(r'^(?:[^"#\n]*?[:-] +)([^"\s#{\[|][^"#\n]*?)(?: +#.*)?$', path.read_text(), re.MULTILINE)
    assert plain
    for text in plain:
        last = text.rpartition(": ")[2]
        assert re.fullmatch(r"true|false|[0-9]+|[A-Za-z][A-Za-z0-9._/ -]*|/(?:etc|dev)/[a-z-]+|alpha\..*", last), text


def test_runtime_variables_are_present_and_unsubstituted() -> None:
    shell = (FOLDER / "bootstrap.sh").read_text()
    for name in ("GITHUB_TOKEN", "JOB_COMPLETION_INDEX", "LOG_FILE", "RUN_NAME"):
        assert re.search(rf"\$\{{?{name}\b", shell), name


def test_the_only_variables_are_ours_and_those_of_env(content: Content) -> None:
    trainer = container(content.render(content.experiment(deploy={"ENV": {"Z": "1", "A": "2"}})))
    assert [entry["name"] for entry in trainer["env"]] == [
        "GCS_BUCKET",
        "RUN_NAME",
        "LIBTPU_INIT_ARGS",
        "GITHUB_TOKEN",
        "A",
        "Z",
    ]
    secret = {"name": "perf-64chips-token", "key": "GITHUB_TOKEN", "optional": True}
    assert trainer["env"][3] == {"name": "GITHUB_TOKEN", "valueFrom": {"secretKeyRef": secret}}


@pytest.mark.parametrize(
    "value", ["a\nb\n", " lead", "trail ", "0012", "1e5", "on", "n", "12:30", "日本", 'q"q', "a\\b", "# x", "- x", ""]
)
def test_an_env_value_arrives_byte_for_byte(value: str, content: Content) -> None:
    trainer = container(content.render(content.experiment(deploy={"ENV": {"A": value}})))
    assert trainer["env"][-1] == {"name": "A", "value": value}


def test_no_volumes_means_no_gcsfuse(content: Content) -> None:
    path = content.experiment(model="qwen3-0.6b", launch={"image": "v1", "branch": None})
    rendered = content.render(path)
    assert "gcsfuse" not in rendered.files["jobset.yml"].decode()
    assert [volume["name"] for volume in pod_spec(rendered)["volumes"]] == ["run", "pod", "dshm"]
    with_volume = content.render(content.experiment())
    template = manifest(with_volume)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert template["metadata"] == {"annotations": {"gke-gcsfuse/volumes": "true"}}


@pytest.mark.parametrize("hours", [None, 0.5, 24])
def test_time_limit_is_per_start_and_fails_the_run(hours: float | None, content: Content) -> None:
    rendered = content.render(content.experiment(deploy={"MAX_HOURS": hours} if hours else None))
    job = manifest(rendered)["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert job.get("activeDeadlineSeconds") == (hours and hours * 3600)
    actions = {rule["name"]: rule["action"] for rule in manifest(rendered)["spec"]["failurePolicy"]["rules"]}
    limit = {"time_limit": "FailJobSet"} if hours else {}
    maintenance = {"configuration_error": "FailJobSet", "maintenance": "RestartJobSetAndIgnoreMaxRestarts"}
    assert actions == {**maintenance, **limit}


def test_the_scripts_of_the_pod_exist() -> None:
    assert [name for name in SCRIPTS if not (FOLDER / name).is_file()] == []
