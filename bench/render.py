"""Time the renderer on 1,000 experiments, side by side with its peers, against the budgets: python -m bench.render."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import peers
from bench.generate import ROOT, generate
from bench.peers import Took

RENDERER = [sys.executable, "-m", "renderer"]
RESULTS = ROOT / ".cache" / "bench"


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement in `unit`, and the budget it must keep; `more` if it must be at least that.

    `processor` is the processor time of the same work in the same unit: it says more when the machine is busy.
    """

    work: str
    value: float
    unit: str
    budget: float | None = None
    more: bool = False
    processor: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the budget is kept; without one, it is."""
        return self.budget is None or (self.value >= self.budget if self.more else self.value <= self.budget)


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished process: wall and processor seconds, and its peak memory in MB."""

    seconds: float
    processor: float
    megabytes: float


def run(*command: str | Path) -> Ran:
    """Run a process of its own, which must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}:\n{errors.decode()}")
    return Ran(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def best(times: int, work: Callable[[], Ran]) -> Ran:
    """Return the fastest of several runs: the others were disturbed by what else the machine does."""
    return min((work() for _ in range(times)), key=lambda ran: ran.seconds)


def cold(content: Path) -> Ran:
    """Render everything into nothing."""
    shutil.rmtree(content / "rendered", ignore_errors=True)
    return run(*RENDERER, "--root", content, "render")


def batch_rows(content: Path, count: int, rendered: Ran) -> list[Row]:
    """Return the timings over all experiments; `rendered` is the fastest cold render."""
    checked = best(3, lambda: run(*RENDERER, "--root", content, "render", "--check"))
    again = best(3, lambda: run(*RENDERER, "--root", content, "render"))
    return [
        wall(f"render {count} experiments, cold", rendered, 10 * count / 1000),
        Row("  peak memory", rendered.megabytes, "MB", 300),
        wall(f"render --check of the rendered {count}", checked),
        ratio("  as a part of the cold render", checked, rendered, 0.5),
        wall(f"render {count} again, nothing to write", again),
    ]


def wall(work: str, took: Ran | Took, budget: float | None = None) -> Row:
    """Return a row of seconds."""
    return Row(work, took.seconds, "s", budget, processor=took.processor)


def ratio(work: str, one: Ran | Took, other: Ran | Took, budget: float, *, more: bool = False) -> Row:
    """Return a row that says how often `other` goes into `one`."""
    return Row(work, one.seconds / other.seconds, "x", budget, more, one.processor / other.processor)


def single_rows(content: Path) -> list[Row]:
    """Return what a person waits for: one changed file among all, help, and Python's own start for comparison."""
    path = sorted((content / "experiments").glob("*/*.yml"))[0]
    text, steps = path.read_text("utf-8"), iter(range(1001, 2000))

    def changed() -> Ran:
        path.write_text(re.sub(r"steps: \d+", f"steps: {next(steps)}", text, count=1), "utf-8")
        return run(*RENDERER, "--root", content, "render", f"{path.parent.name}/{path.stem}")

    rows = [
        wall("one changed experiment, interpreter included", best(5, changed), 0.25),
        wall("renderer --help", best(5, lambda: run(*RENDERER, "--help")), 0.15),
        wall("python -c pass", best(5, lambda: run(sys.executable, "-c", "pass"))),
    ]
    path.write_text(text, "utf-8")
    run(*RENDERER, "--root", content, "render")
    return rows


def inside_rows(content: Path) -> list[Row]:
    """Return what bench.inside measures in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "bench.inside", content], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    history, bare = (found[f"merge_{name}_history_per_experiment"] for name in ("with", "without"))
    return [
        Row("level 1 checks of one experiment", found["checks_per_experiment"] * 1000, "ms", 1.5),
        Row("merge of five layers, with history", history * 1e6, "µs"),
        Row("  over one without history", history / bare, "x", 1.1),
    ]


def peer_rows(chosen: int, peers_took: dict[str, Took], ours: Took) -> list[Row]:
    """Return the rate of the renderer over that of each peer; all times are of one experiment."""
    rows = []
    for name, budget in (("RFC's pipeline", 15), ("kustomize build", 4)):
        if name in peers_took:
            took = peers_took[name]
            work = f"{name}, one of {chosen}"
            rows.append(Row(work, took.seconds * 1000, "ms", processor=took.processor * 1000))
            rows.append(ratio("  the renderer's rate over it", took, ours, budget, more=True))
    return rows


def side_by_side(content: Path, tools: argparse.Namespace) -> tuple[Ran, dict[str, Took]]:
    """Return the fastest cold render, and what the peers take for one experiment, measured between the renders."""
    renders = [cold(content)]
    everything = peers.read(content)
    chosen = everything[:: max(1, len(everything) // tools.peers)][: tools.peers]
    took: dict[str, Took] = {}
    if tools.yq:
        out = content.with_name("pipeline")
        took["RFC's pipeline"] = per(len(chosen), peers.time_pipeline(tools.yq, content, chosen, out))
        wrong = [found for one in chosen if (found := peers.disagreements(content, one, out))]
        if wrong:
            raise SystemExit(f"the pipeline and the renderer disagree about {len(wrong)} run.yml, first: {wrong[0]}")
    renders.append(cold(content))
    if tools.kustomize:
        out = content.with_name("kustomize")
        took["kustomize build"] = per(len(chosen), peers.time_kustomize(tools.kustomize, content, chosen, out))
    renders.append(cold(content))
    return min(renders, key=lambda ran: ran.seconds), took


def per(count: int, took: Ran | Took) -> Took:
    """Return the share of one in `count`."""
    return Took(took.seconds / count, took.processor / count)


def show(rows: Sequence[Row]) -> None:
    """Print the rows as a table."""
    table = Table(box=None, header_style="bold")
    for column in ("work", "measured", "processor", "budget", ""):
        table.add_column(column, justify="left" if column in {"work", ""} else "right")
    for row in rows:
        budget = "" if row.budget is None else f"{'>=' if row.more else '<='} {row.budget:g} {row.unit}"
        verdict = "" if row.budget is None else "kept" if row.kept else "MISSED"
        processor = "" if row.processor is None else f"{row.processor:.3g} {row.unit}"
        table.add_row(row.work, f"{row.value:.3g} {row.unit}", processor, budget, verdict)
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and keep the numbers in .cache/bench/results.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--peers", type=int, default=200, help="how many experiments the peers are timed on")
    parser.add_argument("--yq", type=Path, help="mikefarah's yq, for the RFC's pipeline")
    parser.add_argument("--kustomize", type=Path)
    tools = parser.parse_args(argv)
    shutil.rmtree(RESULTS, ignore_errors=True)
    content = RESULTS / "content"
    generate(tools.experiments, content)
    rendered, took = side_by_side(content, tools)
    rows = batch_rows(content, tools.experiments, rendered)
    rows += [*single_rows(content), *inside_rows(content)]
    rows += peer_rows(min(tools.peers, tools.experiments), took, per(tools.experiments, rendered))
    show(rows)
    (RESULTS / "results.json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
