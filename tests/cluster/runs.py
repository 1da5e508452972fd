"""Rendered runs for the tests: the shipped ones as they stand, and variants of one from the same template."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from renderer.accelerators import find_slice
from renderer.configure import Configurator
from renderer.layers import Repository
from renderer.manifests import stream
from renderer.outputs import RUN_FILES, Rendered, render
from renderer.pipeline import configure
from renderer.rendered_run import pod_scripts
from renderer.run_spec import specify

ROOT = Path(__file__).parents[2]
SMALLEST = ROOT / "experiments/qwen3-0.6b/smoke-64.yml"


def shipped() -> list[Path]:
    """Return the folders of all runs under rendered/."""
    return sorted(path.parent for path in (ROOT / "rendered").glob("*/*/*/jobset.yml"))


def manifests(folder: Path) -> str:
    """Return what `renderer manifests` prints for the run in a folder under rendered/."""
    files = {name: (folder / name).read_bytes() for name in RUN_FILES if (folder / name).is_file()}
    return stream(files, pod_scripts(Repository(ROOT), files))


def variant(topology: str = "4x4x4", **changes: Any) -> Rendered:
    """Return the smallest shipped run on `topology`, with fields of its renderer.run_spec.Run replaced."""
    problems: list[Any] = []
    configuration = configure(Configurator(Repository(ROOT)), SMALLEST, problems)
    found = find_slice("tpu7x", topology)
    assert configuration is not None, problems
    assert found is not None, topology
    run = dataclasses.replace(specify(configuration), slice=found, chips=found.chips, **changes)
    return render(run, "variant")
