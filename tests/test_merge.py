"""The laws of the merge: idempotent, the later layer wins, nothing of the history is lost, order is irrelevant."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer.layers import Layer
from renderer.merge import ORDER, Leaf, Tree, first_place, history, leaves, merge, values, winner
from renderer.names import digest
from renderer.problem import Problem
from renderer.scalars import write
from renderer.yaml_io import REMOVED, Node, read


def entries(text: str, file: str) -> dict[str, Node]:
    problems: list[Problem] = []
    node = read(text.encode(), file, problems)
    assert problems == []
    return dict(node.value)


def merged(*texts: str) -> tuple[Tree, list[str]]:
    """Merge texts as the lowest layers, in order; each layer's file is called <its name>.yml."""
    tree: Tree = {}
    problems: list[Problem] = []
    for name, text in zip(ORDER, texts, strict=False):
        found = entries(text, f"{name}.yml")
        tree = merge(tree, found, Layer(name, f"{name}.yml", found, {}), problems, "deploy")
    return tree, [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a: {x: 1, w: 2}", "a: {x: null}"], {"a": {"x": None, "w": 2}}),
        (["a: {x: 1, w: 2}", "a: {x: !remove }"], {"a": {"w": 2}}),
        (["a: {x: 1, w: 2}", "a: !remove"], {}),
        (["a: 1", "a: !remove", "a: 2"], {"a": 2}),
        (["a: {x: 1}", "a: !remove", "a: {w: 2}"], {"a": {"w": 2}}),
        (["a: {x: {z: 1}}", "a: !remove", "a: {x: {w: 2}}"], {"a": {"x": {"w": 2}}}),
        (["a: {x: 1}", "a: !remove", "a: 3"], {"a": 3}),
        (["a: 3", "a: !remove", "a: {x: 1}"], {"a": {"x": 1}}),
        (["a: [1, 2]", "a: [3]"], {"a": [3]}),
        (["a: [a]", "a: [a]"], {"a": ["a"]}),
        (["a: {}", "a: {x: 1}"], {"a": {"x": 1}}),
        (["a: {x: 1}", "a: {}"], {"a": {"x": 1}}),
        (["a: {}"], {"a": {}}),
        (["a: {x: 1}", "a: {x: !remove }"], {"a": {}}),
        (["a: null", "a: 1"], {"a": 1}),
        (["a: {b: {c: 1, d: 2}}", "a: {b: {c: 3}}", "a: {e: 4}"], {"a": {"b": {"c": 3, "d": 2}, "e": 4}}),
    ],
)
def test_values(texts: list[str], expected: dict[str, Any]) -> None:
    tree, problems = merged(*texts)
    assert (values(tree), problems) == (expected, [])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["", "a: !remove"], "topology.yml:1:4: deploy.a: !remove, but no lower layer sets it: delete this line"),
        (
            ["a: 1", "a: !remove", "a: !remove"],
            "dataset.yml:1:4: deploy.a: !remove, but no lower layer sets it: delete this line",
        ),
        (
            ["a: {x: 1}", "a:\n  w: !remove"],
            "topology.yml:2:6: deploy.a.w: !remove, but no lower layer sets it: delete this line",
        ),
        (
            ["a:\n  x: 1", "\na: 5"],
            "topology.yml:2:4: deploy.a: a single value here, but a mapping at model.yml:2:6: write "
            "the same shape in both",
        ),
        (
            ["a: 5", "a:\n  x: 1"],
            "topology.yml:2:3: deploy.a: a mapping here, but a single value at model.yml:1:4: write "
            "the same shape in both",
        ),
        (
            ["a: {x: 1}", "a: null"],
            "topology.yml:1:4: deploy.a: a single value here, but a mapping at model.yml:1:8: write "
            "the same shape in both",
        ),
        (
            ["a: {b: {c: 1}}", "a: {b: [1]}"],
            "topology.yml:1:8: deploy.a.b: a single value here, but a mapping at model.yml:1:12: "
            "write the same shape in both",
        ),
    ],
)
def test_problems(texts: list[str], expected: str) -> None:
    assert merged(*texts)[1] == [expected]


def test_history_is_complete_and_in_order() -> None:
    tree, _ = merged("a: 1", "a: 2", "b: 3", "a: !remove", "a: 4")
    leaf = tree["a"]
    assert isinstance(leaf, Leaf)
    assert [(old.layer.name, old.node.value, str(old.at)) for old in history(leaf)] == [
        ("experiment", 4, "experiment.yml:1:4"),
        ("environment", REMOVED, "environment.yml:1:4"),
        ("topology", 2, "topology.yml:1:4"),
        ("model", 1, "model.yml:1:4"),
    ]


