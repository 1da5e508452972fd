"""`renderer manifests`: the committed files of a run as one stream."""

from __future__ import annotations

import os
import shutil

import pytest
import yaml
from content import Content, settled
from syrupy.assertion import SnapshotAssertion

from renderer import outputs


def test_stream_of_the_committed_files(content: Content, snapshot: SnapshotAssertion) -> None:
    content.experiment("one")
    content.run("render")
    content.experiment("one", maxtext={"steps": 6})
    code, out, err = content.run("manifests", "ling3-flash/one")
    assert (code, err) == (0, "")
    documents = out.split("\n---\n")
    assert [
        (document["kind"], document["metadata"]["namespace"]) for document in yaml.safe_load_all(out) if document
    ] == [
        ("ConfigMap", "default"),
        ("ConfigMap", "default"),
        ("JobSet", "default"),
    ]
    assert "steps: 20" in documents[2]
    assert settled(documents[0]) == snapshot


def test_not_rendered_yet(content: Content) -> None:
    content.experiment("one")
    assert (
        content.run("manifests", "ling3-flash/one").err
        == "experiments/ling3-flash/one.yml: is not rendered yet; run renderer render\n"
    )


def test_without_its_pod_scripts(content: Content) -> None:
    content.experiment("one")
    content.run("render")
    shutil.rmtree(content.root / "rendered/_pod")
    ran = content.run("manifests", "ling3-flash/one")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"rendered/_pod/{outputs.pod_digest()}: is missing; run renderer render\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\nspec:\n", "\nspce:\n"),
        ("  labels:\n", "  labels: []\n  x:\n"),
        ("kind: JobSet", "kind: ["),
        ("volumes:", "volumse:"),
        ("  labels:\n", "  labels: \n"),
    ],
)
def test_an_edited_jobset_that_cannot_be_held_is_refused(old: str, new: str, content: Content) -> None:
    content.experiment("one")
    content.run("render")
    jobset = content.root / "rendered/test/ling3-flash/one/jobset.yml"
    jobset.write_text(jobset.read_text().replace(old, new))
    ran = content.run("manifests", "ling3-flash/one")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("rendered/test/ling3-flash/one/jobset.yml: ")


@pytest.mark.parametrize("file", ["run.yml", "derive.json", "jobset.yml"])
def test_an_edited_file_is_not_printed(file: str, content: Content) -> None:
    content.experiment("one")
    content.run("render")
    path = content.root / "rendered/test/ling3-flash/one" / file
    path.write_text(path.read_text().replace("ling3-flash", "ling4-flash", 1))
    ran = content.run("manifests", "ling3-flash/one")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "rendered/test/ling3-flash/one/jobset.yml: was edited by hand; run renderer render\n"


@pytest.mark.parametrize("deploy", [{"QUEUE": "pod-123456789abc"}, {"GITHUB_TOKEN_SECRET": "pod-123456789abc"}])
def test_another_object_called_like_the_pod_scripts_is_not_taken_for_them(
    deploy: dict[str, str], content: Content
) -> None:
    content.experiment("one", deploy=deploy)
    assert content.run("render").code == 0
    ran = content.run("manifests", "ling3-flash/one")
    assert (ran.code, ran.err) == (0, "")
    assert f'name: "pod-{outputs.pod_digest()}"' in ran.out.split("\n---\n")[1]


def test_a_pipe_among_the_pod_scripts_is_not_waited_for(content: Content) -> None:
    content.experiment("one")
    content.run("render")
    file = f"rendered/_pod/{outputs.pod_digest()}/a.sh"
    os.mkfifo(content.root / file)
    for command in ("manifests", "smoke"):
        ran = content.run(command, "ling3-flash/one")
        assert tuple(ran) == (1, "", f"{file}: is not a regular file: delete it\n")


def test_a_pod_script_that_is_no_text_is_refused_by_name(content: Content) -> None:
    content.experiment("one")
    content.run("render")
    file = f"rendered/_pod/{outputs.pod_digest()}/bootstrap.sh"
    content.write(file, b"\xff")
    err = content.run("manifests", "ling3-flash/one").err
    assert err.startswith(f"{file}: is not a rendered run's: 'utf-8' codec")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("- name: trainer", "- name: other", "it has another shape"),
        ("            command:", "            commands:", "it has no command"),
        ('"bash"', '"ba\\0sh"', "its command, arguments and variables are not all texts"),
        ('"--mode"', "1", "its command, arguments and variables are not all texts"),
    ],
)
def test_a_jobset_that_describes_no_pod_is_not_started(old: str, new: str, reason: str, content: Content) -> None:
    content.experiment("one")
    content.run("render")
    jobset = content.root / "rendered/test/ling3-flash/one/jobset.yml"
    text = jobset.read_text()
    assert old in text
    jobset.write_text(text.replace(old, new))
    ran = content.run("smoke", "ling3-flash/one")
    assert (ran.code, ran.out) == (1, "")
    file = "rendered/test/ling3-flash/one/jobset.yml"
    assert ran.err == f"{file}: is not a rendered run's: {reason}\n    run renderer render\n"
