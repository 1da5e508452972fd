"""Time `renderer apply` of 100 runs against `kubectl apply --server-side` of the same manifests: python -m bench.apply.

Both on one control plane of its own, in turns, each time in a new namespace; the control plane's programs do the same
work for both, on the same cores.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.render import RENDERER, Ran, ratio, run, show, wall
from renderer.layers import Repository
from renderer.manifests import stream
from renderer.rendered_run import pod_scripts, rendered_run
from tests.cluster.build import build, program
from tests.cluster.merges import APPLY, Merges, make_merges
from tests.cluster.plane import ControlPlane, control_plane
from tests.cluster.sandbox import sandbox

BUDGET = 3
ROUNDS = 3


def applied(plane: ControlPlane, runs: int, folder: Path) -> Ran:
    """Launch the runs as a merge does: with all its checks, the ledger, and the release of each."""
    with sandbox(plane) as found:
        found.pool("2x2x1")
        merges = make_merges(folder / found.namespace, plane, found.namespace)
        merges.adopt()
        _merge(merges, runs)
        took = run(*RENDERER, "--root", merges.content.root, *APPLY)
        assert len(found.jobsets()) == runs
        return took


def compared(plane: ControlPlane, runs: int, folder: Path) -> Ran:
    """Apply the manifests of as many runs with kubectl; what several have in common is there once."""
    with sandbox(plane) as found:
        merges = make_merges(folder / found.namespace, plane, found.namespace)
        _merge(merges, runs)
        path = folder / f"{found.namespace}.yml"
        path.write_text(manifests(merges.content.root))
        kubectl = program("kubectl")
        assert kubectl
        took = run(kubectl, "--kubeconfig", plane.kubeconfig, "apply", "--server-side", "-f", path)
        assert len(found.jobsets()) == runs
        return took


def manifests(root: Path) -> str:
    """Return every object of every run in the repository at `root`, each once."""
    repository = Repository(root)
    documents: dict[str, None] = {}
    for path in repository.experiment_paths()[0]:
        files = rendered_run(repository, f"{path.parent.name}/{path.stem}").files
        text = stream(files, pod_scripts(repository, files))
        documents.update(dict.fromkeys(document.strip("\n") for document in text.split("\n---\n")[1:]))
    return "\n---\n".join(documents) + "\n"


def _merge(merges: Merges, runs: int) -> None:
    merges.add(f"r{number:04}" for number in range(runs))


def measure(plane: ControlPlane, runs: int, folder: Path, rounds: int = ROUNDS) -> tuple[Ran, Ran]:
    """Return the fastest of some rounds of each: (renderer apply, kubectl apply). KUBECONFIG must name the plane."""
    took = [(applied(plane, runs, folder), compared(plane, runs, folder)) for _ in range(rounds)]
    ours, theirs = (min(side, key=lambda ran: ran.seconds) for side in zip(*took, strict=True))
    return ours, theirs


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args(argv).runs
    build()
    with tempfile.TemporaryDirectory(prefix="bench-apply-") as name, control_plane(Path(name)) as plane:
        os.environ["KUBECONFIG"] = str(plane.kubeconfig)
        ours, theirs = measure(plane, runs, Path(name))
    show(
        [
            wall(f"renderer apply of {runs} runs, released", ours),
            wall(f"kubectl apply --server-side of {runs} runs, held", theirs),
            ratio("  as a multiple of kubectl's time", ours, theirs, BUDGET),
        ]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
