"""Edited layers and the frozen runs that use them: which files count, and which runs."""

from __future__ import annotations

from typing import Any

import pytest
from repository import MODEL, Repo

PRESET = f"presets/{MODEL}/model.yml"


def impact(repo: Repo) -> dict[str, Any] | None:
    """Return what the report says of edited layers, with the paths of the values that they set otherwise."""
    data = repo.data()
    found: dict[str, Any] | None = data["impact"]
    edits = [value["path"] for value in data["values"] if value["role"] == "edit"]
    return None if found is None else {**found, "edits": edits}


def edited(path: str, edits: list[str], **counts: int) -> dict[str, Any]:
    return {"files": [path], "frozen": 0, "changed": 0, "earlier": 0, "invalid": 0, **counts, "edits": edits}


def test_runs_that_the_target_gained_meanwhile_count_too(repo: Repo) -> None:
    repo.experiment("old")
    repo.commit()
    repo.branch("topic")
    repo.content.edit(PRESET, "\nmaxtext:\n", "\nmaxtext:\n  adam_eps: 1.0e-7\n")
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    for name in ("new", "newer"):
        repo.experiment(name)
    repo.commit()
    repo.git("checkout", "--quiet", "topic")
    assert impact(repo) == edited(PRESET, ["maxtext.adam_eps"], frozen=3, changed=3)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("datasets/d.yml", "d"),
        ("datasets/d.yml", "datasets/d.yml"),
        ("datasets/d.yml", "./datasets/d.yml"),
        ("datasets/d.yml", "datasets//d.yml"),
        ("datasets/d.yml", "datasets/../datasets/d.yml"),
        ("docs/d.yml", "docs/d.yml"),
        ("d.yml", "./d.yml"),
    ],
)
def test_a_dataset_counts_however_its_path_is_written(path: str, named: str, repo: Repo) -> None:
    repo.content.write(path, "packing: true\n")
    repo.experiment(deploy={"DATASETS_YAML": named})
    repo.commit()
    repo.branch("topic")
    repo.content.write(path, "packing: false\n")
    repo.commit()
    assert impact(repo) == edited(path, ["maxtext.packing"], frozen=1, changed=1)


def test_a_dataset_that_nobody_uses_is_an_edited_layer(repo: Repo) -> None:
    repo.branch("topic")
    repo.content.write("datasets/new.yml", "packing: true\n")
    repo.commit()
    assert impact(repo) == edited("datasets/new.yml", ["maxtext.packing"])


def test_other_files_are_no_layers(repo: Repo) -> None:
    repo.experiment()
    repo.commit()
    repo.branch("topic")
    for path in ("rbac/apply.yml", "docs/mkdocs.yml", ".pre-commit-config.yml"):
        repo.content.write(path, "metadata:\n  name: a\n")
    repo.commit()
    assert impact(repo) is None


@pytest.mark.parametrize("link", [PRESET, "datasets/d.yml"])
def test_a_layer_that_is_a_link_is_refused_as_render_refuses_it(link: str, repo: Repo) -> None:
    repo.branch("topic")
    repo.content.write("datasets/d.yml", "packing: true\n")
    repo.experiment(deploy={"DATASETS_YAML": "d"})
    path = repo.content.root / link
    path.rename(path.with_suffix(".other.yml"))
    path.symlink_to(path.with_suffix(".other.yml").name)
    repo.commit()
    (note,) = (note for note in repo.data()["notes"] if note["places"] == [link])
    said = "is a symbolic link, of which git keeps only where it leads"
    assert (note["severity"], note["message"]) == ("error", said)
    assert repo.content.run("render", "--check", "--base", "main").err.splitlines()[0] == f"{link}: {said}"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [("datasets/a.yml", "datasets/a.yml/b.yml"), ("datasets/a.yml/b.yml", "datasets/a.yml")],
)
def test_a_file_where_the_other_side_has_a_folder_stops_no_report(mine: str, theirs: str, repo: Repo) -> None:
    repo.branch("topic")
    repo.content.write(mine, "packing: true\n")
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    repo.content.write(theirs, "packing: true\n")
    repo.commit()
    repo.git("checkout", "--quiet", "topic")
    assert impact(repo) == edited(mine, ["maxtext.packing"])
