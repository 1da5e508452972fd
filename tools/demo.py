"""The life of one run on a simulated cluster: experiment, render, report, merge, 256 hosts running, end, clean-up.

    python -m tools.demo

A real control plane (etcd, kube-apiserver, JobSet) runs on this machine for it, with simulated nodes; what is not
built yet is built first. Everything lives in a temporary folder and has ended when the demo ends, also after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from click import ClickException
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax

from tests.cluster.build import build, missing
from tests.cluster.merges import APPLY, MODEL, Merges, make_merges
from tests.cluster.plane import control_plane
from tests.cluster.processes import StartError
from tests.cluster.sandbox import Sandbox, sandbox

TOPOLOGY, CHIPS, HOSTS = "8x8x16", 1024, 256
NAME = "first-steps"
EXPERIMENT = f"""\
# Does the new learning rate hold on 256 hosts?
launch:
  model: {MODEL}
  chips: {CHIPS}
  context: 4k
  environment: test
  owner: research
  image: maxtext-0.2.5
maxtext:
  learning_rate: 2.0e-4
"""
PATIENCE = 300
"""Seconds that each step on the cluster may take."""


class Stage:
    """Tells the story on a terminal, in numbered steps, and shows what takes time."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._step = 0

    def step(self, words: str) -> None:
        """Begin a step."""
        self._step += 1
        self.console.rule(f"[bold]{self._step}. {words}", align="left")

    def run(self, merges: Merges, *words: str) -> None:
        """Show a command of the renderer and what it prints. Raises SystemExit if it fails."""
        self.console.print(f"[bold cyan]$ renderer {' '.join(words)}")
        ended = merges.renderer(*words)
        self.console.out(ended.text.rstrip("\n"), highlight=False)
        if ended.code:
            raise SystemExit(f"renderer {words[0]} ended with {ended.code}")

    def wait(self, words: str, total: int, count: Callable[[], int]) -> None:
        """Show how `count` grows to `total`. Raises SystemExit if it takes too long."""
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        end = time.monotonic() + PATIENCE
        with Progress(*columns, TimeElapsedColumn(), console=self.console) as progress:
            bar = progress.add_task(words, total=total)
            while (found := count()) < total:
                progress.update(bar, completed=found)
                if time.monotonic() > end:
                    raise SystemExit(f"{words}: {found} of {total} after {PATIENCE} s")
                time.sleep(0.5)
            progress.update(bar, completed=total)


def prepare(stage: Stage) -> None:
    """Build what is missing of the control plane."""
    stage.step("A control plane")
    if units := missing():
        names = ", ".join(unit.name for unit in units)
        stage.console.print(f"To be built from source, once: {names}. All of it takes 11 to 20 minutes on two cores.")
    else:
        stage.console.print("It is built already. The demo takes about a minute.")
    build()


def propose(stage: Stage, merges: Merges) -> None:
    """Write an experiment on a branch, render it, and report what its merge would do."""
    stage.step("An experiment, and what it renders to")
    merges.git("checkout", "--quiet", "-b", NAME)
    path = merges.content.write(f"experiments/{MODEL}/{NAME}.yml", EXPERIMENT)
    label = path.relative_to(merges.content.root).as_posix()
    stage.console.print(Panel(Syntax(EXPERIMENT, "yaml", background_color="default"), title=label, title_align="left"))
    stage.run(merges, "render", label)
    merges.render([path])
    merges.commit()
    stage.step("What the pull request's report says")
    stage.run(merges, "report", "--base", "main")


def merge(stage: Stage, merges: Merges) -> None:
    """Merge the branch and launch what it brings."""
    stage.step("The merge launches it")
    merges.git("checkout", "--quiet", "main")
    merges.git("merge", "--quiet", "--no-ff", "--message", f"Merge pull request #1 from research/{NAME}", NAME)
    stage.run(merges, *APPLY)


def watch(stage: Stage, merges: Merges, where: Sandbox) -> None:
    """See all hosts run, end, and go; nothing starts them again."""
    stage.step(f"{HOSTS} hosts run")
    name = merges.names[NAME]
    stage.wait("pods running", HOSTS, lambda: _in_phase(where, name, "Running"))
    stage.run(merges, "status")
    stage.step("It finishes, and is removed after its time to live")
    for pod in where.pods(name):
        where.end(pod, 0)
    stage.wait("JobSet completed", 1, lambda: int(_completed(where, name)))
    stage.wait("JobSet removed", 1, lambda: int(not where.jobsets()))
    stage.step("Merging again does not start it again")
    merges.commit()
    stage.run(merges, *APPLY)
    stage.console.print(f"JobSets in the namespace: {len(where.jobsets())}")


def _in_phase(where: Sandbox, name: str, phase: str) -> int:
    return sum(pod["status"]["phase"] == phase for pod in where.pods(name))


def _completed(where: Sandbox, name: str) -> bool:
    return not where.jobsets() or where.condition(name, "Completed") is not None


def main() -> int:
    """Tell the whole story and return 0."""
    stage = Stage()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        prepare(stage)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="demo-")))
        with stage.console.status("starting it"):
            plane = stack.enter_context(control_plane(folder))
            where = stack.enter_context(sandbox(plane))
            where.pool(TOPOLOGY)
        stage.console.print(f"Ready after {plane.seconds:.0f} s, with {HOSTS} simulated nodes of a {TOPOLOGY} slice.")
        merges = make_merges(folder / "repository", plane, where.namespace, {"TTL_SECONDS": 10})
        merges.adopt()
        propose(stage, merges)
        merge(stage, merges)
        watch(stage, merges, where)
        stage.step("Cleaned up")
    stage.console.print("The control plane has ended, and its folder is gone.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (ClickException, StartError) as error:  # of the build, of a program
        sys.exit(f"demo: {error}")
