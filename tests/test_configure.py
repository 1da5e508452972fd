"""Choosing and merging the layers of a run: order, datasets, selectors, and what lies outside the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from content import Content

from renderer.configure import Configuration, Configurator, experiment_data
from renderer.layers import Repository
from renderer.merge import Leaf, history, values
from renderer.names import digest
from renderer.problem import Problem

LAYERS = {
    "model": "presets/ling3-flash/model.yml",
    "topology": "presets/ling3-flash/topology/64chips/8k.yml",
    "dataset": "datasets/align_smoke.yml",
    "environment": "presets/ling3-flash/environment/test.yml",
}


def configured(content: Content, path: Path) -> Configuration:
    configuration, problems = content.configure(path)
    assert problems == []
    assert configuration is not None
    return configuration


@pytest.mark.parametrize("top", range(1, 6))
def test_layers_win_in_their_order(top: int, content: Content) -> None:
    """The key stands in the lowest `top` layers; the highest of them wins and every assignment is kept."""
    files = [*LAYERS, "experiment"][:top]
    for number, name in enumerate(files):
        if name in LAYERS:
            path = content.root / LAYERS[name]
            indent = "" if name == "dataset" else "  "
            path.write_text(path.read_text() + f"{indent}log_period: {number + 10}\n")
    content_path = content.experiment(maxtext={"log_period": 14} if top == 5 else None)
    leaf = configured(content, content_path).leaf("maxtext", "log_period")
    assert leaf is not None
    assert [(old.layer.name, old.node.value) for old in history(leaf)] == [
        (name, number + 10) for number, name in reversed(list(enumerate(files)))
    ]


def test_command_line_is_the_highest_layer(content: Content) -> None:
    problems: list[Problem] = []
    repository = Repository(content.root)
    experiment = repository.experiment(content.experiment(maxtext={"steps": 5}), problems)
    arguments = ["steps=7", "learning_rate=1e-4", "deploy.K8S_MAX_RESTARTS=2", "DATASETS_YAML=fin_35p"]
    configuration = Configurator(repository).configure(experiment, problems, arguments=arguments)
    assert problems == []
    assert configuration is not None
    maxtext, deploy = values(configuration.maxtext), values(configuration.deploy)
    assert (maxtext["steps"], maxtext["learning_rate"], deploy["K8S_MAX_RESTARTS"]) == (7, 0.0001, 2)
    assert str(maxtext["lazy_train_files"]).startswith("0.66 /models_prod")


def test_the_dataset_is_the_one_the_merged_deploy_names(content: Content) -> None:
    assert (
        values(configured(content, content.experiment()).maxtext)["lazy_train_files"]
        == "1.0 /models_prod/datasets/align_smoke"
    )
    fin = configured(content, content.experiment(deploy={"DATASETS_YAML": "fin_35p"}))
    assert values(fin.maxtext)["eod_mask_loss"] is True
    by_path = configured(content, content.experiment(deploy={"DATASETS_YAML": "datasets/fin_35p.yml"}))
    assert values(by_path.maxtext) == values(fin.maxtext)


@pytest.mark.parametrize(
    ("dataset", "problem"),
    [
        ("absent", "no dataset datasets/absent.yml\n    datasets: align_smoke, fin_35p"),
        ("datasets/fin_35p", "no dataset datasets/fin_35p\n    datasets: align_smoke, fin_35p"),
        ("x" * 300, f"no dataset datasets/{'x' * 300}.yml\n    datasets: align_smoke, fin_35p"),
    ],
)
def test_missing_dataset_lists_those_that_exist(dataset: str, problem: str, content: Content) -> None:
    path = content.experiment(deploy={"DATASETS_YAML": dataset})
    assert content.configure(path)[1][0].code == "dataset-missing"
    assert (
        str(content.configure(path)[1][0]) == f"experiments/ling3-flash/run.yml:9:20: deploy.DATASETS_YAML: {problem}"
    )


def test_a_dataset_outside_works_in_preview_and_not_in_render(content: Content, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yml"
    outside.write_text("dataset_type: synthetic\n")
    content.experiment(deploy={"DATASETS_YAML": str(outside)})
    code, out, _ = content.run("preview", "ling3-flash/run")
    assert code == 0
    assert f'dataset_type: "synthetic"  # {outside}:1' in out
    place = "experiments/ling3-flash/run.yml:9:20: deploy.DATASETS_YAML"
    message = f"{place}: {outside} lies outside the repository: what is launched must be reviewed here\n"
    assert content.run("render").err == message
    (content.root / "datasets/link.yml").symlink_to(outside)
    content.experiment(deploy={"DATASETS_YAML": "link"})
    assert (
        content.run("render").err
        == f"{place}: link lies outside the repository: what is launched must be reviewed here\n"
    )


def test_an_experiment_outside_works_in_preview_and_not_in_render(content: Content, tmp_path: Path) -> None:
    outside = tmp_path / "mine.yml"
    outside.write_bytes(content.experiment().read_bytes())
    (content.root / "experiments/ling3-flash/run.yml").unlink()
    assert content.run("preview", str(outside)).code == 0
    message = "lies outside experiments/<model>/: preview takes it, render only what is reviewed here"
    assert content.run("render", str(outside)).err == f"{outside}: {message}\n"
    nested = content.write("experiments/ling3-flash/deeper/run.yml", outside.read_bytes())
    assert content.run("render", str(nested)).err == f"experiments/ling3-flash/deeper/run.yml: {message}\n"
    (content.root / "experiments/ling3-flash/link.yml").symlink_to(outside)
    assert content.run("render").code == 1
    assert f"experiments/ling3-flash/link.yml: {message}\n" in content.run("render", "ling3-flash/link").err


def test_an_experiment_must_lie_in_its_models_folder(content: Content) -> None:
    path = content.experiment(launch={"model": "qwen3-0.6b"})
    message = "launch.model: is qwen3-0.6b, but the file lies in experiments/ling3-flash/: make them the same"
    assert content.problems(path) == [f"experiments/ling3-flash/run.yml:2:12: {message}"]


@pytest.mark.parametrize("key", ["model", "chips", "context", "environment"])
def test_every_missing_selector_is_named(key: str, content: Content) -> None:
    problems = content.problems(content.experiment(launch={key: None}))
    assert [problem.partition(": missing: ")[0] for problem in problems] == [
        f"experiments/ling3-flash/run.yml:1:1: launch.{key}"
    ]


def test_unknown_launch_key_has_a_hint(content: Content) -> None:
    assert content.problems(content.experiment(launch={"onwer": "a", "zzz": 1})) == [
        "experiments/ling3-flash/run.yml:8:3: launch.onwer: unknown key\n    did you mean owner?",
        "experiments/ling3-flash/run.yml:9:3: launch.zzz: unknown key\n"
        "    known: model, chips, context, environment, owner, image, branch, commit, name, resume, "
        "attempt, supersede, state",
    ]


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("9.9.9", "unknown MaxText version 9.9.9; known: "),
        (None, "unknown MaxText version None; known: "),
    ],
)
def test_unknown_maxtext_version(version: Any, problem: str, content: Content) -> None:
    problems = content.problems(content.experiment(deploy={"MAXTEXT_VERSION": version}))
    assert [
        text.startswith(f"experiments/ling3-flash/run.yml:9:22: deploy.MAXTEXT_VERSION: {problem}") for text in problems
    ] == [True]


def test_missing_maxtext_version(content: Content) -> None:
    content.edit("presets/ling3-flash/model.yml", "  MAXTEXT_VERSION: 0.2.5", "  # MAXTEXT_VERSION: 0.2.5")
    message = "missing: which MaxText is the run checked against? Write it in the model's model.yml"
    assert content.problems(content.experiment()) == [
        f"experiments/ling3-flash/run.yml:2:12: deploy.MAXTEXT_VERSION: {message}"
    ]


def test_problems_of_shared_presets_are_named_for_every_run(content: Content) -> None:
    content.edit("presets/ling3-flash/environment/test.yml", "  K8S_MAX_RESTARTS: 3", "  K8S_MAX_RESTARTS: 010")
    for name in ("one", "two"):
        content.experiment(name)
    code, _, err = content.run("render")
    assert code == 1
    assert err == (
        "presets/ling3-flash/environment/test.yml:4:21: deploy.K8S_MAX_RESTARTS: leading zero: "
        "readers take 010 for octal, "
        'decimal or text: write 10, or "010" for the text\n'
    )


# --- what freezes a run ---


def own_digest(content: Content, path: Path) -> str:
    experiment = configured(content, path).experiment
    assert experiment is not None
    return digest(experiment_data(experiment))


def test_own_digest_ignores_what_does_not_change_a_run(content: Content) -> None:
    path = content.experiment(maxtext={"steps": 5, "learning_rate": 1e-4})
    before = own_digest(content, path)
    path.write_text("# a comment\n" + path.read_text())
    assert own_digest(content, path) == before
    changed = {"attempt": 2, "state": "stopped", "supersede": "keep", "owner": "others", "name": "other"}
    for key, value in changed.items():
        path = content.experiment(
            launch={key: value}, maxtext={"learning_rate": 1e-4, "steps": 5}, promises={"global_batch": 256}
        )
        assert own_digest(content, path) == before, key


@pytest.mark.parametrize(
    "change",
    [
        {"launch": {"branch": "other"}},
        {"launch": {"commit": "0" * 40}},
        {"launch": {"resume": "other"}},
        {"launch": {"environment": "prod"}},
        {"deploy": {"K8S_MAX_RESTARTS": 4}},
        {"maxtext": {"steps": 6}},
        {"maxtext": {"steps": None}},
        {"maxtext": {"steps": 5, "log_period": 1}},
        {"maxtext": {}},
    ],
)
def test_own_digest_follows_every_other_value(change: dict[str, Any], content: Content) -> None:
    before = own_digest(content, content.experiment(maxtext={"steps": 5}))
    assert own_digest(content, content.experiment(**{"maxtext": {"steps": 5}, **change})) != before


def test_own_digest_tells_a_removal_from_null_and_text(content: Content) -> None:
    found = set()
    for value in ("!remove", "null", '"!remove"', "{}"):
        path = content.experiment()
        path.write_text(path.read_text() + f"maxtext:\n  dataset_path: {value}\n  steps: 1\n")
        experiment = Repository(content.root).experiment(path, [])
        found.add(digest(experiment_data(experiment)))
    assert len(found) == 4


def test_leaf_gives_single_values_only(content: Content) -> None:
    path = content.experiment()
    path.write_text(path.read_text() + "deploy:\n  ENV: {A: b}\n  PRIORITY_CLASS: null\n  WARMUP_ITERS: !remove\n")
    configuration = configured(content, path)
    assert configuration.leaf("deploy", "ENV") is None
    assert configuration.leaf("deploy", "WARMUP_ITERS") is None
    assert configuration.leaf("maxtext", "absent") is None
    assert isinstance(configuration.leaf("deploy", "PRIORITY_CLASS"), Leaf)
