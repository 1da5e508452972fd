from __future__ import annotations

from typing import Any

import pytest

from renderer.maxtext_types import judge, refusal
from renderer.maxtext_words import STRICTER, expected
from renderer.schema import load, with_extensions

KEYS = load("0.2.5").keys


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", 50000),
        ("steps", -1),
        ("learning_rate", 3.0e-4),
        ("learning_rate", 1),
        ("enable_checkpointing", False),
        ("base_output_directory", "gs://bucket/runs"),
        ("base_output_directory", ""),
        ("base_output_directory", "nonesuch"),
        ("opt_type", "muon"),
        ("quantization", ""),
        ("quantization", None),
        ("metrics_file", None),
        ("xprof_tpu_power_trace_level", 2),
        ("xprof_tpu_power_trace_level", 2.0),
        ("mesh_axes", ["data", "none"]),
        ("mlp_activations", []),
        ("weight_block_size", [128, 128]),
        ("weight_block_size", 128),
        ("weight_block_size", None),
        ("lti_layer_indices", None),
        ("constant_bound_config", ["a", 1, None]),
        ("student_overrides", {"anything": {"at": ["all"]}}),
        ("lora", {"lora_rank": 8, "lora_weight_qtype": None}),
        ("dpo", {}),
        ("logical_axis_rules", [["norm", "fsdp"], ["embed", ["fsdp", "expert"]], ["kv", []], ["q", None]]),
        ("data_sharding", [["data", "fsdp"]]),
        ("data_sharding", ["data", "fsdp"]),
        ("mu_dtype", ""),
        ("mu_dtype", "bfloat16"),
        ("num_vocab_tiling", 4),
    ],
)
def test_what_maxtext_takes_is_fine(key: str, value: Any) -> None:
    assert judge(KEYS[key], value) == ""


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("steps", "abc", 'expected an integer of at least -1, got the text "abc"'),
        ("gradient_accumulation_steps", 1.5, "expected an integer above 0, got 1.5"),
        ("head_dim", [128], "expected an integer, got a list"),
        ("head_dim", {"a": 1}, "expected an integer, got a map"),
        ("head_dim", 1e30, "1.0e+30 does not fit into 64 bits"),
        ("steps", None, "null is not allowed here, expected an integer of at least -1"),
        ("steps", -2, "must be at least -1, got -2"),
        ("gradient_accumulation_steps", 0, "must be above 0, got 0"),
        ("warmup_steps_fraction", 1.5, "must be at most 1.0, got 1.5"),
        ("block_diffusion_min_noise", 0.0, "must be above 0.0, got 0.0"),
        ("attn_logits_soft_cap", -1.0, "must be at least 0, got -1.0"),
        ("learning_rate", "fast", 'expected a number of at least 0, got the text "fast"'),
        ("enable_checkpointing", "maybe", 'expected true or false, got the text "maybe"'),
        ("enable_checkpointing", 2, "expected true or false, got 2"),
        ("enable_checkpointing", None, "null is not allowed here, expected true or false"),
        ("run_name", 20260101, 'expected text, got 20260101: write "20260101"'),
        ("run_name", True, 'expected text, got true: write "true"'),
        ("run_name", ["a"], "expected text, got a list"),
        ("metrics_file", 1.5, 'expected text or null, got 1.5: write "1.5"'),
        ("opt_type", "adam", 'expected one of adamw, adam_pax, sgd, muon, got the text "adam"'),
        ("opt_type", None, "null is not allowed here, expected one of adamw, adam_pax, sgd, muon"),
        ("profiler", "trace", 'expected one of "", xplane, nsys, got the text "trace"'),
        (
            "model_name",
            "qwen3-06b",
            'the text "qwen3-06b" is not one of the 87 known values; nearest: qwen3-0.6b, qwen3-8b, qwen3-4b',
        ),
        ("model_name", "zzzzzzzz", 'the text "zzzzzzzz" is not one of the 87 known values'),
        ("model_name", 3, "expected one of 87 known values, got 3"),
        ("xprof_tpu_power_trace_level", 3, "expected one of 0, 1, 2, got 3"),
        ("shard_mode", "Auto", 'expected one of auto, explicit, got the text "Auto"'),
        ("mesh_axes", ["data", 1], 'item 2: expected text, got 1: write "1"'),
        ("mesh_axes", [None], "item 1: null is not allowed here, expected text"),
        ("mesh_axes", {"a": 1}, "expected a list of text, got a map"),
        ("mrope_section", [1, "b"], 'item 2: expected an integer, got the text "b"'),
        ("weight_block_size", ["a"], 'item 1: expected an integer, got the text "a"'),
        ("weight_block_size", {}, "expected an integer or a list of integers or null, got a map"),
        ("student_overrides", [], "expected a map, got a list"),
        ("lora", {"lora_rank": -1}, "lora_rank: must be at least 0, got -1"),
        ("lora", {"lora_rnk": 8}, "unknown key lora_rnk; nearest: lora_rank"),
        ("lora", {"lora_rank": None}, "lora_rank: null is not allowed here, expected an integer of at least 0"),
        ("dpo", {"algo": "ppo"}, 'algo: expected one of dpo, orpo, got the text "ppo"'),
        ("logical_axis_rules", "norm", 'expected a list of lists, got the text "norm": write ["norm"]'),
        ("logical_axis_rules", [["norm"]], "item 1: expected a list of 2 items, got 1"),
        ("logical_axis_rules", [[1, "fsdp"]], 'item 1: item 1: expected text, got 1: write "1"'),
        (
            "logical_axis_rules",
            [["norm", 1]],
            'item 1: item 2: expected text or a list of text or null, got 1: write "1"',
        ),
        ("data_sharding", {}, "expected a list, got a map"),
        (
            "mu_dtype",
            "bf16",
            'expected one of "", bfloat16, float16, float32, float64, float8_e4m3fn, float8_e5m2, got the text "bf16"',
        ),
        ("num_vocab_tiling", 0, "must be at least 1, got 0"),
        ("distill_alpha_end", 1.5, "must be at most 1, got 1.5"),
    ],
)
def test_the_words_of_a_refusal(key: str, value: Any, message: str) -> None:
    assert judge(KEYS[key], value) == message


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("quoted-number", "steps", "8", 'expected an integer of at least -1, got the text "8": write 8'),
        ("quoted-number", "adam_b1", "9e-1", 'expected a number, got the text "9e-1": write 9e-1'),
        ("quoted-number", "local_sa_block_q", "512", 'expected an integer or null, got the text "512": write 512'),
        ("quoted-number", "xprof_tpu_power_trace_level", "1", 'expected one of 0, 1, 2, got the text "1": write 1'),
        ("quoted-number", "xprof_tpu_power_trace_level", " 2", 'expected one of 0, 1, 2, got the text " 2": write 2'),
        ("quoted-boolean", "enable_checkpointing", "on", 'expected true or false, got the text "on": write true'),
        ("quoted-boolean", "use_grpo", "False", 'expected true or false or null, got the text "False": write false'),
        ("number-for-boolean", "enable_checkpointing", 0, "expected true or false, got 0: write false"),
        ("number-for-boolean", "enable_checkpointing", 1.0, "expected true or false, got 1.0: write true"),
        ("boolean-for-number", "head_dim", True, "expected an integer, got true"),
        ("boolean-for-number", "adam_b1", False, "expected a number, got false"),
        ("boolean-for-number", "xprof_tpu_power_trace_level", True, "expected one of 0, 1, 2, got true"),
        ("scalar-for-list", "mesh_axes", "data", 'expected a list of text, got the text "data": write ["data"]'),
        ("scalar-for-list", "constant_bound_config", "", 'expected a list, got the text "": write []'),
        ("scalar-for-list", "mrope_section", 3, "expected a list of integers, got 3: write [3]"),
        ("not-finite", "adam_b1", float("nan"), "expected a number, got nan, which is not a finite number"),
        ("not-finite", "head_dim", float("inf"), "expected an integer, got inf, which is not a finite number"),
        ("none-text", "metrics_file", "None", 'MaxText turns the text "None" into null: write null'),
        ("none-text", "run_name", "NONE", 'MaxText turns the text "NONE" into null, which is not allowed here'),
        (
            "none-text",
            "vision_encoder_block",
            "none",
            'MaxText turns the text "none" into null, which is not allowed here',
        ),
        (
            "missing-text",
            "run_name",
            "???",
            'MaxText\'s reader takes the text "???" for a missing value: leave the key out',
        ),
        ("null-filled-in", "run_name", None, "null is not allowed here, expected text"),
        ("unknown-member", "dpo", {"betta": 1}, "unknown key betta; nearest: dpo_beta"),
        ("open-type", "logical_axis_rules", {}, "expected a list of lists, got a map"),
    ],
)
def test_what_is_refused_though_maxtext_takes_it(kind: str, key: str, value: Any, message: str) -> None:
    found = refusal(KEYS[key], value)
    assert found is not None
    assert (found.kind, found.message) == (kind, message)
    assert kind in STRICTER


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", "abc"),
        ("steps", -2),
        ("opt_type", "adam"),
        ("run_name", 1),
        ("head_dim", 1e30),
        ("lora", {"lora_rank": -1}),
    ],
)
def test_what_maxtext_refuses_too_has_no_kind(key: str, value: Any) -> None:
    found = refusal(KEYS[key], value)
    assert found is not None
    assert found.kind == ""


