"""Write N realistic experiments over a copy of the shipped presets: python -m bench.generate N DIR.

The same N gives the same files. They vary as real ones do: models, chips, environments, image and source mode, sweeps
over one value, batches of ENV and compiler flags, long and short files, comments.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEED = 20260601


@dataclass(frozen=True, slots=True)
class Preset:
    """A line of presets to build on; `global_batch` in sequences."""

    model: str
    chips: int
    context: str
    global_batch: int
    image: str
    version: str | None = None


PRESETS = (
    *(Preset("ling3-flash", chips, "8k", 8192, "main-{hash}-20260609") for chips in (256, 512, 1024, 2048)),
    Preset("ling3-flash", 64, "8k", 256, "main-{hash}-20260609"),
    Preset("deepseek3-671b", 128, "4k", 2048, "registry.example.com/maxtext/maxtext-runner:{hash}"),
    Preset("llama3.1-70b", 64, "8k", 256, "maxtext-tutorial-{hash}"),
    Preset("llama3.1-70b", 64, "8k", 256, "maxtext-0.2.5-{hash}", "0.2.5"),
    Preset("qwen3-0.6b", 64, "4k", 128, "maxtext-0.2.5"),
)
WEIGHTS = (14, 14, 14, 8, 12, 10, 10, 8, 10)

SWEEPS: dict[str, tuple[str, ...]] = {
    "learning_rate": ("1.0e-4", "2.0e-4", "3.0e-4", "4.5e-4", "6.0e-4", "1.0e-3"),
    "adam_b2": ("0.9", "0.95", "0.98", "0.99", "0.995", "0.999"),
    "adam_weight_decay": ("0.0", "0.01", "0.033", "0.05", "0.1", "0.2"),
    "gradient_clipping_threshold": ("0.3", "0.5", "1.0", "1.5", "2.0", "5.0"),
    "init_weights_seed": ("0", "1", "2", "3", "4", "5"),
}
KNOBS: dict[str, tuple[str, ...]] = {
    "adam_b1": ("0.9", "0.92"),
    "data_shuffle_seed": ("0", "17", "4711"),
    "dropout_rate": ("0.0", "0.1"),
    "enable_dropout": ("false", "true"),
    "eval_interval": ("-1", "500", "2000"),
    "eval_steps": ("10", "50"),
    "checkpoint_period": ("1000", "5000"),
    "log_config": ("true", "false"),
    "log_period": ("10", "100"),
    "gcs_metrics": ("false", "true"),
    "profiler_steps": ("2", "5"),
    "save_config_to_gcs": ("true", "false"),
    "skip_first_n_steps_for_profiler": ("3", "5"),
    "weight_dtype": ("bfloat16", "float32"),
}
ENV = {
    "JAX_TRACEBACK_FILTERING": "off",
    "TPU_STDERR_LOG_LEVEL": "0",
    "GRPC_VERBOSITY": "ERROR",
    "EXPERIMENT_TAG": "sweep",
}
FLAGS = {
    "xla_tpu_scoped_vmem_limit_kib": ("49152", "61440", "65536", "98304"),
    "xla_tpu_enable_all_experimental_scheduler_features": ("true", "false"),
    "xla_tpu_overlap_compute_collective_tc": ("true", "false"),
    "xla_tpu_enable_async_collective_fusion": ("true", "false"),
    "xla_latency_hiding_scheduler_rerun": ("0", "1", "2"),
    "xla_tpu_use_enhanced_launch_barrier": ("true",),
}


def generate(count: int, folder: Path) -> None:
    """Fill `folder`, which must not exist, with presets, datasets and `count` experiments."""
    for layer in ("presets", "datasets"):
        shutil.copytree(ROOT / layer, folder / layer)
    for name, text in experiments(count):
        path = folder / "experiments" / f"{name}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def experiments(count: int) -> Iterator[tuple[str, str]]:
    """Yield (<model>/<name>, text) of `count` experiments, sweep by sweep."""
    rng = random.Random(SEED)
    made = 0
    while made < count:
        (preset,) = rng.choices(PRESETS, WEIGHTS)
        key, values = rng.choice(sorted(SWEEPS.items()))
        chosen = rng.sample(values, rng.choice((1, 1, 2, 4, 6)))
        base = _Experiment(preset, rng)
        for value in sorted(chosen)[: count - made]:
            yield f"{preset.model}/e{made:04}-{_short(key)}-{_short(value)}", base.text(key, value)
            made += 1


def _short(text: str) -> str:
    return text.replace(".", "p").replace("-", "m").replace("_", "")[:12]


class _Experiment:
    """What the experiments of one sweep have in common."""

    def __init__(self, preset: Preset, rng: random.Random) -> None:
        self.preset = preset
        self.environment = rng.choice(("test", "test", "prod"))
        self.source = self.environment == "test" and preset.model == "ling3-flash" and rng.random() < 0.4
        self.hash = f"{rng.getrandbits(28):07x}"
        self.dataset = rng.choice(("fin_35p", "align_smoke", None)) if preset.model == "ling3-flash" else None
        self.steps = rng.choice((5000, 20000, 50000, 120000))
        self.knobs = {key: rng.choice(KNOBS[key]) for key in sorted(rng.sample(sorted(KNOBS), rng.randrange(9)))}
        self.env = dict(rng.sample(sorted(ENV.items()), rng.choice((0, 0, 1, 3))))
        self.flags = {key: rng.choice(FLAGS[key]) for key in rng.sample(sorted(FLAGS), rng.choice((0, 0, 2, 5)))}
        self.number = rng.randrange(1000)

    def text(self, key: str, value: str) -> str:
        blocks = (self._launch(), self._deploy(), self._maxtext(key, value), self._checks())
        return "\n".join(line for block in blocks for line in block) + "\n"

    def _launch(self) -> Iterator[str]:
        yield f"# Question {self.number}: does it still converge? Compare with the run before in the same group."
        yield "launch:"
        yield f"  model: {self.preset.model}"
        yield f"  chips: {self.preset.chips}"
        yield f"  context: {self.preset.context}"
        yield f"  environment: {self.environment}"
        yield "  owner: pretrain-team"
        if self.source:
            yield f"  branch: feature/question-{self.number}"
        else:
            yield f"  image: {self.preset.image.format(hash=self.hash)}"
        if self.environment == "prod":
            yield "  supersede: stop"

    def _deploy(self) -> Iterator[str]:
        if not (self.dataset or self.env or self.flags or self.preset.version):
            return
        yield "deploy:"
        if self.preset.version:
            yield f"  MAXTEXT_VERSION: {self.preset.version}"
        if self.dataset:
            yield f"  DATASETS_YAML: {self.dataset}"
        for name, entries in (("ENV", self.env), ("LIBTPU_INIT_ARGS", self.flags)):
            if entries:
                yield f"  {name}:"
                yield from (f'    {key}: "{value}"' for key, value in entries.items())

    def _maxtext(self, key: str, value: str) -> Iterator[str]:
        yield "maxtext:"
        yield f"  {key}: {value}  # the swept value"
        yield f"  steps: {self.steps}"
        yield from (f"  {knob}: {text}" for knob, text in self.knobs.items() if knob != key)

    def _checks(self) -> Iterator[str]:
        yield "checks:"
        yield f"  global_batch: {self.preset.global_batch}"


if __name__ == "__main__":
    generate(int(sys.argv[1]), Path(sys.argv[2]))
