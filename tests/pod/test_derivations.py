"""Every branch of D1 to D7, with the exact arguments and reasons."""

from __future__ import annotations

from typing import Any

import pytest

from pod.derivations import DerivationError, Override, Skipped, arguments, derive, merge_rules

DEFAULTS: dict[str, Any] = {
    "remat_policy": "full",
    "per_device_batch_size": 12.0,
    "mlpwi_0": "remat",
    "mlpwi_1": "remat",
    "learning_rate_schedule_steps": -1,
    "steps": 150001,
    "warmup_steps_fraction": 0.1,
    "scan_layers": True,
    "load_parameters_path": "",
    "load_full_state_path": "",
    "compiled_trainstep_file": "",
    "eval_interval": -1,
    "enable_checkpointing": True,
    "override_logical_axis_rules": False,
    "base_emb_dim": 2048,
}
FORK = {**DEFAULTS, "moe_topk_indices": "remat"}
PATHS = {"scanned": "gs://b/scanned", "unscanned": "gs://b/unscanned"}
D1 = "remat_policy is custom and per_device_batch_size 2 is at most 2"


def outcome(config: Any, facts: Any, model_file: Any = None, defaults: Any = DEFAULTS) -> list[Any]:
    model_file = {} if model_file is None else model_file
    return derive(config, {"model": "m", **facts}, model_file=model_file, defaults=defaults)


def by_model(rule: str, **facts: Any) -> dict[str, Any]:
    return {"derivations": [rule], **facts}


@pytest.mark.parametrize(
    ("config", "facts", "defaults", "expected"),
    [
        pytest.param(
            {"remat_policy": "custom", "per_device_batch_size": 2},
            by_model("D1"),
            FORK,
            [
                Override("mlpwi_0", "device", "D1", D1),
                Override("mlpwi_1", "device", "D1", D1),
                Override("moe_topk_indices", "device", "D1", D1),
            ],
            id="small batch in the fork",
        ),
        pytest.param(
            {"remat_policy": "custom", "per_device_batch_size": 2},
            by_model("D1"),
            DEFAULTS,
            [
                Override("mlpwi_0", "device", "D1", D1),
                Override("mlpwi_1", "device", "D1", D1),
                Skipped("D1", "this MaxText has no moe_topk_indices"),
            ],
            id="a key this MaxText does not have",
        ),
        pytest.param(
            {"remat_policy": "custom", "per_device_batch_size": 2, "mlpwi_0": "offload", "mlpwi_1": "device"},
            by_model("D1", set_by_person=["mlpwi_0"]),
            DEFAULTS,
            [
                Skipped("D1", "mlpwi_0 offload was set by a person"),
                Skipped("D1", f"mlpwi_1 is device already ({D1})"),
                Skipped("D1", "this MaxText has no moe_topk_indices"),
            ],
            id="set by a person, set already",
        ),
        pytest.param(
            {"remat_policy": "custom", "per_device_batch_size": 2.5},
            by_model("D1"),
            FORK,
            [Skipped("D1", "per_device_batch_size 2.5 is above 2")],
            id="large batch",
        ),
        pytest.param(
            {"per_device_batch_size": 1},
            by_model("D1"),
            FORK,
            [Skipped("D1", "remat_policy is full, not custom")],
            id="another policy, by default",
        ),
        pytest.param(
            {"remat_policy": "custom", "per_device_batch_size": 1},
            {"derivations": []},
            FORK,
            [],
            id="not listed",
        ),
        pytest.param({"remat_policy": "custom", "per_device_batch_size": 1}, {}, FORK, [], id="no list"),
    ],
)
def test_d1(config: Any, facts: Any, defaults: Any, expected: list[Any]) -> None:
    assert outcome(config, facts, defaults=defaults) == expected


def test_d1_with_the_models_policy() -> None:
    found = outcome({"per_device_batch_size": 1}, by_model("D1"), {"remat_policy": "custom", "mlpwi_0": "remat"})
    assert [item for item in found if isinstance(item, Override)] == [
        Override("mlpwi_0", "device", "D1", D1.replace(" 2 ", " 1 ")),
        Override("mlpwi_1", "device", "D1", D1.replace(" 2 ", " 1 ")),
        Override("override_model_config", True, "D1", "the model file sets mlpwi_0 too"),
    ]


