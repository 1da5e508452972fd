"""`renderer preview`: experiments and bare presets, with selectors and values on top; nothing is written."""

from __future__ import annotations

import pytest
from content import SHIPPED, Content, run, settled
from syrupy.assertion import SnapshotAssertion

from renderer.layers import ENVIRONMENTS, Repository

PRESETS = [
    (model, chips, context, environment)
    for model in Repository(SHIPPED).models()
    for chips, context in Repository(SHIPPED).topologies(model)
    for environment in ENVIRONMENTS
]


@pytest.mark.parametrize(("model", "chips", "context", "environment"), PRESETS)
def test_every_topology_and_environment_of_every_model_previews_without_an_experiment(
    model: str, chips: int, context: str, environment: str
) -> None:
    code, out, err = run(
        SHIPPED, "preview", "--model", model, "--chips", str(chips), "--context", context, "--env", environment
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "# === run: presets alone ==="
    assert lines[1].startswith(f"# {model}, {chips} chips (")
    needed = {"prod": ["launch.image", "launch.owner"], "test": ["launch.branch"]}[environment]
    start = lines.index("# needed to launch:") + 1
    assert [line.split(":")[0].removeprefix("#   ") for line in lines[start : start + len(needed)]] == needed
    assert lines[start + len(needed)] == "# === deploy (to jobset.yml) ==="


def test_an_experiment_with_everything(content: Content, snapshot: SnapshotAssertion) -> None:
    content.experiment(maxtext={"learning_rate": 1e-4})
    ran = content.run("preview", "ling3-flash/run", "steps=7", "ENV.A=b", "--owner", "others", "--name", "short")
    assert (ran.code, ran.err) == (0, "")
    assert settled(ran.out) == snapshot
    assert not (content.root / "rendered").exists()


def test_preview_shows_the_files_that_render_writes(content: Content) -> None:
    content.experiment()
    content.run("render")
    out = content.run("preview", "ling3-flash/run").out
    for name in ("jobset.yml", "run.yml", "derive.json"):
        text = (content.root / f"rendered/test/ling3-flash/run/{name}").read_text()
        assert f"# === {name} ===\n{text}" in out


def test_selectors_win_over_the_file(content: Content) -> None:
    content.experiment()
    out = content.run("preview", "ling3-flash/run", "--chips", "256").out
    assert out.splitlines()[1:3] == [
        "# ling3-flash, 256 chips (4x8x8, 64 hosts), test, source mode",
        "# mesh data=4 fsdp=128 over 512 devices, global batch 8192",
    ]


def test_one_host_is_no_hosts(content: Content) -> None:
    topology = "deploy:\n  TPU_TOPOLOGY: 2x2x1\n  COMPLETIONS: 1\nmaxtext:\n  ici_fsdp_parallelism: 8\n"
    content.write("presets/qwen3-0.6b/topology/4chips/4k.yml", topology)
    content.experiment(model="qwen3-0.6b", launch={"chips": 4})
    out = content.run("preview", "qwen3-0.6b/run").out
    assert out.splitlines()[1] == "# qwen3-0.6b, 4 chips (2x2x1, 1 host), test, source mode"


def test_values_alone_need_no_experiment(content: Content) -> None:
    ran = content.run(
        "preview", "steps=7", "--model", "ling3-flash", "--chips", "64", "--context", "8k", "--env", "test"
    )
    assert ran.code == 0
    assert "steps: 7  # command line\n" in ran.out


def test_what_the_model_file_also_sets_is_an_override(content: Content) -> None:
    content.experiment(model="qwen3-0.6b", maxtext={"base_num_decoder_layers": 2})
    out = content.run("preview", "qwen3-0.6b/run").out
    assert "base_num_decoder_layers: 2  # D6: " in out
    assert "override_model_config: true  # D6: " in out


@pytest.mark.parametrize(
    ("arguments", "err"),
    [
        (
            ["--model", "x", "--chips", "64", "--context", "8k", "--env", "test"],
            "command line: launch.model: no presets/x/model.yml\n",
        ),
        (
            ["--model", "ling3-flash"],
            "command line: launch.chips: missing: TPU chips of the slice: a folder of the model's topology/.\n",
        ),
        (
            ["ling3-flash/run", "--chips", "many"],
            'command line: launch.chips: must be an integer, not the text "many"\n',
        ),
        (["ling3-flash/run", "--env", "dev"], 'command line: launch.environment: "dev" is not prod or test\n'),
        (
            ["ling3-flash/run", "stesp=1"],
            "command line: stesp: neither MaxText nor deploy: knows this key\n    did you mean steps?\n",
        ),
        (["ling3-flash/run", "deploy.CHIP=1"], "command line: deploy.CHIP: unknown key\n"),
        (["ling3-flash/run", "steps=many"], "command line: maxtext.steps: "),
        (["ling3-flash/run", 'run_name="\udcff"'], 'command line: run_name: "\\udcff": is not UTF-8 text\n'),
        (["ling3-flash/run", "run_name=\udcff"], "command line: maxtext.run_name: "),
        (["ling3-flash/run", "--branch", "\udcff"], "command line: launch.branch: is not UTF-8 text\n"),
        (["ling3-flash/run", "hf_access_token:hunter2"], "command line: hf_access_token... is not KEY=VALUE: "),
        (["ling3-flash/run", "hf-access-token=hunter2"], "command line: hf-access-token... is not KEY=VALUE: "),
        (["hf_access_token:hunter2"], "hf_access_token:****: no such experiment\n"),
        (["ling3-flash/run", "hf_access_token=[hunter2 x"], "command line: hf_access_token: ****\n"),
        (["ling3-flash/rnu"], "ling3-flash/rnu: no such experiment\n    did you mean ling3-flash/run?\n"),
    ],
)
def test_refused(arguments: list[str], err: str, content: Content) -> None:
    content.experiment()
    ran = content.run("preview", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(err)
    assert "hunter2" not in ran.err


def test_keys_start_no_line_and_steer_no_terminal(content: Content) -> None:
    content.experiment(maxtext={"vllm_additional_config": {"a\n::error::pwned": 1, "\x1b[31mX": 1}})
    ran = content.run("preview", "ling3-flash/run")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.split("\n")
    place = "experiments/ling3-flash/run.yml:9"
    assert f"vllm_additional_config.a\\n::error::pwned: 1  # {place}" in lines
    assert f"vllm_additional_config.\\x1b[31mX: 1  # {place}" in lines
    assert not [line for line in lines if line.startswith("::") or not line.isprintable()]


def test_a_secret_that_the_policy_lets_pass_is_not_shown(content: Content) -> None:
    secret = "abcdef0123456789"
    content.experiment(maxtext={"hf_access_token": secret}, deploy={"ENV": {"HF_TOKEN": f"{secret}A"}})
    content.write("presets/policy.yml", "checks:\n  secret: warning\n")
    ran = content.run("preview", "ling3-flash/run")
    assert secret not in ran.out + ran.err
