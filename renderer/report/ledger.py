"""Reads an exported ledger: what was launched, in a file that `renderer report --ledger` takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from renderer.location import Location
from renderer.problem import refuse
from renderer.runs import Ledger, Recorded, State, recorded

MAX_BYTES = 16 << 20
_STATES = tuple(State)
_TEXTS = ("name", "experiment", "environment", "state")


def read(path: Path) -> Ledger:
    """Return the ledger in a file: {"runs": [{"name", "experiment", "environment", "state"}, ...]}.

    `experiment` is <model>/<effective name>; further keys are left alone. Raises RefusedError if it is no ledger.
    """
    place = Location(path.name)
    if path.stat().st_size > MAX_BYTES:
        refuse("ledger-file", place, f"is larger than {MAX_BYTES} bytes")
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        return refuse("ledger-file", place, f"is not JSON: {str(error)[:200]}")
    runs = data.get("runs") if isinstance(data, dict) else None
    if not isinstance(runs, list) or not all(map(_is_run, runs)):
        hint = f"runs: a list of {', '.join(_TEXTS)}, the state one of {', '.join(_STATES)}"
        refuse("ledger-file", place, "is no exported ledger", hint=hint)
    return recorded(Recorded(*(run[key] for key in _TEXTS)) for run in runs)


def _is_run(run: Any) -> bool:
    return isinstance(run, dict) and all(isinstance(run.get(key), str) for key in _TEXTS) and run["state"] in _STATES
