"""KEY=VALUE: which namespace a key goes to, and what its text means there."""

from __future__ import annotations

from typing import Any

import pytest

from renderer.overrides import parse, split, split_values
from renderer.problem import Problem, RefusedError
from renderer.schema import load
from renderer.yaml_io import REMOVED, Node, plain

KEYS = load("0.2.5").keys


def parsed(*arguments: str) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    problems: list[Problem] = []
    layer = parse(arguments, KEYS, problems)
    deploy, maxtext = (
        plain(Node(nodes, layer.maxtext and next(iter(layer.maxtext.values())).at))
        for nodes in (layer.deploy, layer.maxtext)
    )  # type: ignore[arg-type]
    return deploy, maxtext, [str(problem) for problem in problems]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("argument", "deploy", "maxtext"),
    [
        ("steps=5", {}, {"steps": 5}),
        ("maxtext.steps=5", {}, {"steps": 5}),
        ("learning_rate=1e-4", {}, {"learning_rate": 0.0001}),
        ("enable_checkpointing=true", {}, {"enable_checkpointing": True}),
        ("run_name=0012", {}, {"run_name": "0012"}),
        ("run_name=123", {}, {"run_name": "123"}),
        ("run_name=on", {}, {"run_name": "on"}),
        ("run_name=", {}, {"run_name": ""}),
        ("run_name=a=b", {}, {"run_name": "a=b"}),
        ('run_name="a b"', {}, {"run_name": "a b"}),
        ("run_name='a b'", {}, {"run_name": "a b"}),
        ("final_logits_soft_cap=null", {}, {"final_logits_soft_cap": None}),
        ("logical_axis_rules=[['a', ['b']]]", {}, {"logical_axis_rules": [["a", ["b"]]]}),
        ("K8S_MAX_RESTARTS=5", {"K8S_MAX_RESTARTS": 5}, {}),
        ("deploy.K8S_MAX_RESTARTS=5", {"K8S_MAX_RESTARTS": 5}, {}),
        ("deploy.ENV.RUN_ID=0012", {"ENV": {"RUN_ID": "0012"}}, {}),
        ("ENV.FLAG=true", {"ENV": {"FLAG": "true"}}, {}),
        ("LIBTPU_INIT_ARGS.xla_tpu_x=1", {"LIBTPU_INIT_ARGS": {"xla_tpu_x": "1"}}, {}),
        ("MAXTEXT_VERSION=0.2.5", {"MAXTEXT_VERSION": "0.2.5"}, {}),
        ("QUEUE=1", {"QUEUE": "1"}, {}),
        ("DERIVATIONS=[D1, D2]", {"DERIVATIONS": ["D1", "D2"]}, {}),
        ("ENABLE_HF_CONVERSION=false", {"ENABLE_HF_CONVERSION": False}, {}),
        ("MAX_HOURS=1.5", {"MAX_HOURS": 1.5}, {}),
    ],
)
def test_assignment(argument: str, deploy: dict[str, Any], maxtext: dict[str, Any]) -> None:
    assert parsed(argument) == (deploy, maxtext, [])


def test_mappings_gather() -> None:
    assert parsed("ENV.A=1", "steps=2", "ENV.B=2") == ({"ENV": {"A": "1", "B": "2"}}, {"steps": 2}, [])


@pytest.mark.parametrize("again", ["steps=2", "maxtext.steps=2"])
def test_a_key_given_twice_is_refused(again: str) -> None:
    assert parsed("steps=1", again)[2] == ["command line: steps: given twice: give it once"]


def test_remove_takes_a_key_out() -> None:
    layer = parse(["steps=!remove", "ENV.A=!remove"], KEYS, [])
    assert layer.maxtext["steps"].value is REMOVED
    assert layer.deploy["ENV"].value["A"].value is REMOVED


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        (
            "learnign_rate=1",
            "command line: learnign_rate: neither MaxText nor deploy: knows this key\n    did you mean learning_rate",
        ),
        ("chips=64", "command line: chips: is a key of launch: write --chips"),
        ("environment=prod", "command line: environment: is a key of launch: write --env"),
        ("attempt=2", "command line: attempt: is a key of launch: write it under launch: in the file"),
        ("zzzzzz=1", "command line: zzzzzz: neither MaxText nor deploy: knows this key"),
        ("steps=[1", "command line: steps: [1: while parsing a flow sequence, did not find expected ',' or ']'"),
        ('run_name="a', 'command line: run_name: "a: while scanning a quoted scalar, found unexpected end of stream'),
        (
            "run_name=[on]",
            "command line: run_name: [on]: on is a boolean to YAML 1.1 and text to YAML 1.2: write "
            'true, or "on" for the text',
        ),
        ('run_name="\udcff"', 'command line: run_name: "\\udcff": is not UTF-8 text'),
    ],
)
def test_what_cannot_be_read_is_a_problem(argument: str, problem: str) -> None:
    _, _, problems = parsed(argument)
    assert len(problems) == 1
    assert problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("steps", "steps"),
        ("=5", "..."),
        ("a b=1", "a..."),
        ("-x=1", "-x..."),
        ("steps:5", "steps..."),
        ("hf_access_token:hunter2", "hf_access_token..."),
        ("hf-access-token=hunter2", "hf-access-token..."),
    ],
)
def test_what_is_no_assignment_is_refused_without_its_value(argument: str, shown: str) -> None:
    with pytest.raises(RefusedError) as refused:
        split(argument)
    assert str(refused.value) == f"command line: {shown} is not KEY=VALUE: write for example learning_rate=1e-4"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1e-4,3e-4", ["1e-4", "3e-4"]),
        ("1", ["1"]),
        ("", [""]),
        ("a,", ["a", ""]),
        ('"fixed,-224,224"', ['"fixed,-224,224"']),
        ("'a,b',c", ["'a,b'", "c"]),
        ("[1,2],[3]", ["[1,2]", "[3]"]),
        ("{a: [1,2], b: 3},x", ["{a: [1,2], b: 3}", "x"]),
        ('"a\'b,c",d', ['"a\'b,c"', "d"]),
        ("]a,b", ["]a", "b"]),
    ],
)
def test_a_sweep_is_split_outside_quotes_and_brackets(text: str, values: list[str]) -> None:
    assert split_values(text) == values
