"""The layers on disk: what is found, what is missing and what is stray."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from content import Content

from renderer.layers import Repository
from renderer.location import COMMAND_LINE
from renderer.problem import Problem, RefusedError


def test_every_stray_thing_under_experiments_is_named(content: Content) -> None:
    content.experiment("good")
    for path in (
        "experiments/loose.yml",
        "experiments/README.md",
        "experiments/ling3-flash/README.md",
        "experiments/ling3-flash/old.yml.orig",
        "experiments/ling3-flash/other.yaml",
        "experiments/ling3-flash/.hidden.yml",
        "experiments/ling3-flash/with space.yml",
        "experiments/ling3-flash/folder.yml/x.yml",
        "experiments/ling4/run.yml",
    ):
        content.write(path, "")
    paths, strays = Repository(content.root).experiment_paths()
    assert [path.name for path in paths] == ["good.yml"]
    models = "deepseek3-671b, ling3-flash, llama3.1-70b, qwen3-0.6b"
    assert [str(stray) for stray in strays] == [
        "experiments/ling3-flash/.hidden.yml: is not an experiment: only <name>.yml files belong here",
        "experiments/ling3-flash/folder.yml: is not an experiment: only <name>.yml files belong here",
        "experiments/ling3-flash/old.yml.orig: is not an experiment: only <name>.yml files belong here",
        "experiments/ling3-flash/other.yaml: is not an experiment: rename it to .yml",
        "experiments/ling3-flash/with space.yml: is not an experiment: only <name>.yml files belong here",
        f"experiments/ling4: is not an experiment: no presets/ling4/model.yml; models: {models}",
        "experiments/loose.yml: is not an experiment: experiments lie in experiments/<model>/",
    ]
    code, _, err = content.run("render")
    assert code == 1
    assert err.splitlines() == [str(stray) for stray in strays]
    assert not (content.root / "rendered").exists()


@pytest.mark.parametrize("name", ["ling3-flash/good", "experiments/ling3-flash/good.yml"])
def test_experiment_is_found_by_name_and_path(name: str, content: Content) -> None:
    path = content.experiment("good")
    assert Repository(content.root).find_experiment(name) == path
    assert Repository(content.root).find_experiment(str(path)) == path


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ling3-flash/god", "did you mean ling3-flash/good?"),
        ("experiments/ling3-flash", "did you mean ling3-flash/good?"),
        ("x" * 300, "experiments: ling3-flash/good"),
        ("a\0b", "experiments: ling3-flash/good"),
        ("../../etc/passwd", "experiments: ling3-flash/good"),
    ],
)
def test_unknown_experiment_is_refused_with_those_that_exist(name: str, hint: str, content: Content) -> None:
    content.experiment("good")
    with pytest.raises(RefusedError) as refused:
        Repository(content.root).find_experiment(name)
    assert [problem.message for problem in refused.value.problems] == ["no such experiment"]
    assert refused.value.problems[0].hint == hint


def test_models_and_topologies_of_the_shipped_presets(content: Content) -> None:
    repository = Repository(content.root)
    assert repository.models() == ["deepseek3-671b", "ling3-flash", "llama3.1-70b", "qwen3-0.6b"]
    assert repository.topologies("ling3-flash") == [(64, "8k"), (256, "8k"), (512, "8k"), (1024, "8k"), (2048, "8k")]


@pytest.mark.parametrize(
    ("launch", "problem"),
    [
        (
            {"model": "ling4"},
            "2:12: launch.model: no presets/ling4/model.yml\n    models: deepseek3-671b, "
            "ling3-flash, llama3.1-70b, qwen3-0.6b",
        ),
        (
            {"chips": 128},
            "3:12: launch.chips: no presets/ling3-flash/topology/128chips/8k.yml\n    chips and "
            "contexts: 64 8k, 256 8k, 512 8k, 1024 8k, 2048 8k",
        ),
        (
            {"context": "32k"},
            "4:14: launch.context: no presets/ling3-flash/topology/64chips/32k.yml\n    contexts of 64 chips: 8k",
        ),
        (
            {"context": "x" * 300},
            f"4:14: launch.context: no presets/ling3-flash/topology/64chips/{'x' * 300}.yml\n    contexts of "
            "64 chips: 8k",
        ),
        (
            {"chips": 128, "context": "32k"},
            "3:12: launch.chips: no presets/ling3-flash/topology/128chips/32k.yml\n    chips and "
            "contexts: 64 8k, 256 8k, 512 8k, 1024 8k, 2048 8k",
        ),
    ],
)
def test_missing_preset_lists_those_that_exist(launch: dict[str, object], problem: str, content: Content) -> None:
    path = content.experiment(model="ling4") if "model" in launch else content.experiment(launch=launch)
    model = launch.get("model", "ling3-flash")
    assert content.problems(path) == [f"experiments/{model}/run.yml:{problem}"]


def test_an_unknown_model_is_told_before_the_selectors_that_are_missing(content: Content) -> None:
    path = content.experiment(model="ling4", launch={"chips": None, "context": None})
    assert content.problems(path) == [
        "experiments/ling4/run.yml:2:12: launch.model: no presets/ling4/model.yml\n    models: deepseek3-671b, "
        "ling3-flash, llama3.1-70b, qwen3-0.6b",
        "experiments/ling4/run.yml:1:1: launch.chips: missing: TPU chips of the slice: a folder of the model's "
        "topology/.",
        "experiments/ling4/run.yml:1:1: launch.context: missing: Context length, such as 8k: a file in the topology's "
        "folder.",
    ]
    path = content.experiment(launch={"model": "../x", "context": None})
    assert content.problems(path) == [
        'experiments/ling3-flash/run.yml:2:12: launch.model: "../x" is not a name: letters, digits, - _ .',
        "experiments/ling3-flash/run.yml:1:1: launch.context: missing: Context length, such as 8k: a file in the "
        "topology's folder.",
    ]


def test_missing_environment_is_named(content: Content) -> None:
    (content.root / "presets/ling3-flash/environment/prod.yml").unlink()
    problems = content.problems(content.experiment(launch={"environment": "prod"}))
    assert problems == [
        "experiments/ling3-flash/run.yml:5:18: launch.environment: no presets/ling3-flash/environment/prod.yml\n"
        "    environments: test"
    ]


def test_unknown_top_level_keys_are_named_in_every_kind_of_file(content: Content) -> None:
    content.write(
        "presets/ling3-flash/model.yml", (content.root / "presets/ling3-flash/model.yml").read_bytes() + b"launch: {}\n"
    )
    content.write("datasets/align_smoke.yml", "dataset_type: lazy\nmaxtext: {a: 1}\n")
    path = content.experiment()
    path.write_text(path.read_text() + "extra: 1\ndeploy: 5\n")
    problems: list[Problem] = []
    repository = Repository(content.root)
    repository.experiment(path, problems)
    repository.preset("model", "presets/ling3-flash/model.yml", problems)
    repository.dataset("align_smoke", COMMAND_LINE, problems, inside=True)
    model_lines = (content.root / "presets/ling3-flash/model.yml").read_text().count("\n")
    assert [str(problem) for problem in problems] == [
        "experiments/ling3-flash/run.yml:8:1: extra: unknown top-level key: write it under launch: "
        "or deploy: or maxtext: or checks:",
        "experiments/ling3-flash/run.yml:9:9: deploy: must be a mapping of keys",
        f"presets/ling3-flash/model.yml:{model_lines}:1: launch: unknown top-level key: write it "
        f"under deploy: or maxtext:",
        "datasets/align_smoke.yml:2:1: maxtext: a dataset holds MaxText keys at the top level, no namespaces",
    ]


OUTSIDE = "lies outside the repository: what is launched must be reviewed here"


def test_presets_that_are_linked_from_outside_are_refused(content: Content, tmp_path: Path) -> None:
    path = content.experiment()
    model = content.root / "presets/ling3-flash/model.yml"
    model.rename(tmp_path / "model.yml")
    model.symlink_to(tmp_path / "model.yml")
    assert content.problems(path)[0] == f"presets/ling3-flash/model.yml: {OUTSIDE}"
    model.unlink()
    (tmp_path / "model.yml").rename(model)
    (content.root / "presets").rename(tmp_path / "presets")
    (content.root / "presets").symlink_to(tmp_path / "presets")
    code, out, err = content.run("render")
    assert (code, out) == (1, "")
    files = ("ling3-flash/model.yml", "ling3-flash/topology/64chips/8k.yml", "ling3-flash/environment/test.yml")
    assert {f"presets/{file}: {OUTSIDE}" for file in files} <= set(err.splitlines())
    assert not (content.root / "rendered").exists()


LINKED = "is a symbolic link, of which git keeps only where it leads"


@pytest.mark.parametrize(
    ("link", "refused"),
    [
        ("presets/ling3-flash/model.yml", "presets/ling3-flash/model.yml"),
        ("presets/ling3-flash/environment", "presets/ling3-flash/environment/test.yml"),
        ("datasets/align_smoke.yml", "datasets/align_smoke.yml"),
        ("datasets", "datasets/align_smoke.yml"),
    ],
)
def test_a_layer_that_is_a_link_or_lies_behind_one_is_refused(link: str, refused: str, content: Content) -> None:
    path = content.root / link
    path.rename(path.with_name("real"))
    path.symlink_to("real")
    problems = content.problems(content.experiment(deploy={"DATASETS_YAML": "align_smoke"}))
    assert problems[0] == f"{refused}: {LINKED}"


def test_a_dataset_that_is_linked_from_outside_is_refused(content: Content, tmp_path: Path) -> None:
    dataset = content.root / "datasets/align_smoke.yml"
    dataset.rename(tmp_path / "align_smoke.yml")
    dataset.symlink_to(tmp_path / "align_smoke.yml")
    assert content.problems(content.experiment(deploy={"DATASETS_YAML": "align_smoke"})) == [
        "experiments/ling3-flash/run.yml:9:20: deploy.DATASETS_YAML: align_smoke lies outside the repository: "
        "what is launched must be reviewed here"
    ]


@pytest.mark.parametrize("folder", ["experiments", "experiments/ling3-flash"])
def test_a_folder_that_cannot_be_listed_is_a_problem(
    folder: str, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    content.experiment()
    listed = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path == content.root / folder:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    paths, problems = Repository(content.root).experiment_paths()
    assert (paths, [str(problem) for problem in problems]) == (
        [],
        [f"{folder}: cannot be listed: Permission denied"],
    )


def test_experiments_that_are_no_folder_are_a_problem(content: Content) -> None:
    content.write("experiments", "")
    _, problems = Repository(content.root).experiment_paths()
    assert [str(problem) for problem in problems] == ["experiments: cannot be listed: Not a directory"]


def test_a_pipe_is_no_experiment(content: Content) -> None:
    (content.root / "experiments/ling3-flash").mkdir(parents=True)
    os.mkfifo(content.root / "experiments/ling3-flash/f.yml")
    assert content.run("render").err == (
        "experiments/ling3-flash/f.yml: is not an experiment: only <name>.yml files belong here\n"
    )
