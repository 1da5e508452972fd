from __future__ import annotations

import copy
import importlib.util
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from renderer.jobset_schema import SCHEMA, jobset_problems
from renderer.location import Location
from renderer.manifest_yaml import load

ROOT = Path(__file__).parents[1]
MANIFESTS = sorted(ROOT.glob("rendered/*/*/*/jobset.yml"))
FILE = Location("rendered/test/m/e/jobset.yml")
CRD = ROOT / ".cache/gomod/sigs.k8s.io/jobset@v0.12.0/config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"

_spec = importlib.util.spec_from_file_location("make_jobset_schema", ROOT / "tools/jobset_schema.py")
assert _spec
assert _spec.loader
maker = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(maker)


def manifest() -> Any:
    return load(MANIFESTS[0].read_text(encoding="utf-8"))


def job(data: Any) -> Any:
    return data["spec"]["replicatedJobs"][0]["template"]["spec"]


def pod(data: Any) -> Any:
    return job(data)["template"]["spec"]


JOB = "spec.replicatedJobs[0].template.spec"
POD = f"{JOB}.template.spec"
TOO_LARGE = "2147483648 is greater than the maximum of 2147483647"
TRAINER = f"{POD}.containers[0]"


def texts(change: Callable[[Any], object]) -> list[str]:
    data = manifest()
    change(data)
    return [str(problem) for problem in jobset_problems(data, FILE)]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_shipped_manifests_are_accepted(path: Path) -> None:
    assert jobset_problems(load(path.read_text(encoding="utf-8")), FILE) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda data: data["spec"].update(foo=1), "spec: unknown field foo"),
        (lambda data: data["metadata"].update(generation=1), "metadata: unknown field generation"),
        (lambda data: pod(data).update(nodeselector={}), f"{POD}: unknown field nodeselector"),
        (lambda data: job(data).update(completions="16"), f"{JOB}.completions: must be of type integer"),
        (lambda data: job(data).update(completions=2**31), f"{JOB}.completions: {TOO_LARGE}"),
        (lambda data: pod(data)["containers"][0].pop("name"), f"{TRAINER}: missing: name"),
        (lambda data: pod(data)["containers"][0].update(env=None), f"{TRAINER}.env: must be of type array"),
        (
            lambda data: pod(data)["containers"][0]["env"].append({"name": "RUN_NAME", "value": "x"}),
            f"{TRAINER}.env: two items with name RUN_NAME",
        ),
        (
            lambda data: pod(data)["containers"][0]["resources"]["limits"].update({"google.com/tpu": "four"}),
            f'{TRAINER}.resources.limits.google.com/tpu: "four" does not match',
        ),
        (
            lambda data: data["spec"]["failurePolicy"]["rules"][0].update(action="Retry"),
            "spec.failurePolicy.rules[0].action: must be one of FailJobSet, RestartJobSet,"
            " RestartJobSetAndIgnoreMaxRestarts, RestartJob, RestartJobAndIgnoreMaxRestarts",
        ),
        (lambda data: data.update(kind="Jobset"), 'kind: "JobSet" was expected'),
        (lambda data: data.update(status={}), "unknown field status"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(change: Callable[[Any], object], expected: str) -> None:
    (found,) = texts(change)
    assert re.sub(r"(does not match) .*", r"\1", found) == f"{FILE}: {expected}"


def test_quantities_and_ports_take_integers_and_texts() -> None:
    limits = {"google.com/tpu": "4", "memory": "1Gi", "cpu": 1}
    assert texts(lambda data: pod(data)["containers"][0]["resources"].update(limits=limits)) == []


def test_no_manifest_at_all() -> None:
    assert [str(problem) for problem in jobset_problems(None, FILE)] == [f"{FILE}: must be of type object"]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from _places(child, (*path, key))


FREE = {"labels", "annotations", "nodeSelector", "limits", "requests"}
"""Maps whose keys are the user's."""


def test_300_misspelt_fields_are_all_refused() -> None:
    whole = manifest()
    fields = [path for path in _places(whole) if isinstance(path[-1], str) and not FREE & set(path[:-1])]
    chance = random.Random(4)
    for _ in range(300):
        path = chance.choice(fields)
        data = copy.deepcopy(whole)
        parent = data
        for step in path[:-1]:
            parent = parent[step]
        parent[path[-1] + "x"] = parent.pop(path[-1])
        assert any(f"unknown field {path[-1]}x" in problem.message for problem in jobset_problems(data, FILE)), path


def test_it_costs_less_than_a_tenth_of_a_millisecond() -> None:
    data = manifest()
    jobset_problems(data, FILE)
    best = min(_seconds(data) for _ in range(50))
    assert best < 0.0001


def _seconds(data: Any) -> float:
    start = time.perf_counter()
    jobset_problems(data, FILE)
    return time.perf_counter() - start


@pytest.mark.skipif(not CRD.is_file(), reason="the CRD is not downloaded (python tools/jobset_schema.py does it)")
def test_the_schema_is_what_the_script_makes() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == maker.text_of(CRD)


def test_every_object_of_known_fields_is_closed() -> None:
    def objects(node: Any) -> Iterator[Any]:
        if isinstance(node, dict):
            if node.get("type") == "object":
                yield node
            for child in node.values():
                yield from objects(child)

    found = list(objects(json.loads(SCHEMA.read_text(encoding="utf-8"))))
    assert len(found) > 100
    assert all("additionalProperties" in node for node in found)


def test_a_crd_is_made_strict() -> None:
    crd = {
        "type": "object",
        "description": "dropped",
        "x-kubernetes-validations": [{"rule": "dropped"}],
        "required": ["a"],
        "properties": {
            "a": {"type": "integer", "format": "int32", "default": 1},
            "b": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}], "pattern": "x"},
            "c": {"type": "object", "additionalProperties": {"type": "string"}},
            "d": {"type": "object"},
            "e": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "f": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "properties": {"port": {}, "protocol": {"default": "TCP"}}},
            },
            "g": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        },
    }  # fmt: skip
    assert maker.strict(crd) == {
        "type": "object",
        "required": ["a"],
        "additionalProperties": False,
        "properties": {
            "a": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
            "b": {"type": ["integer", "string"], "pattern": "x"},
            "c": {"type": "object", "additionalProperties": {"type": "string"}},
            "d": {"type": "object", "additionalProperties": False},
            "e": {"type": "object"},
            "f": {
                "type": "array",
                "uniqueBy": {"port": None, "protocol": "TCP"},
                "items": {
                    "type": "object",
                    "properties": {"port": {}, "protocol": {}},
                    "additionalProperties": False,
                },
            },
            "g": {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
        },
    }