@pytest.mark.parametrize(
    ("config", "facts", "expected"),
    [
        pytest.param(
            {"steps": 50000},
            {"warmup_iters": 2000},
            [Override("warmup_steps_fraction", 0.04, "D2", "WARMUP_ITERS 2000 of 50000 schedule steps")],
            id="from steps",
        ),
        pytest.param(
            {"steps": 50000, "learning_rate_schedule_steps": 100000},
            {"warmup_iters": 2000, "set_by_person": ["learning_rate_schedule_steps"]},
            [Override("warmup_steps_fraction", 0.02, "D2", "WARMUP_ITERS 2000 of 100000 schedule steps")],
            id="from the schedule",
        ),
        pytest.param(
            {"steps": 20},
            {"warmup_iters": 2000, "set_by_person": ["steps"]},
            [
                Override("learning_rate_schedule_steps", 4000, "D2", "steps 20 is not above WARMUP_ITERS 2000"),
                Override("warmup_steps_fraction", 0.5, "D2", "WARMUP_ITERS 2000 of 4000 schedule steps"),
            ],
            id="few steps",
        ),
        pytest.param(
            {"steps": 5000, "learning_rate_schedule_steps": 2000},
            {"warmup_iters": 2000},
            [
                Override(
                    "learning_rate_schedule_steps",
                    4000,
                    "D2",
                    "learning_rate_schedule_steps 2000 is not above WARMUP_ITERS 2000",
                ),
                Override("warmup_steps_fraction", 0.5, "D2", "WARMUP_ITERS 2000 of 4000 schedule steps"),
            ],
            id="a preset's schedule as long as the warmup",
        ),
        pytest.param(
            {"steps": 20, "warmup_steps_fraction": 0.3},
            {"warmup_iters": 2000, "set_by_person": ["warmup_steps_fraction"]},
            [
                Override("learning_rate_schedule_steps", 4000, "D2", "steps 20 is not above WARMUP_ITERS 2000"),
                Skipped("D2", "warmup_steps_fraction 0.3 was set by a person"),
            ],
            id="a person's fraction",
        ),
        pytest.param(
            {"steps": 20000},
            {"warmup_iters": 2000},
            [Skipped("D2", "warmup_steps_fraction is 0.1 already (WARMUP_ITERS 2000 of 20000 schedule steps)")],
            id="MaxText's default already",
        ),
        pytest.param(
            {"steps": -1, "learning_rate_schedule_steps": 0},
            {"warmup_iters": 2000},
            [Skipped("D2", "neither learning_rate_schedule_steps nor steps is positive")],
            id="no schedule",
        ),
        pytest.param(
            {"steps": 20},
            {"warmup_iters": None},
            [Skipped("D2", "WARMUP_ITERS is not given")],
            id="no warmup",
        ),
    ],
)
def test_d2(config: Any, facts: Any, expected: list[Any]) -> None:
    assert outcome(config, by_model("D2", **facts)) == expected


@pytest.mark.parametrize(
    ("config", "person", "message"),
    [
        (
            {"steps": 9, "learning_rate_schedule_steps": 1000},
            ["learning_rate_schedule_steps"],
            "learning_rate_schedule_steps 1000 is not above WARMUP_ITERS 2000, and learning_rate_schedule_steps"
            " 1000 was set by a person: set it above 2000, or lower WARMUP_ITERS",
        ),
        (
            {"steps": 9, "learning_rate_schedule_steps": -1},
            ["learning_rate_schedule_steps", "warmup_steps_fraction"],
            "steps 9 is not above WARMUP_ITERS 2000, and learning_rate_schedule_steps -1"
            " was set by a person: set it above 2000, or lower WARMUP_ITERS",
        ),
        ({"steps": "many"}, [], "steps must be a number, not many"),
        ({"steps": True}, [], "steps must be a number, not true"),
        ({"steps": None}, [], "steps must be a number, not null"),
    ],
)
def test_d2_refuses(config: Any, person: list[str], message: str) -> None:
    with pytest.raises(DerivationError) as error:
        outcome(config, by_model("D2", warmup_iters=2000, set_by_person=person))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("config", "facts", "expected"),
    [
        pytest.param(
            {},
            {"load_parameters_path": PATHS},
            [Override("load_parameters_path", "gs://b/scanned", "D3", "scan_layers is true")],
            id="scanned by default",
        ),
        pytest.param(
            {"scan_layers": False, "load_parameters_path": "gs://b/preset"},
            {"load_parameters_path": PATHS},
            [Override("load_parameters_path", "gs://b/unscanned", "D3", "scan_layers is false")],
            id="unscanned, over a preset",
        ),
        pytest.param(
            {"load_parameters_path": "gs://b/mine"},
            {"load_parameters_path": PATHS, "set_by_person": ["load_parameters_path"]},
            [Skipped("D3", "load_parameters_path gs://b/mine was set by a person")],
            id="set by a person",
        ),
        pytest.param(
            {"scan_layers": False},
            {"load_parameters_path": {"scanned": "gs://b/scanned", "unscanned": None}},
            [Skipped("D3", "scan_layers is false and LOAD_PARAMETERS_PATH_UNSCANNED is not given")],
            id="the other one is given",
        ),
        pytest.param(
            {},
            {"load_parameters_path": {"unscanned": "gs://b/unscanned"}},
            [Skipped("D3", "scan_layers is true and LOAD_PARAMETERS_PATH_SCANNED is not given")],
            id="only unscanned",
        ),
        pytest.param(
            {},
            {"load_parameters_path": None},
            [Skipped("D3", "no LOAD_PARAMETERS_PATH is given")],
            id="no path",
        ),
    ],
)
def test_d3(config: Any, facts: Any, expected: list[Any]) -> None:
    assert outcome(config, by_model("D3", **facts)) == expected


