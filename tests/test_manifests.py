"""Everything a run consists of as one stream: held, complete, and with the reviewed bytes in it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from content import Content
from hypothesis import example, given
from hypothesis import strategies as st

from renderer.jobset import pod_scripts
from renderer.manifest_yaml import load
from renderer.manifests import HOLD_QUEUE, config_map, held, stream

QUEUE = "kueue.x-k8s.io/queue-name"


def documents(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize("queue", [None, "tpu-queue"])
def test_stream_holds_the_reviewed_bytes_and_a_held_jobset(queue: str | None, content: Content) -> None:
    rendered = content.render(
        content.experiment(
            launch={"environment": "prod", "chips": 256, "image": "v1", "branch": None},
            deploy={"QUEUE": queue} if queue else None,
        )
    )
    text = stream(rendered.files, pod_scripts())
    comment, *objects = text.split("\n---\n")
    assert all(line.startswith("#") for line in comment.splitlines())
    release = f"{QUEUE}={queue}" if queue else '{"spec":{"suspend":false}}'
    assert release in comment
    pod, run, jobset, watcher = documents("\n---\n".join(objects))
    for config in (pod, run):
        assert (config["apiVersion"], config["kind"], config["immutable"]) == ("v1", "ConfigMap", True)
        assert config["metadata"]["namespace"] == "ling3-prod"
    assert pod["metadata"]["name"] == rendered.names.pod_config_map
    assert {name: data.encode() for name, data in pod["data"].items()} == dict(pod_scripts())
    assert run["metadata"]["name"] == f"run-{rendered.names.object}"
    assert {name: data.encode() for name, data in run["data"].items()} == {
        name: rendered.files[name] for name in ("derive.json", "run.yml")
    }
    reviewed = load(rendered.files["jobset.yml"].decode())
    assert jobset["spec"].pop("suspend") is True
    assert jobset["metadata"]["labels"].pop(QUEUE) == HOLD_QUEUE
    reviewed["metadata"]["labels"].pop(QUEUE, None)
    assert jobset == reviewed
    assert watcher == load(rendered.files["watcher.yml"].decode())


def test_rendered_jobset_itself_is_neither_suspended_nor_held(content: Content) -> None:
    text = content.render(content.experiment()).files["jobset.yml"].decode()
    assert "suspend" not in text
    assert QUEUE not in text


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.dictionaries(st.sampled_from(["run.yml", "a b.sh", "x"]), TEXT, max_size=3))
@example({"x": "#!/bin/bash\nset -e\n\n  indented\n"})
@example({"x": " leading\n"})
@example({"x": "\nblank first\n"})
@example({"x": "a\n\n"})
@example({"x": "a\n\n\n b\n"})
@example({"x": "no end"})
@example({"x": "tab\tinside\n"})
@example({"x": "trailing  \n"})
@example({"x": ""})
@example({"x": "\n"})
@example({"x": "%YAML\n---\n...\n"})
@example({"x": "a\u2028b\x85c\n"})
@example({"x": "a\r\nb\n"})
def test_config_map_keeps_every_byte(data: dict[str, str]) -> None:
    text = "\n".join(config_map("n", "s", {name: value.encode() for name, value in data.items()})) + "\n"
    assert load(text)["data"] == (data or None)
    assert yaml.safe_load(text)["data"] == (data or None)


@pytest.mark.parametrize(
    "text", ["metadata: {labels: {}}\nspec: {}\n", "metadata:\n  labels:\n    a: b\n", "spec:\n  a: b\n"]
)
def test_a_jobset_that_cannot_be_held_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError), match=r"."):
        held(text)
