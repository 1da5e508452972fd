"""`renderer explain`: the winner and everything it replaced, one line each."""

from __future__ import annotations

import json

import pytest
from content import Content


@pytest.fixture
def explained(content: Content) -> Content:
    path = content.experiment(
        deploy={"DATASETS_YAML": "fin_35p", "ENV": {"A": "b"}, "K8S_MAX_RESTARTS": 5},
        maxtext={"steps": 50, "dataset_type": "synthetic"},
    )
    path.write_text(path.read_text() + '  "opt_type": !remove\nchecks:\n  global_batch: 256\n')
    return content


FILE = "experiments/ling3-flash/run.yml"


@pytest.mark.parametrize(
    ("key", "lines"),
    [
        (
            "maxtext.dataset_type",
            [
                f'{FILE}:14: maxtext.dataset_type: "synthetic" (experiment, wins)',
                'datasets/fin_35p.yml:@: maxtext.dataset_type: "lazy" (dataset, replaced)',
                'presets/ling3-flash/model.yml:@: maxtext.dataset_type: "lazy" (model, replaced)',
                'MaxText 0.2.5 base.yml: maxtext.dataset_type: "synthetic" (default)',
            ],
        ),
        (
            "steps",
            [
                f"{FILE}:13: maxtext.steps: 50 (experiment, wins)",
                "presets/ling3-flash/environment/test.yml:@: maxtext.steps: 20 (environment, replaced)",
                "MaxText 0.2.5 base.yml: maxtext.steps: 150001 (default)",
            ],
        ),
        (
            "deploy.K8S_MAX_RESTARTS",
            [
                f"{FILE}:11: deploy.K8S_MAX_RESTARTS: 5 (experiment, wins)",
                "presets/ling3-flash/environment/test.yml:@: deploy.K8S_MAX_RESTARTS: 3 (environment, replaced)",
                "renderer (docs/keys.md): deploy.K8S_MAX_RESTARTS: 0 (default)",
            ],
        ),
        ("ENV", [f'{FILE}:10: deploy.ENV.A: "b" (experiment, wins)']),
        ("ENV.A", [f'{FILE}:10: deploy.ENV.A: "b" (experiment, wins)']),
        (
            "maxtext.opt_type",
            [
                f"{FILE}:15: maxtext.opt_type: !remove (experiment, removes)",
                'presets/ling3-flash/model.yml:@: maxtext.opt_type: "muon" (model, replaced)',
                'MaxText 0.2.5 base.yml: maxtext.opt_type: "adamw" (default)',
            ],
        ),
        ("launch.chips", [f"{FILE}:3: launch.chips: 64 (experiment, wins)"]),
        ("owner", [f'{FILE}:6: launch.owner: "team" (experiment, wins)']),
        ("deploy.GRACE_SECONDS", ["renderer (docs/keys.md): deploy.GRACE_SECONDS: 300 (default)"]),
        ("launch.attempt", ["renderer (docs/keys.md): launch.attempt: 1 (default)"]),
        ("attempt", ["renderer (docs/keys.md): launch.attempt: 1 (default)"]),
        ("checks.global_batch", [f"{FILE}:17: checks.global_batch: 256 (experiment, wins)"]),
        ("global_batch", [f"{FILE}:17: checks.global_batch: 256 (experiment, wins)"]),
        ("maxtext.adam_b1", ["MaxText 0.2.5 base.yml: maxtext.adam_b1: 0.9 (default)"]),
    ],
)
def test_every_assignment_is_a_line(key: str, lines: list[str], explained: Content) -> None:
    code, out, err = explained.run("explain", "ling3-flash/run", key)
    assert (code, out.splitlines(), err) == (0, [placed(explained, line) for line in lines], "")


def placed(content: Content, line: str) -> str:
    """Put the line in which a preset sets the key for the @ behind its file."""
    file, at, rest = line.partition(":@: ")
    if not at:
        return line
    key = rest.split(":")[0].rpartition(".")[2]
    found = [
        number
        for number, text in enumerate((content.root / file).read_text().splitlines(), 1)
        if text.strip().startswith(f"{key}:")
    ]
    assert len(found) == 1
    return f"{file}:{found[0]}: {rest}"