def test_d3_refuses_what_is_no_boolean() -> None:
    with pytest.raises(DerivationError) as error:
        outcome({"scan_layers": "n"}, by_model("D3", load_parameters_path=PATHS))
    assert str(error.value) == "scan_layers must be true or false, not n"


@pytest.mark.parametrize(
    ("config", "rules", "expected"),
    [
        pytest.param(
            {"load_full_state_path": "gs://b/s", "load_parameters_path": "p", "enable_checkpointing": False},
            ["D4"],
            [
                Override("load_parameters_path", "", "D4", "load_full_state_path is set"),
                Override("enable_checkpointing", True, "D4", "load_full_state_path is set"),
            ],
            id="both, also what a person set",
        ),
        pytest.param(
            {"load_full_state_path": "gs://b/s", "load_parameters_path": "NONE"},
            ["D3", "D4"],
            [
                Skipped("D3", "load_full_state_path is set, so D4 clears load_parameters_path"),
                Skipped("D4", "enable_checkpointing is true already (load_full_state_path is set)"),
            ],
            id="D4 after D3",
        ),
        pytest.param(
            {"load_full_state_path": "gs://b/s"},
            ["D3"],
            [Override("load_parameters_path", "gs://b/scanned", "D3", "scan_layers is true")],
            id="D3 without D4",
        ),
        pytest.param({}, ["D4"], [Skipped("D4", "load_full_state_path is not set")], id="no full state"),
        pytest.param(
            {"load_full_state_path": None},
            ["D4"],
            [Skipped("D4", "load_full_state_path is not set")],
            id="null",
        ),
    ],
)
def test_d4(config: Any, rules: list[str], expected: list[Any]) -> None:
    facts = {"derivations": rules, "load_parameters_path": PATHS, "set_by_person": ["enable_checkpointing"]}
    assert outcome(config, facts) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"compiled_trainstep_file": "a.pickle"},
            [Override("eval_interval", 0, "D5", "compiled_trainstep_file is set")],
        ),
        (
            {"compiled_trainstep_file": "a.pickle", "eval_interval": 0},
            [Skipped("D5", "eval_interval is 0 already (compiled_trainstep_file is set)")],
        ),
        ({"compiled_trainstep_file": "none"}, [Skipped("D5", "compiled_trainstep_file is not set")]),
        ({}, [Skipped("D5", "compiled_trainstep_file is not set")]),
    ],
)
def test_d5(config: Any, expected: list[Any]) -> None:
    assert outcome(config, by_model("D5", set_by_person=["eval_interval"])) == expected


@pytest.mark.parametrize(
    ("config", "model_file", "expected"),
    [
        pytest.param(
            {"base_emb_dim": 1024, "steps": 3},
            {"base_emb_dim": 4096, "vocab_size": 32000},
            [
                Override("base_emb_dim", 1024, "D6", "the model file sets 4096, and would win over run.yml"),
                Override("override_model_config", True, "D6", "the model file sets base_emb_dim too"),
            ],
            id="another value",
        ),
        pytest.param({"base_emb_dim": 4096}, {"base_emb_dim": 4096}, [], id="the same value"),
        pytest.param(
            {"rope": {"a": {"x": 1}}},
            {"rope": {"a": {"x": 2, "y": 3}, "b": 4}},
            [
                Override(
                    "rope",
                    {"a": {"x": 1, "y": 3}, "b": 4},
                    "D6",
                    'the model file sets {"a": {"x": 2, "y": 3}, "b": 4}, and would win over run.yml',
                ),
                Override("override_model_config", True, "D6", "the model file sets rope too"),
            ],
            id="maps merge deep",
        ),
        pytest.param({"rope": {"a": 1}}, {"rope": {"a": 1, "b": 2}}, [], id="a part of the same map"),
        pytest.param(
            {"rope": None},
            {"rope": "yarn"},
            [
                Override("rope", None, "D6", "the model file sets yarn, and would win over run.yml"),
                Override("override_model_config", True, "D6", "the model file sets rope too"),
            ],
            id="null is a value",
        ),
        pytest.param(
            {"base_config": "base.yml", "logical_axis_rules": [["embed", []]]},
            {"base_config": "other.yml", "logical_axis_rules": [["norm", []]]},
            [],
            id="not D6's keys",
        ),
        pytest.param(
            {"override_logical_axis_rules": True},
            {"override_logical_axis_rules": False},
            [],
            id="alone, this argument would leave no rules",
        ),
        pytest.param(
            {"override_logical_axis_rules": False},
            {"override_logical_axis_rules": True, "logical_axis_rules": [["norm", []]]},
            [
                Override(
                    "override_logical_axis_rules",
                    False,
                    "D6",
                    "the model file sets true, and would win over run.yml",
                ),
                Override("override_model_config", True, "D6", "the model file sets override_logical_axis_rules too"),
            ],
            id="rules that no longer replace all others",
        ),
    ],
)
def test_d6(config: Any, model_file: Any, expected: list[Any]) -> None:
    assert outcome(config, {}, model_file) == expected


