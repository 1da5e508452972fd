"""A repository to test in: shipped presets and datasets in their own folder, and the experiments a test writes."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer import checks
from renderer.cli import main
from renderer.configure import Configuration, Configurator
from renderer.layers import Repository
from renderer.manifest_yaml import load
from renderer.outputs import Rendered
from renderer.pipeline import render_paths
from renderer.problem import Problem
from renderer.scalars import quote, write

SHIPPED = Path(__file__).parents[1]
"""The repository's own content: presets/, datasets/, experiments/, rendered/."""

IDENTITY = "00000000-0000-4000-8000-000000000002"
"""The identity of the test environment's cluster, where a test asks for no other."""

_CLUSTERS = """\
# The tests' own, since the shipped file is there to name real clusters.
clusters:
  prod-tpu7x:
    project: example-project
    region: us-central1
    zone: us-central1-c
    cluster: tpu-prod
    identity: 00000000-0000-4000-8000-000000000001
    node_pool: "{accelerator}-{topology}"
    reservations:
      very-high: tpu7x-reserved
  test-tpu7x:
    project: example-project
    region: us-central1
    zone: us-central1-c
    cluster: tpu-test
    identity: IDENTITY
    node_pool: "{accelerator}-{topology}"

environments:
  prod: prod-tpu7x
  test: test-tpu7x
"""


def clusters(identity: str = IDENTITY) -> str:
    """Return a presets/clusters.yml whose test environment is on the cluster of this identity."""
    return _CLUSTERS.replace("IDENTITY", identity)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command line came to."""

    code: int
    out: str
    err: str

    def __iter__(self) -> Any:
        return iter((self.code, self.out, self.err))


def run(root: Path, *arguments: str) -> Ran:
    """Run `renderer --root ROOT ARGUMENTS` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["--root", str(root), *arguments])
    return Ran(code, out.getvalue(), err.getvalue())


def tree(root: Path, folder: str = "rendered") -> dict[str, bytes]:
    """Return every file below `folder` by its path under `root`."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }


@dataclass(frozen=True, slots=True)
class Content:
    """A repository in a folder of its own."""

    root: Path

    def run(self, *arguments: str) -> Ran:
        """Run `renderer ARGUMENTS` in it."""
        return run(self.root, *arguments)

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file and return its path."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands in a file once."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        file.write_text(text.replace(old, new), encoding="utf-8")

    def ship(self, *names: str) -> list[Path]:
        """Copy shipped experiments (<model>/<name>) here, all of the models here when none is named."""
        known = [
            Path("experiments", *path.parts[-2:])
            for model in MODELS
            for path in sorted((SHIPPED / "experiments" / model).glob("*.yml"))
        ]
        chosen = [Path("experiments", f"{name}.yml") for name in names] or known
        return [self.write(path.as_posix(), (SHIPPED / path).read_bytes()) for path in chosen]

    def experiment(
        self,
        name: str = "run",
        *,
        model: str = "ling3-flash",
        launch: Mapping[str, Any] | None = None,
        deploy: Mapping[str, Any] | None = None,
        maxtext: Mapping[str, Any] | None = None,
        promises: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write experiments/<model>/<name>.yml: 64 chips in test, source mode, with these keys on top; None leaves out.

        qwen3-0.6b has only the context 4k; every text is quoted.
        """
        context = "4k" if model == "qwen3-0.6b" else "8k"
        base = {
            "model": model,
            "chips": 64,
            "context": context,
            "environment": "test",
            "owner": "team",
            "branch": "main",
        }
        chosen = {key: value for key, value in {**base, **(launch or {})}.items() if value is not None}
        data = {"launch": chosen, "deploy": deploy, "maxtext": maxtext, "checks": promises}
        lines = []
        for section, values in data.items():
            if values is not None:
                lines += [f"{section}:", *(f"  {quote(key)}: {write(value)}" for key, value in values.items())]
        return self.write(f"experiments/{model}/{name}.yml", "\n".join(lines) + "\n")

    def configure(self, path: Path) -> tuple[Configuration | None, list[Problem]]:
        """Return the configuration of an experiment, and the problems up to the merge."""
        problems: list[Problem] = []
        configurator = Configurator(Repository(self.root))
        experiment = configurator.read(path, problems)
        return configurator.configure(experiment, problems), problems

    def problems(self, path: Path) -> list[str]:
        """Return the text of every problem of an experiment up to and with level 1."""
        configuration, problems = self.configure(path)
        return [str(problem) for problem in [*problems, *(checks.check(configuration) if configuration else ())]]

    def render(self, path: Path) -> Rendered:
        """Return what an experiment renders to, in memory. Raises RefusedError."""
        return self.render_all([path])[0]

    def render_all(self, paths: Iterable[Path]) -> list[Rendered]:
        """Return what experiments render to, in memory. Raises RefusedError."""
        return [result.rendered for result in render_paths(Repository(self.root), paths).results]


MODELS = ("deepseek3-671b", "ling3-flash", "llama3.1-70b", "qwen3-0.6b")
DATASETS = ("align_smoke", "fin_35p")


def make_content(root: Path) -> Content:
    """Return a repository at `root` that holds these presets and datasets as shipped, and no policy: all is allowed."""
    content = Content(root)
    for model in MODELS:
        shutil.copytree(SHIPPED / "presets" / model, root / "presets" / model)
    content.write("presets/clusters.yml", clusters())
    (root / "datasets").mkdir()
    for dataset in DATASETS:
        shutil.copy(SHIPPED / f"datasets/{dataset}.yml", root / "datasets")
    return content


def container(rendered: Rendered) -> Any:
    """Return the trainer's container in the rendered jobset.yml."""
    return pod_spec(rendered)["containers"][0]


def pod_spec(rendered: Rendered) -> Any:
    """Return the pod's spec in the rendered jobset.yml."""
    return manifest(rendered)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def manifest(rendered: Rendered) -> Any:
    """Return the data of the rendered jobset.yml."""
    return load(rendered.files["jobset.yml"].decode())


def settled(text: str) -> str:
    """Leave out the digest of the pod's scripts and what follows from it: their code is not this template's."""
    text = re.sub(r"pod-[0-9a-f]{12}", "pod-(digest)", text)
    text = re.sub(r'digest: "[0-9a-f]{64}"', 'digest: "(digest)"', text)
    return re.sub(r"(\d+c)-[0-9a-f]{8}", r"\1-(digest)", text)