def test_json_holds_the_same(explained: Content) -> None:
    found = json.loads(explained.run("explain", "ling3-flash/run", "deploy.K8S_MAX_RESTARTS", "--format", "json").out)
    assert found[0] == {
        "path": "deploy.K8S_MAX_RESTARTS",
        "place": {"file": FILE, "line": 11, "column": 3},
        "layer": "experiment",
        "value": "5",
        "role": "wins",
    }
    assert [row["role"] for row in found] == ["wins", "replaced", "default"]
    assert found[2]["place"] == {"file": "renderer (docs/keys.md)", "line": 0, "column": 0}


def test_the_model_file_is_part_of_the_history(content: Content) -> None:
    content.experiment(model="qwen3-0.6b", maxtext={"base_emb_dim": 512})
    assert content.run("explain", "qwen3-0.6b/run", "base_emb_dim").out.splitlines() == [
        "experiments/qwen3-0.6b/run.yml:9: maxtext.base_emb_dim: 512 (experiment, wins)",
        "MaxText 0.2.5 configs/models/qwen3-0.6b.yml: maxtext.base_emb_dim: 1024 (model file, replaced, by D6)",
        "MaxText 0.2.5 base.yml: maxtext.base_emb_dim: 2048 (default)",
    ]


def test_unknown_key_has_near_names(explained: Content) -> None:
    code, out, err = explained.run("explain", "ling3-flash/run", "maxtext.stesp")
    assert (code, out) == (1, "")
    assert err == (
        f"{FILE}: maxtext.stesp: no layer sets this key, and MaxText does not know it\n    did "
        f"you mean maxtext.steps or maxtext.dataset_type or maxtext.profiler?\n"
    )


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "launch.attemt",
            "launch: has none of this name\n    did you mean launch.attempt or launch.state or launch.name?",
        ),
        ("checks.batch", "checks: has none of this name\n    did you mean checks.global_batch?"),
        ("GRACE_SECONDS.x", "deploy: has none of this name\n    did you mean deploy.GRACE_SECONDS?"),
        ("GRACE_SECOND", "MaxText does not know it\n    did you mean deploy.GRACE_SECONDS?"),
        ("deploy.QUEUE", "it has no default\n    it means: Kueue's LocalQueue."),
        ("ENV.B", "it has no default\n    it means: Further environment variables of the trainer."),
        ("launch.name", "it has no default\n    it means: The run's name instead of the file's; must fit."),
    ],
)
def test_a_key_that_no_layer_sets_is_told_from_one_that_nobody_knows(key: str, said: str, explained: Content) -> None:
    ran = explained.run("explain", "ling3-flash/run", key)
    assert tuple(ran) == (1, "", f"{FILE}: {key}: no layer sets this key, and {said}\n")


def test_a_section_is_no_key(explained: Content) -> None:
    ran = explained.run("explain", "ling3-flash/run", "checks")
    assert tuple(ran) == (1, "", f"{FILE}: checks: is a section: name a key of it, as checks.<key>\n")


SECRET = "abcdef0123456789"
TOKEN = "ghp_" + "a1" * 18
HOSTILE = {"a\n::error::pwned": 1, "\x1b[31mX\x9b": 1}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("key", "value"), [("hf_access_token", SECRET), ("hf_access_token", TOKEN), ("run_name", f"a-{TOKEN}")]
)
def test_no_secret_is_shown(key: str, value: str, form: str, content: Content) -> None:
    content.experiment(maxtext={key: value})
    ran = content.run("explain", "ling3-flash/run", key, "--format", form)
    assert ran.code == 0
    assert value.removeprefix("a-") not in ran.out
    assert "****" in ran.out


def test_keys_and_values_start_no_line_and_steer_no_terminal(content: Content) -> None:
    content.experiment(maxtext={"vllm_additional_config": HOSTILE})
    code, out, err = content.run("explain", "ling3-flash/run", "vllm_additional_config")
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == [
        f"{FILE}:9: maxtext.vllm_additional_config.a\\n::error::pwned: 1 (experiment, wins)",
        f"{FILE}:9: maxtext.vllm_additional_config.\\x1b[31mX\\x9b: 1 (experiment, wins)",
    ]
    ran = content.run("explain", "ling3-flash/run", "vllm_additional_config", "--format", "json")
    assert ran.out.replace("\n", "").isprintable()
    assert json.loads(ran.out)[1]["path"] == "maxtext.vllm_additional_config.\x1b[31mX\x9b"
