from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from renderer.schema import (
    FOLDER,
    ORDER,
    PINS,
    RENAMES,
    UnknownVersionError,
    _load,
    deps_command,
    is_nullable,
    is_released,
    known_elsewhere,
    load,
    nearest,
    trainer_module,
    versions,
    with_extensions,
)


def test_the_shipped_snapshots_hold_what_was_measured() -> None:
    assert {name: len(load(name).keys) for name in ORDER} == {
        "v1.5.0": 539,
        "a0fceb5": 638,
        "cf051eb": 645,
        "df1b359": 725,
        "0.2.5": 865,
    }
    assert load("0.2.5").models["llama2-7b"]["base_emb_dim"] == 4096


@pytest.mark.parametrize(("pin", "name"), [*PINS.items(), ("a0fceb5", "a0fceb5"), ("0.2.5", "0.2.5")])
def test_the_pins_of_the_recipes_find_their_snapshot(pin: str, name: str) -> None:
    assert load(pin).version == name
    assert load(pin) is load(name)


def test_an_unknown_version_lists_the_known_ones() -> None:
    with pytest.raises(UnknownVersionError) as raised:
        load("0.2.4")
    assert str(raised.value) == (
        "unknown MaxText version 0.2.4; known: v1.5.0, a0fceb5, cf051eb, df1b359, 0.2.5, "
        "maxtext-tutorial-v1.5.0, 98a3d4c, maxtext-tutorial-v1.1.0-1109-gcf051eb03"
    )


def test_a_version_is_a_name_and_never_a_path() -> None:
    for version in ("", "../schemas/0.2.5", "descriptions/0.2.5", "0.2.5.json"):
        with pytest.raises(UnknownVersionError):
            load(version)


def test_the_versions_are_in_the_order_of_their_release() -> None:
    assert versions() == ORDER


def test_a_snapshot_of_another_version_counts_as_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("0.2.5", "v1.5.0", "0.2.7", "0.2.6"):
        (tmp_path / f"{name}.json").write_text("{}")
    monkeypatch.setattr("renderer.schema.FOLDER", tmp_path)
    assert versions() == ("v1.5.0", "0.2.5", "0.2.6", "0.2.7")


def test_the_base_default_is_base_yml_s_then_the_class_s() -> None:
    snapshot = load("0.2.5")
    assert snapshot.base_default("steps") == 150001
    assert snapshot.base_default("dataset_type") == "synthetic"
    assert snapshot.base_default("ici_fsdp_parallelism") == -1
    assert snapshot.base_default("dpo") is None
    assert snapshot.base_default("logical_axis_rules")[0] == ["circular_repeats", []]


def test_the_text_none_in_base_yml_is_null_to_maxtext() -> None:
    snapshot = load("0.2.5")
    assert snapshot.keys["local_sa_block_q"]["base_yml"] == "None"
    assert snapshot.base_default("local_sa_block_q") is None
    assert snapshot.base_default("checkpoint_conversion_fn") is None


def test_an_unknown_key_has_no_base_default() -> None:
    with pytest.raises(KeyError):
        load("0.2.5").base_default("output_dir")


def test_a_number_of_a_model_file_is_a_number_as_maxtext_reads_it() -> None:
    recorded = json.loads((FOLDER / "0.2.5.json").read_text())["models"]["gemma3-4b"]
    assert recorded["normalization_layer_epsilon"] == "1e-6"
    assert load("0.2.5").models["gemma3-4b"]["normalization_layer_epsilon"] == 1e-6


@pytest.mark.parametrize("name", ORDER)
def test_no_number_is_left_as_text_in_a_model_file(name: str) -> None:
    snapshot = load(name)
    numbers = {key for key, entry in snapshot.keys.items() if entry.get("type") in {"number", "integer"}}
    values = [(key, value) for model in snapshot.models.values() for key, value in model.items() if key in numbers]
    assert values
    assert [pair for pair in values if isinstance(pair[1], str)] == []


@pytest.mark.parametrize("name", ORDER)
def test_every_entry_says_what_it_takes(name: str) -> None:
    untyped = [key for key, entry in load(name).keys.items() if not {"type", "anyOf", "enum"} & entry.keys()]
    assert untyped == []


def test_nullable_keys() -> None:
    keys = load("0.2.5").keys
    assert is_nullable(keys["tokenizer_path"])
    assert not is_nullable(keys["steps"])


