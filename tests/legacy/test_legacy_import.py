"""Imports: recipes, launchers, argv and manifests become short experiments that equal them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from content import run
from legacy_content import ROOT

RECIPES = ROOT / "tests/legacy/recipes"
RECORDINGS = ROOT / "tests/legacy/reconstruction/recordings"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "content"
    for name in ("presets", "datasets"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def recipe(folder: Path, name: str, changes: dict[str, Any], **arguments: str) -> Path:
    """Write a recipe that nobody has seen yet: a shipped one with other values."""
    data = json.loads((RECIPES / "llama3.1-70b--8k-bf16-tpu7x-4x4x4.json").read_bytes()) | changes
    data["maxtext_arguments"] |= arguments
    data["launcher_options"]["--device-type"] = f"tpu7x-{data['topology']}"
    path = folder / name
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def experiment(root: Path, name: str) -> list[str]:
    return (root / f"experiments/{name}.yml").read_text(encoding="utf-8").splitlines()


def test_a_shipped_recipe_comes_out_as_short_as_the_shipped_experiment(root: Path) -> None:
    source = RECIPES / "llama3.1-70b--8k-fp8-tpu7x-4x4x4.json"
    code, out, err = run(root, "import", str(source), "--name", "again", "--owner", "performance-team")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == (
        "llama3.1-70b/again: equal to recordings/llama3.1-70b--8k-fp8-tpu7x-4x4x4.json (65 values compared, 9 waived)"
    )
    made = experiment(root, "llama3.1-70b/again")
    shipped = (ROOT / "experiments/llama3.1-70b/llama70b-8k-fp8-64.yml").read_text(encoding="utf-8").splitlines()
    left = {line.partition("  #")[0] for line in shipped} - {line.partition("  #")[0] for line in made[1:]}
    defaults = {
        "  sa_block_kv_compute: 512",
        "  sa_k_layout: HEAD_DIM_MINOR",
    }  # MaxText's own, which an import leaves out
    assert {line for line in left if not line.startswith("#")} == defaults
    assert run(root, "legacy", "check").code == 0


def test_a_recorded_launcher_comes_back_as_the_experiment(root: Path) -> None:
    source = RECORDINGS / "submit_ling3_flash_1024chips_docker_antdata_job.json"
    code, _, err = run(root, "import", str(source), "--name", "back", "--owner", "pretrain-team")
    assert (code, err) == (0, "")
    assert experiment(root, "ling3-flash/back")[1:] == [
        "launch:",
        "  model: ling3-flash",
        "  chips: 1024",
        "  context: 8k",
        "  environment: prod",
        "  owner: pretrain-team",
        "  image: registry.example.com/ling3/maxtext-tpu-pretrain:main-abc1234-20260609",
        "deploy:",
        "  DATASETS_YAML: fin_35p",
        "maxtext:",
        "  learning_rate: 0.0003",
        "  steps: 50000",
        "checks:",
        "  global_batch: 8192",
    ]


def test_a_new_recipe_of_a_known_model_on_a_new_size(root: Path, tmp_path: Path) -> None:
    path = recipe(tmp_path, "new.json", {"topology": "8x8x8"}, learning_rate="1e-4")
    assert run(root, "import", str(path)).code == 0
    made = experiment(root, "llama3.1-70b/new")
    assert "  chips: 512" in made
    assert "  learning_rate: 0.0001" in made
    assert (root / "presets/llama3.1-70b/topology/512chips/8k.yml").is_file()
    assert run(root, "legacy", "check").code == 0


@pytest.mark.parametrize(("model", "known"), [("mixtral-8x7b", True), ("nova-9b", False)])
def test_a_new_recipe_of_a_model_without_presets(root: Path, tmp_path: Path, model: str, known: bool) -> None:
    path = recipe(tmp_path, "new.json", {"recipe": f"{model}/8k"}, model_name=model)
    code, out, err = run(root, "import", str(path))
    assert (code, err) == (0, "")
    assert "wrote presets/" + model + "/topology/64chips/8k.yml" in out
    assert (root / f"presets/{model}/extensions.yml").is_file() is not known
    assert len(experiment(root, f"{model}/new")) == 10
    assert run(root, "legacy", "check").code == 0
    assert run(root, "render", f"{model}/new").code == 0


def test_an_unknown_pin_is_read_with_the_newest_that_fits(root: Path, tmp_path: Path) -> None:
    path = recipe(tmp_path, "new.json", {"maxtext_pins_in_readme": ["maxtext-tutorial-v9.9.0"]})
    code, _, err = run(root, "import", str(path))
    assert code == 0
    assert err.startswith("note: unknown MaxText version maxtext-tutorial-v9.9.0; known: ")
    assert err.endswith("; read with v1.5.0, which knows most of its keys\n")
    assert run(root, "legacy", "check").code == 0


def test_a_dead_key_is_reported_with_the_fix(root: Path) -> None:
    code, _, err = run(root, "import", str(RECIPES / "llama3.1-70b--128k-bf16-tpu7x-4x8x8.json"))
    assert code == 0
    assert err == (
        "note: output_dir is left out: MaxText a0fceb5 has no such key "
        "(did you mean output_dim_for_audio or base_output_directory?); delete it from the launcher\n"
    )
    assert not any(
        "output_dir" in line for line in experiment(root, "llama3.1-70b/llama3.1-70b--128k-bf16-tpu7x-4x8x8")
    )


def test_an_argv_needs_a_topology(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "command.txt"
    arguments = "model_name=qwen3-0.6b per_device_batch_size=1 steps=10 run_name=x max_target_length=4096"
    start = "python3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml"
    path.write_text(f"LIBTPU_INIT_ARGS='--a=1 --b' JAX_PLATFORMS=tpu,cpu {start} \\\n  {arguments}\n", encoding="utf-8")
    code, _, err = run(root, "import", str(path))
    assert (code, err) == (1, f"{path}: no topology None of tpu7x\n    say which: --topology, such as 4x4x4\n")
    assert run(root, "import", str(path), "--topology", "4x4x4").code == 0
    made = experiment(root, "qwen3-0.6b/command")
    assert made[made.index("deploy:") : made.index("checks:")] == [
        "deploy:",
        "  ENV:",
        '    JAX_PLATFORMS: "tpu,cpu"',
        "  LIBTPU_INIT_ARGS:",
        '    a: "1"',
        '    b: "true"',
        "maxtext:",
        "  enable_checkpointing: !remove",
        "  ici_fsdp_parallelism: -1",
        "  steps: 10",
    ]


def test_our_own_manifests_come_back(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.yml"
    path.write_text(run(ROOT, "manifests", "ling3-flash/fin35p-256").out, encoding="utf-8")
    code, _, err = run(root, "import", str(path), "--name", "fin35p-256", "--owner", "pretrain-team")
    assert (code, err) == (0, "")
    made = experiment(root, "ling3-flash/fin35p-256")
    assert made[8:] == ["deploy:", "  DATASETS_YAML: fin_35p", "checks:", "  global_batch: 8192"]


def test_a_manifest_of_others_is_run_to_see_what_it_starts(root: Path, tmp_path: Path) -> None:
    data = json.loads((RECORDINGS / "submit_ling3_flash_1024chips_docker_antdata_job.json").read_text(encoding="utf-8"))
    job_set = next(item for item in data["objects"] if item["kind"] == "JobSet")
    container = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    start = "python3 -m maxtext.trainers.pre_train.train base.yml model_name=ling3-flash"
    container["command"][2] = f"set -e\nsource /opt/maxtext_venv/bin/activate\n{start} steps=$STEPS dataset_type=lazy\n"
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job_set), encoding="utf-8")
    code, out, _ = run(root, "import", str(path), "--maxtext-version", "0.2.5")
    assert code == 1
    assert out.splitlines() == [  # a fork's default is not known, and every other key could be written or removed
        "    maxtext.ici_fsdp_parallelism: recorded (absent), ours -1",
        "ling3-flash/job: NOT EQUAL (50 values compared, 8 waived): nothing is written; "
        "--force makes waivers of the differences",
    ]
    assert not (root / "experiments").exists()


def test_what_differs_writes_nothing_unless_forced(root: Path) -> None:
    source = RECIPES / "deepseek3-671b--4k-bf16-tpu7x-4x8x8-gcs.json"
    code, out, _ = run(root, "import", str(source), "--name", "gcs")
    assert code == 1
    assert out.splitlines() == [
        "    job.before: recorded cd /app && pip install --no-deps -e ., ours (absent)",
        "    job.image_is_base: recorded true, ours (absent)",
        "    job.storage: recorded dataset-gcsfuse-volume, ours (absent)",
        "    program.module: recorded src.maxtext.trainers.pre_train.train, ours maxtext.trainers.pre_train.train",
        "deepseek3-671b/gcs: NOT EQUAL (101 values compared, 7 waived): nothing is written; "
        "--force makes waivers of the differences",
    ]
    assert not (root / "experiments").exists()
    assert run(root, "import", str(source), "--name", "gcs", "--force").code == 0
    checks = (root / "tests/legacy/checks.yml").read_text(encoding="utf-8")
    assert checks.count('kind: "forced"') == 4
    assert run(root, "legacy", "check").code == 0


def test_another_program_and_an_existing_name_are_refused(root: Path) -> None:
    code, _, err = run(root, "import", str(RECIPES / "wan2.1-14b--bf16-tpu7x-4x4x4.json"))
    assert code == 1
    assert "starts -m src.maxdiffusion.train_wan, which is not MaxText's pre-training" in err
    source = str(RECIPES / "gemma4-2b--8k-bf16-tpu7x-4x4x4.json")
    assert run(root, "import", source, "--name", "one").code == 0
    code, _, err = run(root, "import", source, "--name", "one")
    assert (code, err) == (1, "experiments/gemma4-e2b/one.yml: exists: choose another name with --name\n")


@pytest.mark.parametrize(
    "text", ["{}", "[1]", "not json", '{"recipe": 1, "launcher_options": {}}', '{"launcher": 1, "pod": {}}']
)
def test_no_form_ends_in_a_traceback(root: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    code, _, err = run(root, "import", str(path))
    assert code == 1
    assert str(path) in err
