"""Cases that take more than one file, or that end in a run."""

from __future__ import annotations

from small_content import Small

from pod.derivations import Override
from renderer import derived
from renderer.codes import page
from renderer.layers import Repository
from renderer.pipeline import render_paths
from renderer.run_spec import specify


def overrides(small: Small) -> dict[str, Override]:
    assert small.texts() == []
    configuration = small.configuration()
    found = derived.overrides(configuration, specify(configuration))
    return {each.key: each for each in found if isinstance(each, Override)}


def test_25_a_key_of_the_model_file_reaches_maxtext(small: Small) -> None:
    small.experiment("maxtext:\n  base_emb_dim: 1024\n")
    override = overrides(small)["base_emb_dim"]
    assert (override.rule, override.value) == ("D6", 1024)


def test_26_other_rules_stay_where_one_is_written(small: Small) -> None:
    small.experiment("maxtext:\n  logical_axis_rules: [[embed, fsdp]]\n")
    override = overrides(small)["logical_axis_rules"]
    assert override.rule == "D7"
    rules = dict(map(tuple, override.value))  # type: ignore[call-overload]
    assert rules["embed"] == "fsdp"
    assert len(rules) > 1  # llama2-7b's own model file sets rules


def test_34_rules_between_keys_are_left_to_level_2(small: Small) -> None:
    small.experiment("maxtext:\n  use_random_routing: true\n  num_vocab_tiling: 7\n  dataset_type: grain\n")
    assert small.texts() == []
    assert "MaxText's rules between keys" in page()


def test_35_two_runs_into_one_directory(small: Small) -> None:
    for name in ("a", "b"):
        small.experiment("maxtext:\n  run_name: mine\n  steps: 7\n", name=name, launch=f"name: {name}\n")
    assert small.texts() == [
        "experiments/llama2-7b/b.yml:7:9: maxtext.run_name: run_name mine and its output directory are taken"
        " by experiments/llama2-7b/a.yml"
    ]


def test_35_unless_one_resumes_the_other(small: Small) -> None:
    small.experiment("maxtext:\n  run_name: mine\n", name="a")
    small.experiment("maxtext:\n  steps: 9\n", name="b", launch="resume: mine\n")
    assert small.texts() == []


def test_38_a_long_file_name_is_cut_and_fits(small: Small) -> None:
    for name in ("n" * 100, "n" * 100 + "m"):
        small.experiment(name=name, chips=1024)
    assert small.texts() == []
    paths, _ = Repository(small.root).experiment_paths()
    names = {result.rendered.names.object for result in render_paths(Repository(small.root), paths).results}
    assert len(names) == 2
    assert all(len(f"{name}-a99-slice-job-0-255-xxxxx") <= 63 for name in names)


def test_40_a_declared_alias_is_a_topology(small: Small) -> None:
    topology = "deploy:\n  TPU_TOPOLOGY: 16x8x16\n  COMPLETIONS: 512\nmaxtext:\n  ici_fsdp_parallelism: 4096\n"
    small.file("presets/llama2-7b/topology/2048chips/4k.yml", topology + "  per_device_batch_size: 1\n")
    small.experiment(chips=2048)
    assert small.texts() == []


def test_45_a_run_of_300_kb_is_fine(small: Small) -> None:
    small.experiment(f'maxtext:\n  dataset_path: "gs://{"a" * 300_000}"\n')
    assert small.texts() == []


def test_45_a_run_of_1_1_mb_is_refused(small: Small) -> None:
    small.file("datasets/big.yml", f'dataset_path: "gs://{"a" * 600_000}"\n')
    text = "deploy:\n  DATASETS_YAML: big\nmaxtext:\n  tokenizer_path: "
    small.experiment(f'{text}"gs://{"b" * 500_000}"\n')
    (found,) = small.texts()
    assert found.startswith("datasets/big.yml:1:15: maxtext.dataset_path: run.yml and derive.json have 110")
    assert found.endswith(
        "bytes, but a ConfigMap holds 1048576\n    the largest value, 600007 bytes; put it into a file in a bucket"
    )


def test_45_a_file_of_1_1_mb_is_not_even_read(small: Small) -> None:
    small.experiment(f'maxtext:\n  dataset_path: "{"a" * 1_100_000}"\n')
    assert small.texts() == ["experiments/llama2-7b/e.yml: is larger than 1048576 bytes"]


def test_a_variable_longer_than_linux_passes(small: Small) -> None:
    small.experiment(f'deploy:\n  ENV:\n    DATA: "{"a" * 131_072}"\n')
    assert small.texts() == [
        "experiments/llama2-7b/e.yml:9:11: deploy.ENV.DATA: is longer than the 131072 bytes"
        " that Linux passes to a program: put it into a file"
    ]


def test_51_stray_files_are_reported(small: Small) -> None:
    small.experiment()
    small.file("experiments/llama2-7b/e.yml.orig", "")
    small.file("experiments/llama2-7b/f.yaml", "")
    small.file("experiments/other-model/g.yml", "")
    small.file("experiments/h.yml", "")
    assert small.texts() == [
        "experiments/h.yml: is not an experiment: experiments lie in experiments/<model>/",
        "experiments/llama2-7b/e.yml.orig: is not an experiment: only <name>.yml files belong here",
        "experiments/llama2-7b/f.yaml: is not an experiment: rename it to .yml",
        "experiments/other-model: is not an experiment: no presets/other-model/model.yml; models: llama2-7b",
    ]


def test_52_a_secret_in_a_layer_below_is_found_though_it_was_replaced(small: Small) -> None:
    token = "ghp_" + "a1" * 18
    small.file("datasets/d.yml", f"dataset_path: {token}\n")
    small.experiment("deploy:\n  DATASETS_YAML: d\nmaxtext:\n  dataset_path: gs://bucket-test/d\n")
    (found,) = small.texts()
    assert found.startswith(
        "datasets/d.yml:1:15: maxtext.dataset_path: looks like a secret (GitHub Token, 40 characters"
    )


def test_52_what_a_wrong_value_replaced_is_masked_too(small: Small) -> None:
    token = "ghp_" + "a1" * 18
    small.file("datasets/d.yml", f"tokenizer_path: {token}\n")
    small.experiment("deploy:\n  DATASETS_YAML: d\nmaxtext:\n  tokenizer_path: 5\n")
    assert token not in "".join(small.texts())


def test_a_secret_of_the_wrong_form_under_launch(small: Small) -> None:
    small.experiment(launch="owner: https://me:hunter2hunter2@host/\n")
    assert small.problems()[0].code == "value-form"
