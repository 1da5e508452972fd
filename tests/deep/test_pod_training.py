"""The real trainer, started by the pod's own entry on CPU with tiny sizes: training, exit codes, SIGTERM.

These tests share the machine's one coordinator port, which MaxText fixes to 1234 on CPU: never run two of them at
once (xdist: one group).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.deep, pytest.mark.xdist_group("trainer")]

ROOT = Path(__file__).parents[2]
SECONDS = 400
FACTS = {
    "model": "qwen3-0.6b",
    "maxtext_version": "0.2.5",
    "maxtext_mismatch": "error",
    "trainer": "maxtext.trainers.pre_train.train",
    "derivations": [],
    "warmup_iters": None,
    "load_parameters_path": None,
    "set_by_person": [],
    "run_name_explicit": False,
    "logical_axis_rules": [["norm", ["fsdp"]]],
}
RUN = """\
base_config: base.yml
model_name: qwen3-0.6b
run_name: demo
hardware: cpu
skip_jax_distributed_system: true
dataset_type: synthetic
enable_checkpointing: false
enable_goodput_recording: false
attention: dot_product
base_emb_dim: 64
base_mlp_dim: 128
base_num_decoder_layers: 2
base_num_query_heads: 4
base_num_kv_heads: 2
head_dim: 16
vocab_size: 256
max_target_length: 64
per_device_batch_size: 2
steps: 3
"""
ENVIRONMENT = {
    "DECOUPLE_GCLOUD": "TRUE",
    "JAX_PLATFORMS": "cpu",
    "RUN_NAME": "demo",
    "LIBTPU_INIT_ARGS": "--xla_tpu_demo=true",
    "JOB_INDEX": "0",
    "JAX_COORDINATOR_ADDRESS": "127.0.0.1",
}


@dataclass
class Container:
    """The pod of one run, with the real MaxText as its image's environment."""

    root: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *words: str, index: int = 0, processes: int = 1) -> subprocess.Popen[str]:
        command = ["bash", str(self.root / "etc/maxtext-pod/bootstrap.sh"), "--mode", "image", "--"]
        numbers = {
            "JOB_COMPLETION_INDEX": str(index),
            "PROCESSES_IN_JOB": str(processes),
            "JAX_PROCESS_COUNT": str(processes),
        }
        process = subprocess.Popen(
            [*command, str(self.root / "etc/maxtext/run.yml"), f"base_output_directory={self.root}/out", *words],
            env={**os.environ, **ENVIRONMENT, **numbers, "POD_ROOT": str(self.root)},
            cwd=self.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *words: str) -> tuple[int, str]:
        return self.start(*words).wait(SECONDS), self.log()

    def log(self, index: int = 0) -> str:
        return (self.root / f"var/log/maxtext/demo-{index}.log").read_text()

    def terminate_after_step(self, process: subprocess.Popen[str], step: int) -> tuple[int, str]:
        deadline = time.monotonic() + SECONDS
        path = self.root / "var/log/maxtext/demo-0.log"
        while not (path.exists() and f"completed step: {step}," in path.read_text()):
            assert process.poll() is None, self.log()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        return process.wait(60), self.log()


@pytest.fixture
def container(maxtext_python: Path, tmp_path: Path) -> Iterator[Container]:
    container = Container(tmp_path)
    scripts = tmp_path / "etc/maxtext-pod"
    scripts.mkdir(parents=True)
    for name in ("bootstrap.sh", "run_pretrain.py", "derivations.py", "start_trainer.py"):
        (scripts / name).write_bytes((ROOT / "pod" / name).read_bytes())
    activate = tmp_path / "opt/maxtext_venv/bin/activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(f'export PATH="{maxtext_python.parent}:$PATH"\n')
    (tmp_path / "etc/maxtext").mkdir()
    (tmp_path / "etc/maxtext/run.yml").write_text(RUN)
    (tmp_path / "etc/maxtext/derive.json").write_text(json.dumps(FACTS))
    yield container
    for process in container.started:
        process.terminate()
        process.wait(60)


def losses(log: str) -> dict[int, float]:
    found = re.findall(r"completed step: (\d+), .*?loss: ([0-9.]+)", log)
    return {int(step): float(loss) for step, loss in found}


def test_three_steps(container: Container) -> None:
    code, log = container.run()
    assert code == 0, log
    assert sorted(losses(log)) == [0, 1, 2]
    assert all(1 < loss < 100 for loss in losses(log).values())
    assert "run_pretrain: D6 base_emb_dim=64  (the model file sets 1024, and would win over run.yml)\n" in log
    assert re.search(r"Config param base_emb_dim: 64$", log, re.MULTILINE)
    assert log.endswith("bootstrap: the trainer ended with exit code 0\n")


