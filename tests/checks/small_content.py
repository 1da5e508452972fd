from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from renderer import validation
from renderer.configure import Configuration, Configurator
from renderer.layers import Repository
from renderer.problem import Problem

MODEL = """\
deploy:
  MAXTEXT_VERSION: 0.2.5
  IMAGE_REPOSITORY: registry.example.com/maxtext
  GIT_REPOSITORY: github.com/AI-Hypercomputer/maxtext.git
maxtext:
  dataset_type: synthetic
  opt_type: adamw
"""
TOPOLOGY = """\
deploy:
  TPU_TOPOLOGY: 4x4x4
  COMPLETIONS: 16
maxtext:
  ici_fsdp_parallelism: 128
  ici_tensor_parallelism: 1
  per_device_batch_size: 2
"""
ENVIRONMENT = """\
deploy:
  K8S_NAMESPACE: {environment}
  GCS_BUCKET: bucket-{environment}
maxtext:
  base_output_directory: gs://bucket-{environment}/llama2-7b
"""
LARGE = """\
deploy:
  TPU_TOPOLOGY: 8x8x16
  COMPLETIONS: 256
maxtext:
  ici_fsdp_parallelism: 2048
  per_device_batch_size: 2
"""


@dataclass(frozen=True)
class Small:
    """A small repository: one public model on 64 and on 1024 chips, in both environments."""

    root: Path

    def file(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def experiment(self, text: str = "", *, name: str = "e", launch: str = "", chips: int = 64) -> None:
        """Write experiments/llama2-7b/<name>.yml; `launch` are further lines of it, without indentation."""
        owned = "" if "branch" in launch or "image" in launch else "branch: main\n"
        keys = f"model: llama2-7b\nchips: {chips}\ncontext: 4k\nenvironment: test\n{owned}{launch}"
        if "environment" in launch:
            keys = keys.replace("environment: test\n", "", 1)
        lines = "".join(f"  {line}\n" for line in keys.splitlines())
        self.file(f"experiments/llama2-7b/{name}.yml", f"launch:\n{lines}{text}")

    def problems(self) -> list[Problem]:
        """Return the problems of all experiments."""
        repository = Repository(self.root)
        paths, strays = repository.experiment_paths()
        return validation.of_experiments(repository, paths, strays).problems

    def texts(self) -> list[str]:
        """Return the problems of all experiments as they are printed."""
        return [str(problem) for problem in self.problems()]

    def configuration(self, name: str = "e") -> Configuration:
        """Return the configuration of an experiment whose layers can be merged."""
        problems: list[Problem] = []
        configurator = Configurator(Repository(self.root))
        path = self.root / f"experiments/llama2-7b/{name}.yml"
        configuration = configurator.configure(configurator.read(path, problems), problems)
        assert configuration
        assert problems == []
        return configuration


def create(root: Path) -> Small:
    """Return the small repository, written under `root`."""
    found = Small(root)
    found.file("presets/llama2-7b/model.yml", MODEL)
    found.file("presets/llama2-7b/topology/64chips/4k.yml", TOPOLOGY)
    found.file("presets/llama2-7b/topology/1024chips/4k.yml", LARGE)
    for environment in ("prod", "test"):
        found.file(f"presets/llama2-7b/environment/{environment}.yml", ENVIRONMENT.format(environment=environment))
    return found