def test_a_number_is_quoted_as_it_was_written() -> None:
    assert judge(KEYS["head_dim"], 0.5, "5e-1") == "expected an integer, got 5e-1"
    assert judge(KEYS["warmup_steps_fraction"], 20.0, "2.0e1") == "must be at most 1.0, got 2.0e1"
    assert judge(KEYS["run_name"], 1200.0, "12e2") == 'expected text, got 12e2: write "12e2"'


def test_a_long_text_is_cut() -> None:
    message = judge(KEYS["head_dim"], "x" * 500)
    assert message == f'expected an integer, got the text "{"x" * 77}..."'


def test_every_shipped_default_and_model_file_is_accepted() -> None:
    for name in ("v1.5.0", "a0fceb5", "cf051eb", "df1b359", "0.2.5"):
        snapshot = load(name)
        for key, entry in snapshot.keys.items():
            if "default" in entry or "base_yml" in entry:
                found = refusal(entry, snapshot.base_default(key))
                assert found is None or (key, found.kind) == ("constant_bound_config", "scalar-for-list")
        for model, values in snapshot.models.items():
            refusals = {key: refusal(snapshot.keys[key], value) for key, value in values.items()}
            refused = {key for key, found in refusals.items() if found and found.kind != "whole-float"}
            assert refused <= ({"model_name"} if model == "olmo3-32b" else set())


