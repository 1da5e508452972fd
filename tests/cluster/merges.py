"""A real git repository of runs, and `renderer apply` on it in processes of its own, as a workflow has it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from renderer.manifest_yaml import load
from tests.cluster.plane import ControlPlane
from tests.content import SHIPPED, Content, clusters
from tests.repository import MODEL, Repo

CONTROL = "renderer-control"
ENVIRONMENT = "test"
APPLY = ("apply", "--environment", ENVIRONMENT)
RENDERER = ("-m", "renderer")
HASTY = ("-m", "tests.cluster.hasty")
"""What to run Python with: the renderer, or one that waits for less and can be made wrong on purpose."""

_HOSTS = {4: ("2x2x1", 1), 1024: ("8x8x16", 256)}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code, below 0 the signal that killed it, and what it printed."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Merges(Repo):
    """The repository, whose runs live in `namespace` of the plane; `names` are the runs' object names by experiment."""

    plane: ControlPlane
    namespace: str
    names: dict[str, str] = field(default_factory=dict)
    _seeds: Iterator[int] = field(default_factory=itertools.count)

    def add(self, names: Iterable[str], *, chips: int = 4, launch: Mapping[str, str] | None = None) -> str:
        """Merge experiments, new or changed ones, each rendered with content of its own. Return the commit."""
        paths = []
        for name in names:
            given = {"chips": chips, "image": "maxtext-0.2.5", "branch": None, **(launch or {})}
            seed = {"init_weights_seed": next(self._seeds)}
            paths.append(self.content.experiment(name, model=MODEL, launch=given, maxtext=seed))
        self.render(paths)
        return self.commit()

    def render(self, paths: Iterable[Path]) -> None:
        """Render experiments, and note the names of their runs."""
        chosen = list(paths)
        ran = self.content.run("render", *map(str, chosen))
        assert ran.code == 0, ran.err
        for path in chosen:
            jobset = self.content.root / f"rendered/{ENVIRONMENT}/{MODEL}/{path.stem}/jobset.yml"
            self.names[path.stem] = load(jobset.read_text())["metadata"]["name"]

    def checkout(self, commit: str, folder: Path) -> Path:
        """Check a commit out beside, as an old workflow run that is run again has it. Return its folder."""
        self.git("worktree", "add", "--quiet", "--detach", str(folder), commit)
        return folder

    def start(
        self, *words: str, kubeconfig: Path | None = None, root: Path | None = None, program: Iterable[str] = RENDERER
    ) -> subprocess.Popen[str]:
        """Start `renderer WORDS` on the repository, or on another folder with a checkout of it."""
        variables = {"KUBECONFIG": str(kubeconfig or self.plane.kubeconfig), "PYTHONPATH": str(SHIPPED)}
        return subprocess.Popen(
            [sys.executable, *program, "--root", str(root or self.content.root), *words],
            cwd=self.content.root,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def renderer(self, *words: str) -> Ended:
        """Run `renderer WORDS` to its end, straight on the API server."""
        return finish(self.start(*words))

    def apply(self, *options: str) -> Ended:
        """Run `renderer apply`."""
        return self.renderer(*APPLY, *options)

    def adopt(self) -> None:
        """Begin: whatever the repository holds by now counts as applied."""
        ended = self.apply("--adopt")
        assert ended.code == 0, ended.text


def finish(process: subprocess.Popen[str], seconds: float = 300) -> Ended:
    """Wait for the end of a process."""
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
        raise AssertionError(f"no end after {seconds} s: {text[-3000:]}") from None
    return Ended(process.returncode, text)


def make_merges(root: Path, plane: ControlPlane, namespace: str, deploy: Mapping[str, object] | None = None) -> Merges:
    """Return a repository for runs in `namespace`, with nothing launched and an empty ledger.

    `deploy` is laid over the environment's deploy section.
    """
    merges = make_repository(root, plane, namespace, deploy)
    empty_ledger(plane)
    return merges


def make_repository(
    root: Path, plane: ControlPlane, namespace: str, deploy: Mapping[str, object] | None = None
) -> Merges:
    """Return the repository alone; whatever the plane's ledger holds stays there."""
    content = Content(root)
    content.write(f"presets/{MODEL}/model.yml", (SHIPPED / f"presets/{MODEL}/model.yml").read_bytes())
    for chips in _HOSTS:
        content.write(f"presets/{MODEL}/topology/{chips}chips/4k.yml", _topology(chips))
    content.write(f"presets/{MODEL}/environment/{ENVIRONMENT}.yml", _environment(namespace, deploy or {}))
    identity = plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    content.write("presets/clusters.yml", clusters(identity))
    merges = Merges(content, plane, namespace)
    merges.init()
    return merges


def empty_ledger(plane: ControlPlane) -> None:
    """Forget all runs: the control namespace is there, and empty."""
    if not plane.api.exists(f"/api/v1/namespaces/{CONTROL}"):
        plane.api.create("/api/v1/namespaces", {"metadata": {"name": CONTROL}})
    plane.api.delete(f"/api/v1/namespaces/{CONTROL}/configmaps")
    plane.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/{CONTROL}/leases")


def _topology(chips: int) -> str:
    topology, hosts = _HOSTS[chips]
    return (
        f"deploy:\n  TPU_TOPOLOGY: {topology}\n  COMPLETIONS: {hosts}\n"
        f"maxtext:\n  ici_fsdp_parallelism: {2 * chips}\n  ici_data_parallelism: 1\n  ici_context_parallelism: 1\n"
        "  per_device_batch_size: 1\n  gradient_accumulation_steps: 1\n  max_target_length: 4096\n"
    )


def _environment(namespace: str, deploy: Mapping[str, object]) -> str:
    values = {"K8S_NAMESPACE": namespace, "K8S_MAX_RESTARTS": 0, "GCS_BUCKET": "example-maxtext-test", **deploy}
    lines = ["deploy:", *(f"  {key}: {value}" for key, value in values.items())]
    lines += ["maxtext:", "  base_output_directory: gs://example-maxtext-test/runs", "  steps: 20"]
    return "\n".join([*lines, "  enable_checkpointing: false", ""])
