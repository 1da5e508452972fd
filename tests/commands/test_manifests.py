"""`renderer manifests`: the committed files of a run as one stream."""

from __future__ import annotations

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
    assert ran.err.startswith("ling3-flash/one: its jobset.yml is not a rendered run's: ")
