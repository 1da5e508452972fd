"""A run's files: names, digests, what counts for the content and what does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from content import SHIPPED, Content
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from renderer import outputs
from renderer.manifest_yaml import load
from renderer.names import seal, sealed
from renderer.outputs import Rendered, pod_digest, pod_files, recompute_digest

SHIPPED_RUNS = sorted(path.parent.relative_to(SHIPPED).as_posix() for path in SHIPPED.glob("rendered/*/*/*/jobset.yml"))


def committed(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((SHIPPED / folder).iterdir())}


@pytest.mark.parametrize("folder", SHIPPED_RUNS)
def test_shipped_run_carries_its_own_digests(folder: str) -> None:
    files = committed(folder)
    jobset = load(files["jobset.yml"].decode())
    digest = recompute_digest(files)
    assert jobset["metadata"]["annotations"]["renderer/content-digest"] == digest
    assert jobset["metadata"]["name"].endswith(f"c-{digest[:8]}")
    assert sealed(files)


def test_every_shipped_experiment_is_rendered() -> None:
    rendered = sorted("/".join(folder.split("/")[2:]) for folder in SHIPPED_RUNS)
    assert rendered == sorted(f"{path.parent.name}/{path.stem}" for path in SHIPPED.glob("experiments/*/*.yml"))


@pytest.mark.parametrize("folder", SHIPPED_RUNS[:: max(1, len(SHIPPED_RUNS) // 3)])
def test_any_flipped_byte_of_a_shipped_run_breaks_its_seal(folder: str) -> None:
    files = committed(folder)
    for name, data in files.items():
        for index in range(0, len(data), 7):
            changed = bytearray(data)
            changed[index] ^= 1 << (index % 8)
            assert not sealed({**files, name: bytes(changed)}), f"{name} at {index}"


def prod(content: Content, name: str = "run", **changes: Mapping[str, Any]) -> Path:
    """A run with every kind of output: a watcher, volumes, flags, variables, rules."""
    launch = {"environment": "prod", "chips": 256, "image": "v1", "branch": None, **changes.pop("launch", {})}
    deploy = {"ENV": {"A": "1"}, "LIBTPU_INIT_ARGS": {"xla_tpu_x": "1"}, "QUEUE": "q", **changes.pop("deploy", {})}
    return content.experiment(name, launch=launch, deploy=deploy, **changes)


def digest_of(content: Content, path: Path) -> str:
    rendered = content.render(path)
    assert recompute_digest(rendered.files) == rendered.names.content_digest
    return rendered.names.content_digest


def test_content_does_not_depend_on_names_owner_and_attempt(content: Content) -> None:
    before = digest_of(content, prod(content))
    assert digest_of(content, prod(content, "another-name")) == before
    for change in (
        {"name": "renamed"},
        {"owner": "others"},
        {"attempt": 7},
        {"supersede": "stop"},
        {"state": "stopped"},
    ):
        assert digest_of(content, prod(content, launch=change)) == before, change
    assert digest_of(content, prod(content, promises={"global_batch": 8192})) == before
    path = prod(content)
    path.write_text("# comment\n" + path.read_text() + "\n# more\n")
    assert digest_of(content, path) == before


@pytest.mark.parametrize(
    "change",
    [
        {"launch": {"image": "v2"}},
        {"launch": {"resume": "other-run"}},
        {"launch": {"chips": 512}},
        {"maxtext": {"run_name": "mine"}},
        {"maxtext": {"steps": 7}},
        {"maxtext": {"final_logits_soft_cap": None}},
        {"maxtext": {"logical_axis_rules": [["activation_batch", ["data"]]]}},
        {"deploy": {"ENV": {"A": "2"}}},
        {"deploy": {"ENV": {"B": "1"}}},
        {"deploy": {"ENV": {"CHECKPOINT_DIRECTORY": "gs://ant-data-prod/x"}}},
        {"deploy": {"QUEUE": "r"}},
        {"deploy": {"HF_INTERVAL_SECONDS": 60}},
        {"deploy": {"WARMUP_ITERS": 1}},
        {"deploy": {"GRACE_SECONDS": 60}},
    ],
    ids=str,
)
def test_content_follows_every_other_value(change: dict[str, Any], content: Content) -> None:
    assert digest_of(content, prod(content, **change)) != digest_of(content, prod(content))


@pytest.mark.parametrize("name", ["CHECKPOINT_DIRECTORY", "HF_OUTPUT_DIRECTORY", "run", "MODEL_NAME"])
def test_a_variable_of_any_name_counts(name: str, content: Content) -> None:
    digests = {
        digest_of(content, prod(content, deploy={"ENV": {name: value}})) for value in ("gs://ant-data-prod/a", "b", "c")
    }
    assert len(digests) == 3


def test_the_same_value_from_another_layer_is_another_run(content: Content) -> None:
    """A key that a person set wins over D1 to D3, so who set it counts."""
    before = content.render(content.experiment())
    after = content.render(content.experiment(maxtext={"opt_type": "muon"}))
    assert load(before.files["run.yml"].decode())["opt_type"] == load(after.files["run.yml"].decode())["opt_type"]
    assert before.names.content_digest != after.names.content_digest


@pytest.mark.parametrize("file", ["jobset.yml", "run.yml", "watcher.yml", "derive.json"])
def test_every_committed_value_counts_or_is_named_as_derived(file: str, content: Content) -> None:
    """Change one leaf after the other in a rendered file: the recomputed digest follows, but for the closed set."""
    rendered = content.render(prod(content))
    ignored = set()
    for path in _paths(_data(rendered, file)):
        data = _data(rendered, file)
        _change(data, path)
        changed = {**rendered.files, file: json.dumps(data).encode()}
        if recompute_digest(changed) == rendered.names.content_digest:
            ignored.add(".".join(map(str, path)))
    pod = "spec.replicatedJobs.0.template.spec.template.spec"
    watcher = "spec.template.spec.containers.0.env"
    assert (
        ignored
        == {
            "jobset.yml": {
                "metadata.name",
                "metadata.labels.renderer/experiment",
                "metadata.labels.renderer/owner",
                "metadata.annotations.renderer/content-digest",
                "metadata.annotations.renderer/experiment-digest",
                "metadata.annotations.renderer/files-digest",
                f"{pod}.containers.0.env.1.value",
                f"{pod}.volumes.0.configMap.name",
            },
            "run.yml": {"run_name"},
            "watcher.yml": {
                "metadata.name",
                "metadata.labels.renderer/experiment",
                "metadata.labels.renderer/owner",
                "spec.selector.matchLabels.renderer/watcher",
                "spec.template.metadata.labels.renderer/watcher",
                f"{watcher}.0.value",
                f"{watcher}.1.value",
            },
            "derive.json": set(),
        }[file]
    )


def test_an_explicit_run_name_counts_wherever_it_stands(content: Content) -> None:
    rendered = content.render(prod(content, maxtext={"run_name": "mine"}))
    for name, old, new in (
        ("run.yml", '"mine"', '"theirs"'),
        ("jobset.yml", '"mine"', '"theirs"'),
        ("watcher.yml", '"mine"', '"theirs"'),
    ):
        text = rendered.files[name].decode()
        assert text.count(old) == 1
        assert (
            recompute_digest({**rendered.files, name: text.replace(old, new).encode()}) != rendered.names.content_digest
        )


def _data(rendered: Rendered, file: str) -> Any:
    text = rendered.files[file].decode()
    return json.loads(text) if file.endswith("json") else load(text)


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [found for key, item in items for found in _paths(item, (*path, key))]
    return below or [path]


def _change(data: Any, path: tuple[str | int, ...]) -> None:
    for key in path[:-1]:
        data = data[key]
    old = data[path[-1]]
    flips: dict[type, Callable[[Any], Any]] = {
        bool: lambda x: not x,
        int: lambda x: x + 1,
        str: lambda x: f"{x}x",
        float: lambda x: x + 1,
    }
    data[path[-1]] = flips.get(type(old), lambda _: "x")(old) if path[-1] != "run_name_explicit" else "yes"


@pytest.mark.parametrize("attempt", [1, 2, 99])
def test_attempt_names_the_objects_and_keeps_the_checkpoints(attempt: int, content: Content) -> None:
    first = content.render(prod(content))
    rendered = content.render(prod(content, launch={"attempt": attempt}))
    ending = "" if attempt == 1 else f"-a{attempt}"
    assert rendered.names.object == first.names.object + ending
    assert rendered.names.run == first.names.run
    jobset = load(rendered.files["jobset.yml"].decode())
    assert jobset["metadata"]["name"] == rendered.names.object
    assert rendered.names.run_config_map == f"run-{rendered.names.object}"
    assert load(rendered.files["watcher.yml"].decode())["metadata"]["name"] == f"{rendered.names.object}-hf"
    assert rendered.files["run.yml"] == first.files["run.yml"]
    assert rendered.names.checkpoint_directory == f"gs://ant-data-prod/ling3-flash/{first.names.run}/checkpoints"


def test_resume_continues_another_runs_checkpoints(content: Content) -> None:
    rendered = content.render(prod(content, launch={"resume": "first-256c-01234567"}))
    assert load(rendered.files["run.yml"].decode())["run_name"] == "first-256c-01234567"
    assert rendered.names.object.startswith("run-256c-")
    assert json.loads(rendered.files["derive.json"])["run_name_explicit"] is True


def test_folder_is_named_by_the_file_not_by_the_run(content: Content) -> None:
    rendered = content.render(prod(content, "the-file", launch={"name": "the-run"}))
    assert rendered.folder == "rendered/prod/ling3-flash/the-file"
    assert rendered.names.object.startswith("the-run-256c-")


def test_rendering_twice_gives_the_same_bytes(content: Content) -> None:
    paths = content.ship()
    assert [one.files for one in content.render_all(paths)] == [
        other.files for other in content.render_all(reversed(paths))
    ][::-1]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rng=st.randoms(use_true_random=False))
def test_order_of_keys_does_not_change_the_content(rng: Any, content: Content) -> None:
    deploy = {
        "ENV": {"A": "1", "B": "2"},
        "VOLUMES": {"/a": "x", "/b": "y"},
        "DERIVATIONS": ["D1", "D2"],
        "GRACE_SECONDS": 9,
    }
    maxtext = {"steps": 5, "learning_rate": 1e-4, "log_period": 3}
    one = content.render(prod(content, deploy=deploy, maxtext=maxtext))
    other = content.render(prod(content, deploy=_shuffled(deploy, rng), maxtext=_shuffled(maxtext, rng)))
    assert other.files == one.files


def _shuffled(data: Any, rng: Any) -> Any:
    if not isinstance(data, dict):
        return data
    return {key: _shuffled(data[key], rng) for key in rng.sample(sorted(data), len(data))}


def test_pod_scripts_are_named_by_their_content(monkeypatch: pytest.MonkeyPatch, content: Content) -> None:
    path = content.experiment()
    before = content.render(path)
    assert list(pod_files()) == [
        f"rendered/_pod/{pod_digest()}/{name}"
        for name in ("bootstrap.sh", "derivations.py", "run_pretrain.py", "start_trainer.py")
    ]
    pod_digest.cache_clear()
    monkeypatch.setattr(outputs, "pod_scripts", lambda: {"bootstrap.sh": b"#!/bin/bash\n"})
    try:
        after = content.render(path)
        assert len(pod_digest()) == 12
        assert after.names.pod_config_map != before.names.pod_config_map
        assert after.names.content_digest != before.names.content_digest
    finally:
        pod_digest.cache_clear()


def test_a_longer_run_is_sealed_too(content: Content) -> None:
    rendered = content.render(prod(content))
    assert sealed(rendered.files)
    assert seal(dict(rendered.files)) == dict(rendered.files)


@pytest.mark.parametrize("name", ["jobset.yml", "run.yml", "derive.json", "watcher.yml"])
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"x", b"\xff", b"{", b"1", b"a: [\n", b"{a: 1}\n--- {}\n", b"metadata: {labels: []}\n"]
)
def test_files_that_are_no_runs_are_told(name: str, data: bytes, content: Content) -> None:
    files = {**content.render(content.experiment()).files, name: data}
    if (name, data) in {("watcher.yml", b""), ("run.yml", b"metadata: {labels: []}\n")}:
        recompute_digest(files)  # a mapping of other values: another digest, no error
        return
    with pytest.raises(ValueError, match=r"."):
        recompute_digest(files)
