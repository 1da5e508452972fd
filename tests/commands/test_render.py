"""`renderer render`: what it prints; what it writes is test_rendered_tree's."""

from __future__ import annotations

import pytest
from content import Content, settled, tree
from syrupy.assertion import SnapshotAssertion


def test_table_of_all_experiments(content: Content, snapshot: SnapshotAssertion) -> None:
    content.experiment("one")
    content.experiment(
        "two", launch={"environment": "prod", "chips": 1024, "image": "v1", "branch": None}, maxtext={"steps": 50000}
    )
    content.experiment("smoke", model="qwen3-0.6b", launch={"image": "v1", "branch": None})
    assert settled(content.run("render").out) == snapshot
    content.experiment("one", maxtext={"steps": 5})
    assert settled(content.run("render").out) == snapshot


def test_named_experiments_have_no_table(content: Content) -> None:
    content.experiment("one")
    assert content.run("render", "ling3-flash/one").out == "7 files written, 0 deleted\n"
    assert (
        content.run("render", "ling3-flash/one", "experiments/ling3-flash/one.yml").out
        == "nothing to write: rendered/ is up to date\n"
    )


def test_warnings_do_not_block(content: Content) -> None:
    content.experiment("one", launch={"image": "v1"})
    code, out, err = content.run("render", "ling3-flash/one")
    assert (code, out) == (0, "7 files written, 0 deleted\n")
    assert (
        err
        == "experiments/ling3-flash/one.yml:7:13: launch.branch: warning: is ignored: the image v1 holds its own code\n"
    )


def test_all_problems_of_all_experiments_at_once(content: Content) -> None:
    content.experiment("one", maxtext={"stesp": 5}, deploy={"CHIP": 1})
    content.experiment("two", launch={"image": 5})
    content.write("experiments/ling3-flash/three.yml", "a: [1\n")
    code, out, err = content.run("render")
    assert (code, out) == (1, "")
    places = [line.split(": ")[:2] for line in err.splitlines() if not line.startswith(" ")]
    assert places == [
        ["experiments/ling3-flash/one.yml:9:3", "deploy.CHIP"],
        ["experiments/ling3-flash/one.yml:11:3", "maxtext.stesp"],
        ["experiments/ling3-flash/three.yml:2:1", "while parsing a flow sequence, did not find expected ',' or ']'"],
        ["experiments/ling3-flash/two.yml:8:12", "launch.image"],
    ]


def test_unknown_experiments_are_all_named(content: Content) -> None:
    content.experiment("one")
    assert content.run("render", "ling3-flash/two", "ling3-flash/one", "three").err == (
        "ling3-flash/two: no such experiment\n    did you mean ling3-flash/one?\n"
        "three: no such experiment\n    experiments: ling3-flash/one\n"
    )


@pytest.mark.parametrize(
    ("one", "two", "problem"),
    [
        (
            {},
            {"launch": {"name": "one"}},
            "two.yml:8:11: launch.name: the name one is taken by experiments/ling3-flash/one.yml",
        ),
        (
            {"maxtext": {"run_name": "same"}},
            {"maxtext": {"run_name": "same", "steps": 5}},
            "two.yml:1:1: maxtext.run_name: run_name same and its output directory are taken by "
            "experiments/ling3-flash/one.yml",
        ),
    ],
)
def test_names_and_outputs_that_collide(
    one: dict[str, dict[str, object]], two: dict[str, dict[str, object]], problem: str, content: Content
) -> None:
    content.experiment("one", **one)  # type: ignore[arg-type]
    content.experiment("two", **two)  # type: ignore[arg-type]
    code, _, err = content.run("render")
    assert (code, err) == (1, f"experiments/ling3-flash/{problem}\n")
    assert tree(content.root) == {}


def test_a_resumed_run_may_share_its_outputs(content: Content) -> None:
    content.experiment("one", maxtext={"run_name": "same"})
    content.experiment("two", launch={"resume": "same"}, maxtext={"steps": 5})
    assert content.run("render").code == 0


def test_an_explicit_name_that_does_not_fit_states_the_budget(content: Content) -> None:
    name = "a" * 60
    content.experiment(
        "one", launch={"environment": "prod", "chips": 1024, "image": "v1", "branch": None, "name": name}
    )
    code, _, err = content.run("render")
    assert code == 1
    assert err == (
        "experiments/ling3-flash/one.yml:8:11: launch.name: 60 characters; at most 22 fit, because a "
        "pod's name has at most 63\n"
        f"    the run would be {name}-1024c-xxxxxxxx, its attempts {name}-1024c-xxxxxxxx-a99, "
        f"its last pod {name}-1024c-xxxxxxxx-a99-slice-job-0-255-xxxxx\n"
    )
    content.experiment("a" * 60, launch={"environment": "prod", "chips": 1024, "image": "v1", "branch": None})
    assert content.run("render", f"ling3-flash/{name}").code == 0
