"""`renderer smoke`: does the rendered pod train? Tried on this machine, in miniature."""

from __future__ import annotations

import re
import tempfile
from collections import deque
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from renderer.cli import OK, PROBLEMS, App
from renderer.commands.options import say
from renderer.layers import Repository
from renderer.outputs import DAMAGED
from renderer.rendered_run import RenderedRun, damaged, pod_scripts, rendered_run
from renderer.secrets import mask
from renderer.smoke import CPU_SIZE, Pod, lay_out, running
from renderer.train_log import Step, first_error, parse_step


@click.command("smoke")
@click.argument("experiment")
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="INTERPRETER",
    help="An interpreter that has MaxText; without it the pod builds or finds its own.",
)
@click.option("--processes", type=click.IntRange(1, 8), default=1, help="Hosts to run, each a process. Default 1.")
@click.option("--verbose", is_flag=True, help="Print everything the pod prints.")
@click.pass_obj
def command(
    app: App, experiment: str, values: tuple[str, ...], python: Path | None, processes: int, verbose: bool
) -> int:
    """Run EXPERIMENT's rendered pod here: its own command, files and environment, at a size a CPU can train.

    KEY=VALUE goes to MaxText on top of that size. Ends with the steps it trained, or the first error.
    """
    repository = Repository(app.root)
    run = rendered_run(repository, experiment)
    with tempfile.TemporaryDirectory(prefix="renderer-smoke-") as folder:
        pod = _lay_out(repository, run, Path(folder), python.absolute() if python else None)
        return _train(pod, values, processes, verbose=verbose)


def _lay_out(repository: Repository, run: RenderedRun, folder: Path, python: Path | None) -> Pod:
    """Return the run's pod. Raises RefusedError if jobset.yml does not describe one that can be started."""
    try:
        pod = lay_out(run.files, pod_scripts(repository, run.files), folder, python)
        words = [*pod.command, *pod.environment.values(), *pod.environment]
        if not all(isinstance(word, str) and "\0" not in word for word in words):
            raise ValueError("its command, arguments and variables are not all texts")
    except (*DAMAGED, StopIteration) as error:
        damaged(f"{run.folder}/jobset.yml", error)
    return pod


def _train(pod: Pod, values: tuple[str, ...], processes: int, *, verbose: bool) -> int:
    steps: dict[int, list[Step]] = {number: [] for number in range(processes)}
    printed: deque[str] = deque(maxlen=5000)
    console = Console(stderr=True)
    with console.status("starting the pod") as status, running(pod, values, processes) as group:
        for number, line in group.lines():
            if verbose:
                say(f"[{number}] {line}" if processes > 1 else line)
            printed.append(line)
            step = parse_step(line)
            if step:
                steps[number].append(step)
                status.update(f"training: step {step.number}, loss {step.values.get('loss', 'unknown')}")
        codes = group.codes()
    _print(steps)
    if any(codes):
        code = next(code for code in codes if code)
        error = first_error(list(map(mask, printed)))
        say(error or "the pod printed no error; see --verbose", err=True)
        if _NO_MAXTEXT.search(error):
            say("name an interpreter that has MaxText: --python INTERPRETER", err=True)
        say(f"the pod ended with exit code {code}{' (configuration error)' if code == 2 else ''}", err=True)
        return PROBLEMS
    if not all(steps.values()):
        say("the pod ended without a training step; see --verbose", err=True)
        return PROBLEMS
    return OK


_NO_MAXTEXT = re.compile(r"has no package |No module named ")
"""What run_pretrain.py and Python print where MaxText, or what it brings along, is not installed."""


def _print(steps: dict[int, list[Step]]) -> None:
    """Print what was trained, a row a step."""
    if not any(steps.values()):
        return
    table = Table(box=None, pad_edge=False, title=f"{CPU_SIZE['hardware']} run in miniature")
    for column in ("process", "step", "loss", "seconds", "Tokens/s/device"):
        table.add_column(column, justify="right")
    for number, trained in steps.items():
        for step in trained:
            values = [
                f"{step.values[name]:g}" if name in step.values else ""
                for name in ("loss", "seconds", "Tokens/s/device")
            ]
            table.add_row(str(number), str(step.number), *values)
    Console().print(table)