def test_d6_is_decided_in_the_pod_where_the_model_file_is_unknown() -> None:
    found = derive({"base_emb_dim": 1}, {"model": "ling3-flash"}, model_file=None, defaults=DEFAULTS)
    assert found == [Skipped("D6", "decided in the pod: the model file of ling3-flash is not known here")]


def test_a_derived_key_is_passed_once() -> None:
    config = {"remat_policy": "custom", "per_device_batch_size": 2, "mlpwi_0": "remat", "mlpwi_1": "device"}
    found = outcome(config, by_model("D1"), {"mlpwi_0": "offload", "mlpwi_1": "offload"})
    assert arguments(found) == ['mlpwi_0="device"', 'mlpwi_1="device"', "override_model_config=true"]


OURS = [["embed", ["fsdp"]], ["embed", []], ["norm", "tensor"]]
MODELS = [["norm", "fsdp"], ["heads", "tensor"]]


@pytest.mark.parametrize(
    ("config", "rules", "model_file", "expected"),
    [
        pytest.param(
            {},
            OURS,
            {},
            [
                Override(
                    "logical_axis_rules",
                    OURS,
                    "D7",
                    "merged by rule name over MaxText's own rules and 0 of the model file",
                )
            ],
            id="the model file has none",
        ),
        pytest.param(
            {},
            OURS,
            {"logical_axis_rules": MODELS},
            [
                Override(
                    "logical_axis_rules",
                    [["heads", "tensor"], *OURS],
                    "D7",
                    "merged by rule name over MaxText's own rules and 1 of the model file",
                ),
                Override("override_model_config", True, "D7", "the model file sets logical_axis_rules too"),
            ],
            id="over the model file's",
        ),
        pytest.param(
            {"override_logical_axis_rules": True},
            OURS,
            {"logical_axis_rules": MODELS},
            [
                Override(
                    "logical_axis_rules",
                    OURS,
                    "D7",
                    "override_logical_axis_rules is true: these rules and no others",
                ),
                Override(
                    "override_logical_axis_rules",
                    True,
                    "D7",
                    "override_logical_axis_rules is true: these rules and no others",
                ),
                Override("override_model_config", True, "D7", "the model file sets logical_axis_rules too"),
            ],
            id="whole",
        ),
        pytest.param({}, [], {}, [Skipped("D7", "logical_axis_rules is empty")], id="an empty list"),
        pytest.param({}, None, {"logical_axis_rules": MODELS}, [], id="no rules"),
    ],
)
def test_d7(config: Any, rules: Any, model_file: Any, expected: list[Any]) -> None:
    assert outcome(config, {"logical_axis_rules": rules}, model_file) == expected


def test_d7_before_the_model_file_is_known() -> None:
    found = derive({}, {"model": "fork", "logical_axis_rules": OURS}, model_file=None, defaults=DEFAULTS)
    reason = "merged by rule name over MaxText's own rules and those of the model file"
    assert found[-1] == Override("logical_axis_rules", OURS, "D7", reason)


def test_rules_of_one_name_stay_together_and_replace_all_of_that_name() -> None:
    under = [["embed", "a"], ["vocab", "b"], ["embed", "c"]]
    assert merge_rules(under, [["embed", "x"], ["embed", "y"]]) == [
        ["vocab", "b"],
        ["embed", "x"],
        ["embed", "y"],
    ]


def test_arguments_carry_the_permission_once_for_d6() -> None:
    overrides = [Override("base_emb_dim", 1, "D6", ""), Override("head_dim", 2, "D6", "")]
    assert arguments(overrides) == ["base_emb_dim=1", "head_dim=2", "override_model_config=true"]
    assert arguments([Override("eval_interval", 0, "D5", ""), Skipped("D1", "")]) == ["eval_interval=0"]


def test_a_long_value_is_cut_in_a_reason() -> None:
    found = outcome({"k": 1}, {}, {"k": "x" * 100})
    assert found[0].reason == f"the model file sets {'x' * 57}..., and would win over run.yml"
