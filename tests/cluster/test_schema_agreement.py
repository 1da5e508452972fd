"""The strict JobSet schema accepts and refuses what the real API server does; every difference has a reason."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from renderer.jobset_schema import jobset_problems
from renderer.location import Location
from renderer.manifest_yaml import load
from renderer.problem import Problem
from tests.cluster.api import ApiError
from tests.cluster.mutations import mutations
from tests.cluster.plane import ControlPlane
from tests.cluster.runs import variant
from tests.cluster.sandbox import dry_run

pytestmark = pytest.mark.cluster

SEED = int(os.environ.get("MUTATION_SEED", "20260401"))
CASES = int(os.environ.get("MUTATION_CASES", "300"))

ONLY_THE_SERVER = {
    r"rule names are not unique": "the webhook compares the rules of the failure policy with each other",
    r"invalid job failure reason": "the webhook knows the reasons why a Job can fail",
    r"invalid failure policy rule name": "the webhook has a pattern for rule names of its own",
    r"metadata\.labels: Invalid value: .* prefix part": "the schema takes labels' keys as they are: they are our own",
    r"containers in body must be of type array": "the webhook fills an absent spec in, and then containers are missing",
}
"""What the server refuses beyond the schema: patterns of its words, and why a schema cannot say it."""


def test_schema_and_api_server_agree(control_plane: ControlPlane) -> None:
    run = variant(namespace="default", volumes={"/data": "claim"}, max_seconds=3600, ttl_seconds=60, owner="team")
    jobset: dict[str, Any] = load(run.files["jobset.yml"].decode())
    unexplained, agreed = [], {True: 0, False: 0}
    for words, data in mutations(jobset, SEED, CASES):
        problems = jobset_problems(data, Location("jobset.yml"))
        refusal = dry_run(control_plane, data)
        if bool(problems) == bool(refusal):
            agreed[refusal is None] += 1
        elif not (_only_the_server(refusal) if refusal else all(_mended(problem, data) for problem in problems)):
            unexplained.append(f"{words}; schema: {[problem.message for problem in problems]}; server: {refusal}")
    assert not unexplained, "\n".join([f"seed {SEED}:", *unexplained])
    assert min(agreed.values()) > CASES / 10, f"seed {SEED}: both answers must be tried, not {agreed}"


def _only_the_server(refusal: ApiError) -> bool:
    return any(re.search(pattern, refusal.message) for pattern in ONLY_THE_SERVER)


def _mended(problem: Problem, data: dict[str, Any]) -> bool:
    """Return whether JobSet's mutating webhook mends the problem before the server validates.

    It reads the object into Go's structures and writes them back: what is absent or null comes out as "" or 0, a
    quantity of 1.5 as text. The Job made from it may still fail, so the schema is stricter on purpose.
    """
    value = _value(data, problem.path)
    quantity = problem.message == "must be of type integer or string" and isinstance(value, float)
    return quantity or value is None or problem.message.startswith("missing: ")


def _value(data: Any, path: str) -> Any:
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        data = data[int(index)] if index else data.get(name) if isinstance(data, dict) else None
    return data