def test_two_processes(container: Container) -> None:
    words = ["skip_jax_distributed_system=false"]
    first, second = (container.start(*words, index=index, processes=2) for index in (0, 1))
    assert (first.wait(SECONDS), second.wait(SECONDS)) == (0, 0), container.log() + container.log(1)
    assert sorted(losses(container.log())) == [0, 1, 2]
    assert losses(container.log()) == losses(container.log(1))
    assert "total_weights: 256," in container.log()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("steps=many", "Input should be a valid integer"),
        ("no_such_key=1", "'no_such_key' not in "),
        ("ici_data_parallelism=3", "Unspecified value unable to be determined"),
    ],
)
def test_configuration_errors_end_with_2(container: Container, word: str, message: str) -> None:
    code, log = container.run(word)
    assert code == 2, log
    assert message in log
    assert log.endswith("bootstrap: the trainer ended with exit code 2\n")


def test_a_trainer_that_cannot_start_does_not_end_with_2(container: Container) -> None:
    (container.root / "opt/maxtext_venv/bin/activate").write_text("exit 2\n")
    code, log = container.run()
    assert code == 75
    assert log.endswith("exit code 2); the trainer was not started\n")


def test_sigterm_ends_a_trainer_without_checkpoints(container: Container) -> None:
    code, log = container.terminate_after_step(container.start("steps=1000000"), 3)
    assert code == 143
    assert log.endswith("bootstrap: the trainer ended with exit code 143\n")


def test_sigterm_lets_the_trainer_save_a_checkpoint(container: Container) -> None:
    words = ["steps=1000000", "skip_jax_distributed_system=false", "enable_checkpointing=true"]
    process = container.start(*words, "enable_autocheckpoint=true", "checkpoint_period=1000000")
    code, log = container.terminate_after_step(process, 3)
    assert "Training stopped: Job received termination signal (SIGTERM)." in log
    last = max(losses(log))
    saved = {int(path.name) for path in container.root.glob("out/demo/checkpoints/*")}
    assert max(saved) >= last - 1 > 0
    assert code == 143
    assert log.endswith("bootstrap: ended by a signal (exit code 0): the run is not finished\n")


# ---- the shim alone, over many configurations in one process ----

SHIM_CASES = """\
import json, sys
sys.path.insert(0, sys.argv[1])
import start_trainer
start_trainer._guard("maxtext")
from maxtext.configs import pyconfig
from maxtext.utils import maxtext_utils, train_utils
for line in sys.stdin:
    try:
        config = pyconfig.initialize(["", *json.loads(line)])
        train_utils.validate_train_config(config)
        maxtext_utils.create_device_mesh(config)
        print("ok", flush=True)
    except BaseException as error:
        print(type(error).__name__, getattr(error, "code", None), flush=True)
"""


def test_which_errors_the_shim_turns_into_2(maxtext_python: Path, container: Container) -> None:
    tiny = [f"{key}={value}" for key, value in (line.split(": ") for line in RUN.splitlines()[1:])]
    run_yml = container.root / "etc/maxtext/run.yml"
    start: list[Any] = [str(run_yml), *tiny, "override_model_config=true", "log_config=false"]
    cases = {
        "nothing": [],
        "unknown key": ["no_such_key=1"],
        "wrong type": ["steps=many"],
        "wrong enum": ["remat_policy=[1]"],
        "null": ["steps=null"],
        "no positive steps": ["steps=-1"],
        "product above the devices": ["ici_fsdp_parallelism=2"],
        "zero": ["ici_data_parallelism=0"],
        "two free axes": ["ici_data_parallelism=-1"],
        "cross-key rule": ["load_full_state_path=gs://b/f", "load_parameters_path=gs://b/p"],
        "twice without permission": ["override_model_config=false"],
    }
    environment = {**os.environ, **ENVIRONMENT}
    result = subprocess.run(
        [str(maxtext_python), "-c", SHIM_CASES, str(ROOT / "pod")],
        input="".join(json.dumps([*start, *words]) + "\n" for words in cases.values()),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    answers = [line for line in result.stdout.splitlines() if line.startswith(("ok", "SystemExit"))]
    assert dict(zip(cases, answers, strict=True)) == {
        name: "ok" if name == "nothing" else "SystemExit 2" for name in cases
    }


def test_no_coordinator_is_no_configuration_error(maxtext_python: Path, container: Container) -> None:
    """A coordinator that does not answer is the cluster's failure: a restart may cure it."""
    environment = {**os.environ, **ENVIRONMENT}  # without the numbers the launcher sets
    environment.pop("JAX_PROCESS_COUNT", None)
    words = [str(container.root / "etc/maxtext/run.yml"), "skip_jax_distributed_system=false"]
    result = subprocess.run(
        [str(maxtext_python), "-c", SHIM_CASES, str(ROOT / "pod")],
        input=json.dumps([*words, "log_config=false"]) + "\n",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == "TypeError None"
