"""Two commits read and planned: which experiments they do not hold alike, and what the merge does to their runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from renderer.committed import Reader, Unit, differing, folders, named, pod_scripts, wanted
from renderer.git import Base
from renderer.integrity import Intent, Wrong, wrong
from renderer.layers import RENDERED
from renderer.names import sealed
from renderer.outputs import DAMAGED, parse
from renderer.plan import Action, plan
from renderer.rendered_run import damage
from renderer.report.run_files import RunFiles, run_files
from renderer.report.sources import experiments
from renderer.report.trees import Log, Trees
from renderer.runs import Committed, Ledger, Snapshot, assumed

_SHALLOW = "the target's history is not whole here (a shallow clone?): what was launched before it begins is not known"


@dataclass(frozen=True, slots=True)
class Reading:
    """The plan between two commits.

    `old` holds the target's experiments by name, `runs` the data of the merge's sound runs by experiment file;
    `known_by` says what "launched before" was taken from.
    """

    trees: Trees
    base: Reader
    merged: Reader
    old: Mapping[str, Committed]
    runs: Mapping[str, RunFiles]
    actions: tuple[Action, ...]
    units: frozenset[Unit]
    unchanged: int
    known_by: str
    pending: tuple[str, ...]
    notices: tuple[str, ...]


def read(git: Log, base: Base, head: str, ledger: Ledger | None = None, source: str = "") -> Reading:
    """Return the plan of merging commit `head` into `base`; `source` names the file that `ledger` was read from."""
    if base.commit is None:
        raise ValueError("read() takes a known target only")
    trees = git.trees(base.commit, head)
    units = differing(trees.base, trees.merged)
    if ledger:  # pending runs may be launched though nothing changes
        units |= set(named(git, trees.merged, ledger.pending).values())
    blobs = git.blobs([*wanted(trees.base, units), *wanted(trees.merged, units)])
    before, after = Reader(trees.base, blobs), Reader(trees.merged, blobs)
    old, new = before.snapshot(units), after.snapshot(units)
    new, data = _judged(new, after, pod_scripts(git, trees.merged) if new.runs else {})
    known_by, notices = f"the ledger {source}", trees.notices
    if ledger is None:
        standing = {run.name for run in old.runs if not run.stopped}
        others = [run for run in (*old.runs, *new.runs) if run.name and run.name not in standing]
        history = git.launched(base.commit, others)
        ledger = assumed(old, history.names)
        known_by = f"the history of {base.name}"
        if not history.complete:
            notices = (*notices, _SHALLOW)
    return Reading(
        trees=trees,
        base=before,
        merged=after,
        old=old.by_experiment(),
        runs=data,
        actions=tuple(plan(old, new, ledger)),
        units=frozenset(units),
        unchanged=sum(unit not in units for unit in experiments(trees.merged)),
        known_by=known_by,
        pending=tuple(sorted(ledger.pending)),
        notices=(*notices, *_orphans(new, trees, units)),
    )


def _orphans(head: Snapshot, trees: Trees, units: Iterable[Unit]) -> list[str]:
    """Return a notice per rendered folder that no experiment of the merge names."""
    owned = {run.folder for run in head.runs}
    present = {path.rpartition("/")[0] for path in trees.merged if path.startswith(f"{RENDERED}/")}
    found = sorted(folder for unit in units for folder in folders(unit) if folder in present - owned)
    return [f"{folder} is rendered, but no experiment renders it: run renderer render" for folder in found]


def _judged(head: Snapshot, reader: Reader, scripts: Mapping[str, bytes]) -> tuple[Snapshot, dict[str, RunFiles]]:
    """Return the runs of the merge, with a problem where apply would refuse the files, and the others' data by file."""
    runs, found = [], {}
    for run in head.runs:
        judged = _read(run, reader.files(run), scripts)
        if isinstance(judged, RunFiles):
            found[run.file] = judged
        runs.append(run if isinstance(judged, RunFiles) else replace(run, problem=judged))
    return Snapshot(tuple(runs)), found


def _read(run: Committed, files: Mapping[str, bytes], scripts: Mapping[str, bytes]) -> RunFiles | str:
    """Return the data of a run, or why its files cannot be launched."""
    if not run.name or run.problem:
        return run.problem
    if not sealed(files):
        return "its rendered files were edited by hand: run renderer render"
    intent = Intent(run.name, run.attempt, run.environment, run.own)
    try:
        data = parse(files)
        found = next(wrong(intent, run.folder, files, data, scripts), None)
    except DAMAGED as error:
        found = Wrong(f"{run.folder}/jobset.yml", damage(error))
    return f"{found.file}: {found.message}" if found else run_files(data, files["jobset.yml"])
