"""What the real MaxText resolves from the pod's call: every key of run.yml, D6 and D7 included, arrives."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from omegaconf import OmegaConf

from pod.derivations import DerivationError, Override, arguments, derive, encode
from renderer.schema import load as load_snapshot

if TYPE_CHECKING:
    from conftest import LoaderProcess

pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[2]
WITHOUT_TPU = ["compile_topology=tpu7x-128", "compile_topology_num_slices=1"]
NAMES = {"base_config"}
FACTS: dict[str, Any] = {
    "model": "m",
    "maxtext_version": "0.2.5",
    "maxtext_mismatch": "error",
    "trainer": "maxtext.trainers.pre_train.train",
    "derivations": [],
    "warmup_iters": None,
    "load_parameters_path": None,
    "set_by_person": [],
    "run_name_explicit": False,
    "logical_axis_rules": None,
}
COMMON: dict[str, Any] = {
    "run_name": "deep",
    "base_output_directory": "gs://bucket/runs",
    "dataset_type": "synthetic",
    "log_config": False,
    "ici_fsdp_parallelism": 128,
    "per_device_batch_size": 2,
    "steps": 100,
}
RULES = [["embed", ["fsdp"]], ["norm", ["fsdp"]], ["mlp", []]]


def write_run(folder: Path, config: Mapping[str, Any], **facts: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["base_config: base.yml", *(f"{key}: {encode(value)}" for key, value in config.items())]
    (folder / "run.yml").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "derive.json").write_text(json.dumps({**FACTS, **facts}))
    return folder / "run.yml"


def pods_argv(python: Path, run_yml: Path) -> list[str]:
    """Return what the pod hands to the trainer: run.yml and the derived arguments."""
    command = [str(python), str(ROOT / "pod/run_pretrain.py"), "--print", str(run_yml)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)[3:]


def plain_argv(configs: Path, config: Mapping[str, Any]) -> list[str]:
    """Return the plain call: base.yml, and every value as an argument."""
    pairs = [f"{key}={encode(value)}" for key, value in config.items() if key != "base_config"]
    return [str(configs / "base.yml"), *pairs, "override_model_config=true"]


def read(path: Path) -> dict[str, Any]:
    return OmegaConf.to_container(OmegaConf.load(path))  # type: ignore[return-value]


def by_name(*layers: list[Any]) -> list[Any]:
    rules: list[Any] = []
    for layer in layers:
        rules = [rule for rule in rules if rule[0] not in {name for name, _ in layer}] + layer
    return rules


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> set[str]:
    assert left.keys() == right.keys()
    return {key for key in left if left[key] != right[key]} - NAMES


# ---- D6 and D7 ----

MODELS = ["qwen3-0.6b", "deepseek3-671b", "llama3.1-70b", "llama2-7b", "deepseek3-671b-2dfsdp"]


@pytest.mark.parametrize("model", MODELS)
def test_model_file_keys_and_rules_arrive(
    maxtext_python: Path, configs: Path, resolver: LoaderProcess, tmp_path: Path, model: str
) -> None:
    config = {**COMMON, "model_name": model, "base_emb_dim": 1536, "rope_max_timescale": 12345}
    run_yml = write_run(tmp_path, config, logical_axis_rules=RULES)
    pod = resolver.config([*pods_argv(maxtext_python, run_yml), *WITHOUT_TPU])
    plain = resolver.config([*plain_argv(configs, config), *WITHOUT_TPU])
    theirs = read(configs / f"models/{model}.yml")
    base = [] if theirs.get("override_logical_axis_rules") else read(configs / "base.yml")["logical_axis_rules"]
    expected = by_name(base, theirs.get("logical_axis_rules", []), RULES)
    assert pod["logical_axis_rules"] == expected
    assert (pod["base_emb_dim"], pod["rope_max_timescale"]) == (1536, 12345)
    assert len(pod) == 865
    rules = {"logical_axis_rules", "logical_axis_rules_for_eval", "override_model_config"}
    assert differences(pod, plain) - rules == set()


@pytest.mark.parametrize("model", MODELS)
def test_without_d6_and_d7_they_do_not_arrive(
    configs: Path, resolver: LoaderProcess, tmp_path: Path, model: str
) -> None:
    config = {**COMMON, "model_name": model, "base_emb_dim": 1536, "rope_max_timescale": 12345}
    run_yml = write_run(tmp_path, config, logical_axis_rules=RULES)
    without = resolver.config([str(run_yml), *WITHOUT_TPU])
    plain = resolver.config([*plain_argv(configs, {**config, "logical_axis_rules": RULES}), *WITHOUT_TPU])
    lost = {"base_emb_dim", "emb_dim", "rope_max_timescale", "logical_axis_rules"}
    if "rope_max_timescale" not in read(configs / f"models/{model}.yml"):
        lost.remove("rope_max_timescale")
    assert differences(without, plain) >= lost


def test_whole_rules(maxtext_python: Path, resolver: LoaderProcess, tmp_path: Path) -> None:
    config = {**COMMON, "model_name": "llama2-7b", "override_logical_axis_rules": True}
    run_yml = write_run(tmp_path, config, logical_axis_rules=RULES)
    assert resolver.config([*pods_argv(maxtext_python, run_yml), *WITHOUT_TPU])["logical_axis_rules"] == RULES


def rendered_runs() -> list[Path]:
    """Every rendered run of this MaxText whose model file it has."""
    snapshot = load_snapshot("0.2.5")
    paths = sorted(ROOT.glob("rendered/*/*/*/derive.json"))
    facts = {path.with_name("run.yml"): json.loads(path.read_text()) for path in paths}
    return [
        path for path, fact in facts.items() if fact["maxtext_version"] == "0.2.5" and fact["model"] in snapshot.models
    ]


@pytest.mark.parametrize("run_yml", rendered_runs(), ids=lambda path: str(path.parent.relative_to(ROOT / "rendered")))
def test_a_rendered_run_resolves_as_the_plain_call(
    maxtext_python: Path, configs: Path, resolver: LoaderProcess, run_yml: Path
) -> None:
    pod = resolver.config([*pods_argv(maxtext_python, run_yml), *WITHOUT_TPU])
    plain = resolver.config([*plain_argv(configs, read(run_yml)), *WITHOUT_TPU])
    assert differences(pod, plain) - {"override_model_config"} == set()


# ---- values ----


def test_awkward_values_arrive_unchanged(resolver: LoaderProcess, tmp_path: Path) -> None:
    texts = ["1e-4", "on", "a,b", "fixed,-224,224", '{"a": 1}', " lead", "null", "#x", "012", "中文", "a\nb", "\\", '"']
    run_yml = write_run(tmp_path, COMMON)
    for text in texts:
        found = resolver.config([str(run_yml), *WITHOUT_TPU, f"run_name={encode(text)}"])
        assert found["run_name"] == text
    values = {"vllm_additional_config": {"a": [1, None, "on"]}, "adamw_mask": ["x", "1e5"], "dataset_path": ""}
    found = resolver.config([str(run_yml), *WITHOUT_TPU, *(f"{key}={encode(values[key])}" for key in values)])
    assert {key: found[key] for key in values} == values


@pytest.mark.parametrize(
    ("config", "facts", "expected"),
    [
        (
            {"remat_policy": "custom"},
            {"derivations": ["D1"]},
            {"mlpwi_0": "device", "mlpwi_1": "device"},
        ),
        (
            {"steps": 10},
            {"derivations": ["D2"], "warmup_iters": 50},
            {"learning_rate_schedule_steps": 100, "warmup_steps_fraction": 0.5, "steps": 10},
        ),
        (
            {"enable_checkpointing": True},
            {"derivations": ["D3"], "load_parameters_path": {"scanned": "gs://b/s", "unscanned": None}},
            {"load_parameters_path": "gs://b/s"},
        ),
        (
            {"load_full_state_path": "gs://b/f", "load_parameters_path": "gs://b/p", "enable_checkpointing": False},
            {"derivations": ["D4"]},
            {"load_parameters_path": "", "load_full_state_path": "gs://b/f", "enable_checkpointing": True},
        ),
        (
            {"compiled_trainstep_file": "step.pickle", "eval_interval": 5},
            {"derivations": ["D5"]},
            {"eval_interval": 0},
        ),
    ],
)
def test_derived_values_arrive(
    maxtext_python: Path,
    resolver: LoaderProcess,
    tmp_path: Path,
    config: dict[str, Any],
    facts: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    run_yml = write_run(tmp_path, {**COMMON, "model_name": "qwen3-0.6b", **config}, **facts)
    found = resolver.config([*pods_argv(maxtext_python, run_yml), *WITHOUT_TPU])
    assert {key: found[key] for key in expected} == expected


# ---- preview and pod agree ----

PREPARE = """\
import functools, json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import run_pretrain
run_pretrain._read_yaml = functools.cache(run_pretrain._read_yaml)  # the same base.yml a thousand times
for line in sys.stdin:
    try:
        start = run_pretrain.prepare(pathlib.Path(line.strip()), [])
        answer = [type(item).__name__ + repr(vars(item)) for item in start.outcome], start.argv[4:]
    except ValueError as error:
        answer = [type(error).__name__ + repr(str(error))], []
    print(json.dumps(answer), flush=True)