def test_history_survives_the_removal_of_a_mapping() -> None:
    tree, problems = merged("a: {x: 1, w: {z: 2}}", "a: {x: 3}", "a: !remove", "a: {x: 4}")
    assert (values(tree), problems) == ({"a": {"x": 4}}, [])
    assert isinstance(tree["a"], dict)
    assert [(old.layer.name, old.node.value) for old in history(tree["a"]["x"])] == [
        ("environment", 4),
        ("dataset", REMOVED),
        ("topology", 3),
        ("model", 1),
    ]
    assert [(old.layer.name, old.node.value) for old in history(tree["a"]["w"])] == [("dataset", REMOVED), ("model", 2)]


def test_winner_of_a_mapping_is_the_highest_layer() -> None:
    tree, _ = merged("a: {x: 1, w: 1}", "a: {w: 2}", "a: {x: !remove }")
    found = winner(tree["a"])
    assert found is not None
    assert found.layer.name == "topology"
    assert str(first_place(tree["a"])) == "dataset.yml:1:8"
    assert [(path, leaf.node.value) for path, leaf in leaves(tree)] == [("a.w", 2)]


# --- laws ---

KEYS = st.sampled_from(["a", "b", "c", "d"])
LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["x", "", "on"])
    | st.lists(st.integers(0, 3), max_size=2)
)
MAPS = st.recursive(LEAF, lambda inner: st.dictionaries(KEYS, inner, max_size=4), max_leaves=10)
DATA = st.dictionaries(KEYS, MAPS, max_size=4)
LAYERS = st.lists(DATA, min_size=1, max_size=6)
FULL = st.recursive(LEAF, lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=4), max_leaves=10)


def of(data: Mapping[str, Any]) -> str:
    return "".join(f"{write(key)}: {write(value)}\n" for key, value in data.items())


def clashes(problems: list[str]) -> bool:
    return any("write the same shape" in problem for problem in problems)


@given(DATA)
def test_one_layer_is_itself(data: dict[str, Any]) -> None:
    assert values(merged(of(data))[0]) == data


@given(LAYERS)
def test_a_layer_applied_twice_changes_nothing(layers: list[dict[str, Any]]) -> None:
    texts = [of(data) for data in layers[: len(ORDER) - 1]]
    once, problems = merged(*texts)
    twice, again = merged(*texts, texts[-1])
    assert values(twice) == values(once)
    assert again == problems


def expected(layers: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge plain data: the same rules, written another way."""
    result: dict[str, Any] = {}
    for data in layers:
        for key, value in data.items():
            old = result.get(key)
            both = isinstance(old, dict) and isinstance(value, dict)
            result[key] = expected([old, value]) if both else expected([value]) if isinstance(value, dict) else value  # type: ignore[list-item]
    return result


@given(LAYERS)
def test_the_later_layer_wins(layers: list[dict[str, Any]]) -> None:
    tree, problems = merged(*map(of, layers))
    if not clashes(problems):
        assert values(tree) == expected(layers)


@given(st.lists(st.dictionaries(KEYS, FULL, max_size=4), min_size=1, max_size=6))
def test_every_assignment_is_in_the_history(layers: list[dict[str, Any]]) -> None:
    tree, problems = merged(*map(of, layers))
    if clashes(problems):
        return
    for path, leaf in leaves(tree):
        assigned = [name for name, data in zip(ORDER, layers, strict=False) if _assigns(data, path.split("."))]
        found = [old.layer.name for old in history(leaf)]
        assert found == assigned[::-1]


def _assigns(data: Any, path: list[str]) -> bool:
    for key in path:
        if not isinstance(data, dict) or key not in data:
            return False
        data = data[key]
    return not isinstance(data, dict)


@given(LAYERS, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_reach_the_digest(layers: list[dict[str, Any]], rng: random.Random) -> None:
    one, _ = merged(*map(of, layers))
    other, _ = merged(*(of(_shuffled(data, rng)) for data in layers))
    assert values(one) == values(other)
    assert digest(values(one)) == digest(values(other))


def _shuffled(data: Any, rng: random.Random) -> Any:
    if not isinstance(data, dict):
        return data
    keys = list(data)
    rng.shuffle(keys)
    return {key: _shuffled(data[key], rng) for key in keys}


@given(LAYERS)
def test_merging_changes_no_layer_below(layers: list[dict[str, Any]]) -> None:
    """Trees share their parts, so a merge that changed one would change another run."""
    below, _ = merged(*map(of, layers))
    before = values(below)
    found = entries(of({"a": {"b": 1}, "c": None, "d": {"a": {"b": 2}}}), "top.yml")
    merge(below, found, Layer("command line", "top.yml", found, {}), [], "deploy")
    assert values(below) == before
