"""Runs a rendered pod on this machine: its own command, files and environment, at a size a CPU can train."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.manifest_yaml import load
from renderer.outputs import config_map_data, pod_spec
from renderer.scalars import Value, write

CPU_SIZE: Mapping[str, Value] = {
    "hardware": "cpu",
    "skip_jax_distributed_system": True,
    "dataset_type": "synthetic",
    "enable_checkpointing": False,
    "enable_goodput_recording": False,
    "monitor_goodput": False,
    "use_vertex_tensorboard": False,
    "profiler": "",
    "attention": "dot_product",
    "use_tokamax_splash": False,
    "quantization": "",
    "base_emb_dim": 64,
    "base_mlp_dim": 128,
    "base_num_decoder_layers": 2,
    "base_num_query_heads": 4,
    "base_num_kv_heads": 4,
    "head_dim": 16,
    "vocab_size": 256,
    "max_target_length": 64,
    "per_device_batch_size": 2,
    "gradient_accumulation_steps": 1,
    "steps": 3,
}
"""What a smoke run changes, here and nowhere else: CPU, synthetic data, tiny sizes, no cloud, three steps."""

CPU_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "DECOUPLE_GCLOUD": "TRUE"}
GRACE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a run, laid out under `root` as its volumes would be."""

    root: Path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    axes: tuple[str, ...]


def lay_out(files: Mapping[str, bytes], scripts: Mapping[str, bytes], root: Path, python: Path | None) -> Pod:
    """Write the run's ConfigMaps under `root` and return its pod, with the container's own command and environment.

    `python` is an interpreter that has MaxText: it stands for the image's, or for what source mode would build.
    """
    container = _container(load(files["jobset.yml"].decode()))
    mounted = config_map_data(files)
    for folder, data in (("etc/maxtext", mounted), ("etc/maxtext-pod", scripts)):
        target = root / folder
        target.mkdir(parents=True)
        for name, content in data.items():
            (target / name).write_bytes(content)
    run = load(files["run.yml"].decode())
    axes = tuple(key for key in run if key.startswith(("ici_", "dcn_")) and key.endswith("_parallelism"))
    command = [word.replace("/etc/", f"{root}/etc/", 1) for word in container["command"]]
    arguments = ["--mode", "image"] if python else container["args"]
    return Pod(root, (*command, *arguments), _environment(container, root, python), axes)


def _container(jobset: Any) -> Any:
    return next(container for container in pod_spec(jobset)["containers"] if container["name"] == "trainer")


def _environment(container: Any, root: Path, python: Path | None) -> dict[str, str]:
    """Return the container's environment: replaced, not inherited, but for what finds programs."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    written = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    found = {**kept, "HOME": str(root), **written, **CPU_ENVIRONMENT, "POD_ROOT": str(root)}
    if python:
        found["PATH"] = f"{python.parent}:{found.get('PATH', os.defpath)}"
    return found


def arguments(pod: Pod, values: Sequence[str], processes: int) -> list[str]:
    """Return the arguments after the pod's command: its run.yml, the CPU's size, and KEY=VALUE of the user."""
    changes: dict[str, Value] = {
        **CPU_SIZE,
        **dict.fromkeys(pod.axes, 1),
        "base_output_directory": str(pod.root / "out"),
    }
    if processes > 1:
        changes |= {"skip_jax_distributed_system": False, "ici_data_parallelism": processes}
    given = {value.partition("=")[0] for value in values}
    sizes = [f"{key}={write(value)}" for key, value in changes.items() if key not in given]
    return ["--", f"{pod.root}/etc/maxtext/run.yml", *sizes, *values]


def _index(number: int, processes: int) -> dict[str, str]:
    """Return what Kubernetes (the index) and a CPU launcher (the rest; MaxText's initialize_jax_for_cpu) would set."""
    found = {"JOB_COMPLETION_INDEX": str(number)}
    if processes > 1:
        found |= {"JOB_INDEX": "0", "PROCESSES_IN_JOB": str(processes), "JAX_PROCESS_COUNT": str(processes)}
        found |= {"JAX_COORDINATOR_ADDRESS": "127.0.0.1"}
    return found


class Running:
    """The pod's processes. `lines` yields what they print until all have ended; `codes` are their exit codes then."""

    def __init__(self, started: Sequence[subprocess.Popen[str]]) -> None:
        self._started = started
        self._lines: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
        for number, process in enumerate(started):
            threading.Thread(target=self._read, args=(number, process), daemon=True).start()

    def _read(self, number: int, process: subprocess.Popen[str]) -> None:
        if process.stdout:
            with process.stdout:
                for line in process.stdout:
                    self._lines.put((number, line.rstrip("\n")))
        self._lines.put(None)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield (process number, line) as they come."""
        ended = 0
        while ended < len(self._started):
            item = self._lines.get()
            if item is None:
                ended += 1
            else:
                yield item

    def codes(self) -> list[int]:
        """Wait for all processes and return their exit codes."""
        return [process.wait() for process in self._started]

    def stop(self) -> None:
        """End what still runs, with time to finish."""
        for process in self._started:
            if process.poll() is None:
                process.terminate()
        for process in self._started:
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def running(pod: Pod, values: Sequence[str], processes: int) -> Iterator[Running]:
    """Start the pod's processes; whatever happens, they have ended afterwards."""
    words = [*pod.command, *arguments(pod, values, processes)]
    started = [
        subprocess.Popen(  # noqa: S603  the command that was rendered and reviewed
            words,
            env={**pod.environment, **_index(number, processes)},
            cwd=pod.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        for number in range(processes)
    ]
    group = Running(started)
    try:
        yield group
    finally:
        group.stop()
