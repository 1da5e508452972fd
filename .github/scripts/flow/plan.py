"""Tells the apply workflow which environments have something to do."""

from __future__ import annotations

import json
from pathlib import Path

from flow.refusal import run
from flow.runner import output


def main() -> str:
    """Write the output environments, a JSON list, from the plan-<environment>.json that are here.

    An environment that could not be planned left an empty file, and its step has failed the job already.
    """
    plans = {file.stem.removeprefix("plan-"): file.read_text() for file in sorted(Path().glob("plan-*.json"))}
    found = [environment for environment, text in plans.items() if text and not json.loads(text)["empty"]]
    output("environments", json.dumps(found))
    return f"something to do in: {', '.join(found) or 'no environment'}"


if __name__ == "__main__":
    run(main)