@pytest.mark.parametrize(
    ("version", "key", "text"),
    [
        ("df1b359", "local_sa_block_q", "known from version 0.2.5"),
        ("v1.5.0", "abort_on_nan_loss", "known from version df1b359"),
        ("0.2.5", "fsdp_shard_on_exp", "renamed to shard_exp_on_fsdp"),
        ("v1.5.0", "shard_exp_on_fsdp", "named fsdp_shard_on_exp in this version"),
        ("0.2.5", "index_topk", "renamed to indexer_topk"),
        ("v1.5.0", "index_topk", "known from version a0fceb5"),
        ("0.2.5", "cosine_learning_rate_final_fraction", "renamed to learning_rate_final_fraction"),
        ("0.2.5", "enable_nnx", "known until version df1b359"),
        ("0.2.5", "output_dir", ""),
    ],
)
def test_what_other_versions_say_about_a_key(version: str, key: str, text: str) -> None:
    assert known_elsewhere(load(version), key) == text


@pytest.mark.parametrize(("old", "new"), RENAMES.items())
def test_a_rename_keeps_type_and_default_and_never_both_names(old: str, new: str) -> None:
    before = [load(name).keys[old] for name in ORDER if old in load(name).keys]
    after = [load(name).keys[new] for name in ORDER if new in load(name).keys]
    assert before[-1] == after[0]
    assert [name for name in ORDER if {old, new} <= load(name).keys.keys()] == []


def test_extensions_add_keys_and_values() -> None:
    snapshot = load("0.2.5")
    extended = with_extensions(
        snapshot,
        {"lazy_train_files": {"type": "string", "description": "files of the lazy loader"}},
        {"dataset_type": ["lazy", "grain"], "quantization": ["fp3"], "model_name": ["ling3-flash"]},
    )
    assert extended.keys["lazy_train_files"]["type"] == "string"
    assert extended.base_default("lazy_train_files") is None
    assert extended.keys["dataset_type"]["enum"] == [
        "synthetic", "hf", "grain", "tfds", "c4_mlperf", "olmo_grain", "lazy",
    ]  # fmt: skip
    assert extended.base_default("dataset_type") == "synthetic"
    assert extended.keys["quantization"]["anyOf"][0]["enum"][-1] == "fp3"
    assert extended.models is snapshot.models
    assert "lazy" not in snapshot.keys["dataset_type"]["enum"]
    assert "lazy_train_files" not in snapshot.keys


@pytest.mark.parametrize(
    ("keys", "enums", "text"),
    [
        ({"steps": {"type": "integer"}}, {}, "steps is a key of MaxText 0.2.5 already"),
        ({}, {"lazy": ["a"]}, "lazy is not a key of MaxText 0.2.5"),
        ({}, {"steps": [1]}, "steps has no list of values to extend"),
        ({}, {"tokenizer_path": ["a"]}, "tokenizer_path has no list of values to extend"),
        (
            {"lazy": {"type": "int"}},
            {},
            "lazy needs a type, one of array, boolean, integer, null, number, object, string, or an enum",
        ),
        (
            {"lazy": {"type": "integer", "min": 1}},
            {},
            "lazy: unknown min; known: anyOf, const, default, description, enum, exclusiveMaximum, "
            "exclusiveMinimum, items, maximum, minimum, type",
        ),
    ],
)
def test_extensions_that_cannot_hold_are_refused(
    keys: dict[str, dict[str, object]], enums: dict[str, list[object]], text: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        with_extensions(load("0.2.5"), keys, enums)


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("max_target_lenght", "max_target_length"),
        ("learnng_rate", "learning_rate"),
        ("ici_fsdp_paralelism", "ici_fsdp_parallelism"),
    ],
)
def test_the_nearest_names(word: str, first: str) -> None:
    assert nearest(word, load("0.2.5").keys)[0] == first


def test_nearest_gives_at_most_n_and_nothing_far_off() -> None:
    assert nearest("output_dir", load("0.2.5").keys, 2) == ["output_dim_for_audio", "base_output_directory"]
    assert nearest("qqqqqqqqqqqqqq", load("0.2.5").keys) == []


def test_how_each_version_is_started() -> None:
    assert trainer_module("98a3d4c") == "MaxText.train"
    assert {trainer_module(name) for name in ORDER[1:]} == {"maxtext.trainers.pre_train.train"}
    assert deps_command("0.2.5") == "install_tpu_pre_train_extra_deps"
    assert deps_command("0.2.6") == "install_tpu_pre_train_extra_deps"
    assert {deps_command(name) for name in ORDER[:-1]} == {"install_maxtext_tpu_github_deps"}


def test_only_a_number_is_a_release() -> None:
    assert [name for name in (*ORDER, *PINS) if is_released(name)] == ["0.2.5"]


def test_loading_is_fast() -> None:
    def seconds() -> float:
        start = time.perf_counter()
        _load.__wrapped__("0.2.5")
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.01