"""


def random_case(rng: random.Random, models: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    model = rng.choice(sorted(models))
    choices: dict[str, list[Any]] = {
        "remat_policy": ["custom", "full", "minimal"],
        "per_device_batch_size": [0.5, 1, 2, 4, "2"],
        "mlpwi_0": ["remat", "device", "offload"],
        "learning_rate_schedule_steps": [-1, 0, 50, 200, 5000],
        "steps": [-1, 10, 100, 5000],
        "warmup_steps_fraction": [0.1, 0.02],
        "scan_layers": [True, False, "n"],
        "load_parameters_path": ["", "gs://b/p"],
        "load_full_state_path": ["", "none", "gs://b/f"],
        "compiled_trainstep_file": ["", "step.pickle"],
        "eval_interval": [-1, 0, 10],
        "enable_checkpointing": [True, False],
        "override_logical_axis_rules": [True, False],
    }
    config: dict[str, Any] = {"model_name": model}
    config |= {key: rng.choice(values) for key, values in choices.items() if rng.random() < 0.4}
    for key, value in rng.sample(sorted(models[model].items()), min(3, len(models[model]))):
        if key not in {"base_config", "logical_axis_rules"}:
            config[key] = rng.choice([value, value * 2 if type(value) is int else "other", None])
    facts = {
        "model": model,
        "derivations": rng.sample(["D1", "D2", "D3", "D4", "D5"], rng.randrange(6)),
        "warmup_iters": rng.choice([None, 100, 2000]),
        "load_parameters_path": rng.choice(
            [None, {"scanned": "gs://b/s", "unscanned": rng.choice([None, "gs://b/u"])}]
        ),
        "set_by_person": sorted(rng.sample(sorted(config), rng.randrange(len(config)))),
        "logical_axis_rules": rng.choice([None, [], RULES, [["norm", "tensor"]]]),
    }
    return config, facts


def preview(config: dict[str, Any], facts: dict[str, Any], snapshot: Any) -> list[Any]:
    defaults = {key: snapshot.base_default(key) for key in snapshot.keys}
    try:
        found = derive(config, facts, model_file=snapshot.models[config["model_name"]], defaults=defaults)
        return [[type(item).__name__ + repr(vars(item)) for item in found], arguments(found)]
    except DerivationError as error:
        return [[type(error).__name__ + repr(str(error))], []]


def test_preview_and_pod_agree_on_1000_configurations(maxtext_python: Path, tmp_path: Path) -> None:
    rng, snapshot = random.Random(20261129), load_snapshot("0.2.5")
    cases = [random_case(rng, snapshot.models) for _ in range(1000)]
    paths = [write_run(tmp_path / str(index), config, **facts) for index, (config, facts) in enumerate(cases)]
    result = subprocess.run(
        [str(maxtext_python), "-c", PREPARE, str(ROOT / "pod")],
        input="".join(f"{path}\n" for path in paths),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    expected = [preview(config, facts, snapshot) for config, facts in cases]
    assert [pair for pair in zip(answers, expected, cases, strict=True) if pair[0] != pair[1]] == []
    rules = {item.rule for config, facts in cases for item in overrides(config, facts, snapshot)}
    assert rules == {"D1", "D2", "D3", "D4", "D5", "D6", "D7"}


def overrides(config: dict[str, Any], facts: dict[str, Any], snapshot: Any) -> list[Override]:
    defaults = {key: snapshot.base_default(key) for key in snapshot.keys}
    try:
        found = derive(config, facts, model_file=snapshot.models[config["model_name"]], defaults=defaults)
    except DerivationError:
        return []
    return [item for item in found if isinstance(item, Override)]