def test_extensions_are_judged_like_maxtext_s_own_keys() -> None:
    snapshot = with_extensions(
        load("0.2.5"), {"lazy_loader_scatter": {"type": "integer", "minimum": 1}}, {"dataset_type": ["lazy"]}
    )
    assert judge(snapshot.keys["dataset_type"], "lazy") == ""
    assert judge(KEYS["dataset_type"], "lazy").startswith("expected one of synthetic, hf,")
    assert judge(snapshot.keys["lazy_loader_scatter"], 0) == "must be at least 1, got 0"


def test_an_entry_is_compiled_once_and_never_mistaken_for_another() -> None:
    for _ in range(1000):
        assert judge({"type": "integer"}, 1) == ""
        assert judge({"type": "string"}, 1) != ""


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 8}, "an integer of at least 1 and of at most 8"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "a number above 0 and below 1"),
        ({"const": "experimental", "type": "string"}, "experimental"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "an integer or a number"),
        ({"type": "array", "items": {"type": "boolean"}}, "a list"),
        ({}, "a value"),
    ],
)
def test_what_a_key_takes_in_words(entry: dict[str, Any], words: str) -> None:
    assert expected(entry) == words


def test_an_exclusive_maximum_is_held() -> None:
    assert judge({"type": "number", "exclusiveMaximum": 1}, 1) == "must be below 1, got 1"


def test_an_entry_that_says_nothing_takes_anything() -> None:
    values: list[Any] = [None, 1, "a", [], {}]
    for value in values:
        assert judge({"description": "open"}, value) == ""


def test_every_kind_of_the_table_says_what_and_why() -> None:
    assert all(what and why for what, why in STRICTER.values())


@pytest.mark.parametrize(("value", "instead"), [(8.0, "8"), (1.0e6, "1000000"), (-1.0, "-1")])
def test_a_whole_float_for_an_integer_is_refused(value: float, instead: str) -> None:
    """MaxText converts it; every check here that looks for an integer would take it for absent."""
    found = refusal(KEYS["steps"], value)
    assert found is not None
    assert (found.kind, found.instead) == ("whole-float", instead)
