"""Finds runs by what people call them: an object name, an experiment, or the experiment's file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from renderer.cluster.observe import Seen, View
from renderer.location import COMMAND_LINE
from renderer.problem import Problem, RefusedError
from renderer.schema import nearest


def latest(view: View, name: str, root: Path) -> Seen:
    """Return the run that `name` names: of an experiment, its latest one that lives, else the latest.

    Raises RefusedError if there is none.
    """
    return max(every(view, [name], root), key=lambda run: (_lives(run), _age(run)))


def _lives(run: Seen) -> bool:
    return _listed(run) and run.jobset is not None and not run.ended


def _listed(run: Seen) -> bool:
    return run.entry is not None or run.unreadable is not None


def every(view: View, names: Iterable[str], root: Path) -> list[Seen]:
    """Return all runs that `names` name. Raises RefusedError for every unknown name."""
    found: list[Seen] = []
    problems = []
    for name in names:
        mine = [run for run in view.runs if run.name == name] or _of_experiment(view.runs, name, root)
        found += [run for run in mine if run not in found]
        if not mine:
            problems.append(_unreadable(name, view) or _unknown(name, view.runs))
    if problems:
        raise RefusedError(problems)
    return found


def _of_experiment(runs: Iterable[Seen], name: str, root: Path) -> list[Seen]:
    """Return the runs of the experiment <model>/<name>, or of the file at a path."""
    path = os.path.relpath(Path(name).absolute(), root) if name.endswith(".yml") else f"experiments/{name}.yml"
    return [run for run in runs if run.experiment == name or (run.entry and run.entry.file in {name, path})]


def _age(seen: Seen) -> tuple[bool, str, int, str]:
    """Return what the latest run has most of; a JobSet in no ledger counts only where there is nothing else."""
    return _listed(seen), seen.created, seen.entry.attempt if seen.entry else 0, seen.name


def _unreadable(name: str, view: View) -> Problem | None:
    """Return what keeps a run from being found that is known by an entry only, and this cannot be read."""
    damaged = next((item for item in view.damaged if item.name == name), None)
    text = f"nothing is known of {name} while its entry in the ledger cannot be read"
    return Problem("cluster-ledger", COMMAND_LINE, "", text, damaged.mend) if damaged else None


def _unknown(name: str, runs: Iterable[Seen]) -> Problem:
    known = sorted({run.name for run in runs} | {run.experiment for run in runs})
    near = nearest(name, known)
    hint = f"nearest: {', '.join(near)}" if near else f"known: {', '.join(known[:10]) or 'none'}"
    return Problem("run-unknown", COMMAND_LINE, "", f"no run or experiment {name} is known to the cluster", hint)
