"""What changed files affect, in a repository with git and without."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from content import Content

from renderer.affected import Affected, affected, here
from renderer.layers import Repository


@pytest.fixture(autouse=True)
def _inside(content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where pre-commit runs its hooks: at the top of the repository."""
    monkeypatch.chdir(content.root)


@pytest.fixture
def three(content: Content) -> Content:
    """Three experiments: two of a model, at 64 and 256 chips, and one of another model."""
    content.write("datasets/mixed_17.yml", "dataset_type: synthetic\n")
    content.experiment("small", deploy={"DATASETS_YAML": "mixed_17"})
    content.experiment("large", launch={"chips": 256, "environment": "prod", "image": "v1", "branch": None})
    content.experiment("other", model="qwen3-0.6b")
    return content


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, capture_output=True)


def of(content: Content, *names: str) -> Affected:
    return affected(Repository(content.root), names)


def stems(content: Content, *names: str) -> list[str]:
    return [path.stem for path in of(content, *names).experiments]


def test_no_file_affects_nothing(three: Content) -> None:
    assert of(three) == Affected((), (), False, ())


def test_an_experiment_is_affected_by_itself_only(three: Content) -> None:
    path = "experiments/ling3-flash/small.yml"
    assert of(three, path) == Affected((three.root / path,), (), False, ())
    assert of(three, str(three.root / path), f"./{path}") == of(three, path)


def test_rendered_files_stand_for_their_experiment(three: Content) -> None:
    assert stems(three, "rendered/prod/ling3-flash/large/run.yml", "rendered/prod/ling3-flash/large/x") == ["large"]
    assert stems(three, "rendered/_pod/0123456789ab/bootstrap.sh") == ["large", "small", "other"]


def test_rendered_files_without_experiment_are_to_go(three: Content) -> None:
    gone = ("rendered/prod/ling3-flash/old", "rendered/test/ling3-flash/old")
    assert of(three, "rendered/test/ling3-flash/old/run.yml") == Affected((), gone, False, ())
    assert of(three, "experiments/ling3-flash/old.yml") == Affected((), gone, False, ())


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("presets/ling3-flash/model.yml", ["large", "small"]),
        ("presets/ling3-flash/extensions.yml", ["large", "small"]),
        ("presets/ling3-flash/topology/64chips/8k.yml", ["small"]),
        ("presets/ling3-flash/topology/256chips/8k.yml", ["large"]),
        ("presets/ling3-flash/topology/256chips/32k.yml", []),
        ("presets/ling3-flash/environment/prod.yml", ["large"]),
        ("presets/qwen3-0.6b/model.yml", ["other"]),
        ("presets/llama3.1-70b/model.yml", []),
        ("presets/policy.yml", ["large", "small", "other"]),
        ("presets/clusters.yml", ["large", "small", "other"]),
    ],
)
def test_presets_affect_the_experiments_that_select_them(three: Content, file: str, expected: list[str]) -> None:
    found = of(three, file)
    assert ([path.stem for path in found.experiments], found.shared) == (expected, True)


def test_datasets_affect_the_experiments_that_name_them_or_whose_presets_do(three: Content) -> None:
    assert stems(three, "datasets/mixed_17.yml") == ["small"]
    assert stems(three, "datasets/align_smoke.yml") == ["large", "small"]  # their model.yml names it
    three.experiment("pathed", model="qwen3-0.6b", deploy={"DATASETS_YAML": "data/mixture.yml"})
    assert stems(three, "data/mixture.yml") == ["pathed"]


def test_the_renderer_itself_affects_every_experiment(three: Content) -> None:
    assert stems(three, "pod/jobset.yml.j2") == stems(three, "renderer/outputs.py") == ["large", "small", "other"]


def test_other_files_affect_nothing(three: Content) -> None:
    assert of(three, "README.md", "docs/guide.md", "/etc/hosts", "../experiments/ling3-flash/small.yml") == of(three)


def test_strays_are_problems_where_they_changed(three: Content) -> None:
    three.write("experiments/ling3-flash/small.yaml", "")
    three.write("experiments/ling3-flash/small.yml.orig", "")
    assert of(three, "experiments/ling3-flash/small.yml").problems == ()
    (stray,) = of(three, "experiments/ling3-flash/small.yaml").problems
    assert str(stray) == "experiments/ling3-flash/small.yaml: is not an experiment: rename it to .yml"


def test_what_the_index_deletes_counts_as_changed(three: Content) -> None:
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "all")
    git("rm", "-q", "experiments/ling3-flash/small.yml", "datasets/mixed_17.yml")
    git("mv", "experiments/qwen3-0.6b/other.yml", "experiments/qwen3-0.6b/moved.yml")
    assert sorted(here().deleted()) == [
        "datasets/mixed_17.yml",
        "experiments/ling3-flash/small.yml",
        "experiments/qwen3-0.6b/other.yml",
    ]
    found = of(three, "experiments/qwen3-0.6b/moved.yml")
    assert [path.stem for path in found.experiments] == ["moved"]
    assert found.gone == tuple(
        f"rendered/{environment}/{unit}"
        for unit in ("ling3-flash/small", "qwen3-0.6b/other")
        for environment in ("prod", "test")
    )


def test_drafts_are_affected_by_themselves_only(three: Content) -> None:
    git("init", "-q")
    git("add", "-A")
    three.experiment("draft")
    assert stems(three, "presets/ling3-flash/model.yml") == ["large", "small"]
    assert stems(three, "experiments/ling3-flash/draft.yml") == ["draft"]


def test_files_that_git_does_not_know(three: Content) -> None:
    assert here().untracked(three.root / "experiments") == []  # no repository
    git("init", "-q")
    git("add", "experiments/ling3-flash")
    assert here().untracked() == []
    assert here().untracked(three.root / "experiments") == [three.root / "experiments/qwen3-0.6b/other.yml"]


def test_without_git_the_named_files_count(
    three: Content, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("empty")))
    assert stems(three, "presets/ling3-flash/model.yml") == ["large", "small"]


def test_a_root_below_the_top_takes_names_from_the_top(three: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(three.root.parent)
    assert stems(three, f"{three.root.name}/experiments/ling3-flash/small.yml") == ["small"]


def test_validate_takes_changed_files(three: Content) -> None:
    three.experiment("bad", maxtext={"steps": "8"})
    assert three.run("validate", "--changed", "experiments/ling3-flash/small.yml").code == 0
    assert three.run("validate", "--changed").out.startswith("0 errors, 0 warnings")
    ran = three.run("validate", "--changed", "presets/ling3-flash/environment/test.yml")
    assert ran.code == 1
    assert "experiments/ling3-flash/bad.yml" in ran.out
    assert "experiments/ling3-flash/small.yml" not in ran.out


def test_validate_judges_changed_presets_alone(three: Content) -> None:
    three.edit("presets/llama3.1-70b/model.yml", "deploy:\n", "deploy:\n  CHIP: 1\n")
    assert three.run("validate", "--changed", "experiments/ling3-flash/small.yml").code == 0
    ran = three.run("validate", "--changed", "presets/llama3.1-70b/model.yml")
    assert ran.code == 1
    assert "presets/llama3.1-70b/model.yml:" in ran.out
    three.edit("presets/clusters.yml", "zone: us-central1-c\n    cluster: tpu-prod", "zone: 1\n    cluster: tpu-prod")
    assert "presets/clusters.yml:" in three.run("validate", "--changed", "presets/clusters.yml").out


def test_a_path_that_is_gone_needs_no_folder(content: Content) -> None:
    assert of(content, "experiments/none/x.yml").experiments == ()
    assert not Path("experiments").exists()
