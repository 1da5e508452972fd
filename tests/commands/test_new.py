"""`renderer new`: the file it writes, what it refuses, and sweeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from content import Content

from renderer.git import Git

SELECTORS = ("--chips", "64", "--context", "8k", "--env", "test", "--owner", "team", "--branch", "main")


def text(content: Content, name: str) -> str:
    return (content.root / f"experiments/{name}.yml").read_text()


def test_a_new_experiment_renders_as_it_is(content: Content) -> None:
    code, out, err = content.run("new", "ling3-flash/first", "learning_rate=1e-4", "deploy.ENV.RUN_ID=0012", *SELECTORS)
    assert (code, out, err) == (0, "wrote experiments/ling3-flash/first.yml\n", "")
    assert (
        text(content, "ling3-flash/first")
        == """\
# yaml-language-server: $schema=../../schemas/experiment.json
# What this experiment is for: one line that a reviewer can hold it to.
launch:
  model: ling3-flash
  chips: 64
  context: 8k
  environment: test
  owner: team
  branch: main
deploy:
  ENV:
    RUN_ID: "0012"
maxtext:
  learning_rate: 0.0001
"""
    )
    assert content.run("format", "--check").code == 0
    assert content.run("render").code == 0


@pytest.mark.parametrize(
    "value", ["on", "n", "12:30", "2026-01-01", "1_000", "1e5", "0x1F", "=", " lead", "a: b", "# x", "null "]
)
def test_text_is_written_so_that_every_reader_takes_it_for_text(value: str, content: Content) -> None:
    code, _, err = content.run("new", "ling3-flash/first", f"deploy.ENV.A={value}", *SELECTORS)
    assert (code, err) == (0, "")
    rendered = content.render(content.root / "experiments/ling3-flash/first.yml")
    assert f'- name: "A"\n                      value: "{value}"\n'.encode() in rendered.files["jobset.yml"]


def test_from_copies_an_experiment_with_its_comments(content: Content) -> None:
    content.ship("ling3-flash/lr3e4-fineweb")
    code, _, err = content.run(
        "new", "ling3-flash/copy", "--from", "ling3-flash/lr3e4-fineweb", "learning_rate=1e-4", "--owner", "others"
    )
    assert (code, err) == (0, "")
    source = text(content, "ling3-flash/lr3e4-fineweb")
    expected = source.replace("learning_rate: 3.0e-4", "learning_rate: 0.0001").replace(
        "owner: pretrain-team", "owner: others"
    )
    assert text(content, "ling3-flash/copy") == expected


def test_a_sweep_writes_one_file_per_value(content: Content) -> None:
    code, out, _ = content.run(
        "new", "ling3-flash/sweep", "learning_rate=1e-4,3e-4", "steps=10,20", "log_period=5", *SELECTORS
    )
    names = ["sweep-lr1e4-s10", "sweep-lr1e4-s20", "sweep-lr3e4-s10", "sweep-lr3e4-s20"]
    assert code == 0
    assert out.splitlines() == [f"wrote experiments/ling3-flash/{name}.yml" for name in names]
    assert text(content, "ling3-flash/sweep-lr3e4-s10").endswith(
        "maxtext:\n  learning_rate: 0.0003\n  steps: 10\n  log_period: 5\n"
    )


def test_commas_inside_quotes_and_brackets_do_not_sweep(content: Content) -> None:
    value = 'act_quantization_calibration_method="fixed,-224,224"'
    rules = "logical_axis_rules=[['activation_batch', ['data', 'fsdp']]]"
    assert (
        content.run("new", "ling3-flash/one", value, rules, *SELECTORS).out == "wrote experiments/ling3-flash/one.yml\n"
    )
    assert "fixed,-224,224" in text(content, "ling3-flash/one")


@pytest.mark.parametrize(
    ("arguments", "err"),
    [
        (["ling3-flash/there"], "experiments/ling3-flash/there.yml: exists already: choose another name\n"),
        (["there"], "command line: there is not MODEL/NAME: write for example ling3-flash/lr3e4-fineweb\n"),
        (["../x/y"], "command line: ../x/y is not MODEL/NAME: write for example ling3-flash/lr3e4-fineweb\n"),
        (
            ["ling3-flash/a/b"],
            "command line: ling3-flash/a/b is not MODEL/NAME: write for example ling3-flash/lr3e4-fineweb\n",
        ),
        (
            ["ling3-flash/new", "stesp=5"],
            "command line: stesp: neither MaxText nor deploy: knows this key\n    did you mean steps?\n",
        ),
        (["ling3-flash/new", "steps=!remove"], "command line: steps: write !remove into the file yourself\n"),
        (["ling3-flash/new", "steps=1", "steps=2"], "command line: maxtext.steps: given twice: give it once\n"),
        (["ling3-flash/new", "steps=1", "maxtext.steps=2"], "command line: maxtext.steps: given twice: give it once\n"),
        (["ling3-flash/new", "steps=1,2", "steps=3"], "command line: maxtext.steps: given twice: give it once\n"),
        (
            ["ling3-flash/new", "deploy.ENV={A: x}", "deploy.ENV={B: z}"],
            "command line: deploy.ENV: given twice: give it once\n",
        ),
        (
            ["ling3-flash/new", "deploy.ENV.A=x", "ENV={A: z}"],
            "command line: deploy.ENV: given twice: give it once\n",
        ),
        (
            ["ling3-flash/new", "deploy.ENV={A: !remove , B: z}"],
            "command line: ENV.A: write !remove into the file yourself\n",
        ),
        (["ling3-flash/new", "steps"], "command line: steps is not KEY=VALUE: write for example learning_rate=1e-4\n"),
    ],
)
def test_refused(arguments: list[str], err: str, content: Content) -> None:
    content.experiment("there")
    before = sorted(content.root.rglob("*"))
    ran = content.run("new", *arguments, *SELECTORS)
    assert (ran.code, ran.out, ran.err) == (1, "", err)
    assert sorted(content.root.rglob("*")) == before


def test_an_unknown_model_is_told_with_those_that_have_presets(content: Content) -> None:
    code, out, err = content.run("new", "nope/x", "--model", "nope")
    assert (code, out) == (1, "")
    assert err.splitlines()[:2] == [
        "experiments/nope/x.yml:4:10: launch.model: no presets/nope/model.yml",
        "    models: deepseek3-671b, ling3-flash, llama3.1-70b, qwen3-0.6b",
    ]
    assert [line.split(": ")[1] for line in err.splitlines()[2:]] == [
        "launch.chips",
        "launch.context",
        "launch.environment",
    ]
    assert not (content.root / "experiments").exists()


def test_a_context_that_these_chips_do_not_have_is_named(content: Content) -> None:
    code, out, err = content.run("new", "ling3-flash/x", "--chips", "64", "--context", "9k", "--env", "test")
    assert (code, out) == (1, "")
    assert err == (
        "experiments/ling3-flash/x.yml:6:12: launch.context: no presets/ling3-flash/topology/64chips/9k.yml\n"
        "    contexts of 64 chips: 8k\n"
    )


def test_what_level_1_refuses_is_not_written(content: Content) -> None:
    code, out, err = content.run("new", "ling3-flash/new", "per_device_batch_size=0.3", *SELECTORS)
    assert (code, out) == (1, "")
    assert err.startswith("experiments/ling3-flash/new.yml:")
    assert "38.4" in err
    assert not (content.root / "experiments").exists()


def test_one_refused_value_of_a_sweep_writes_none(content: Content) -> None:
    assert content.run("new", "ling3-flash/new", "per_device_batch_size=2,0.3", *SELECTORS).code == 1
    assert not (content.root / "experiments").exists()


def test_values_that_give_one_name_are_refused(content: Content) -> None:
    """1e-4 and 1e4 would both be lr1e4: neither may overwrite the other."""
    code, _, err = content.run("new", "ling3-flash/new", "learning_rate=1e-4,1e4", *SELECTORS)
    assert code == 1
    assert err == "experiments/ling3-flash/new-lr1e4.yml: two values of the sweep give this name: write one otherwise\n"
    assert not (content.root / "experiments").exists()


def test_what_only_a_launch_needs_is_a_reminder(content: Content) -> None:
    code, out, err = content.run("new", "ling3-flash/new", "--chips", "64", "--context", "8k", "--env", "prod")
    assert (code, out) == (0, "wrote experiments/ling3-flash/new.yml\n")
    assert [line.partition(": ")[2] for line in err.splitlines()] == [
        "launch.image: warning: missing: prod runs an image that can be run again; write launch.image",
        "launch.owner: warning: missing: prod runs have an owner; write launch.owner",
    ]


def test_the_branch_of_a_maxtext_checkout_is_filled_in(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Git, "top", lambda _: tmp_path)
    monkeypatch.setattr(Git, "branch", lambda _: "feature/x")
    selectors = ("--chips", "64", "--context", "8k", "--env", "test")
    content.run("new", "ling3-flash/elsewhere", *selectors)
    assert "branch" not in text(content, "ling3-flash/elsewhere")
    (tmp_path / "src/maxtext/configs").mkdir(parents=True)
    (tmp_path / "src/maxtext/configs/base.yml").touch()
    content.run("new", "ling3-flash/here", *selectors)
    assert "  branch: feature/x\n" in text(content, "ling3-flash/here")
    content.run("new", "ling3-flash/image", *selectors, "--image", "v1")
    assert "branch" not in text(content, "ling3-flash/image")


def written(content: Content, *values: str) -> str:
    code, _, err = content.run("new", "ling3-flash/new", *values, *SELECTORS)
    assert (code, err) == (0, "")
    return text(content, "ling3-flash/new").partition("  branch: main\n")[2]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("vllm_additional_config={a.b: 1}", "maxtext:\n  vllm_additional_config:\n    a.b: 1\n"),
        ("vllm_additional_config={a: {b: [1, {c: 2}]}}", None),
        ("vllm_additional_config={}", "maxtext:\n  vllm_additional_config: {}\n"),
        ("deploy.VOLUMES={/mnt/a.b: c}", "deploy:\n  VOLUMES:\n    /mnt/a.b: c\n"),
        ("deploy.ENV={A: x, B: z}", "deploy:\n  ENV:\n    A: x\n    B: z\n"),
    ],
)
def test_mappings_are_written_as_they_are_given(value: str, expected: str | None, content: Content) -> None:
    if expected is None:
        expected = "maxtext:\n  vllm_additional_config:\n    a:\n      b:\n        - 1\n        - c: 2\n"
    assert written(content, value) == expected


def test_entries_of_one_mapping_are_put_together(content: Content) -> None:
    expected = "deploy:\n  ENV:\n    B: v\n    A: x\n    C: z\n"
    assert written(content, "deploy.ENV.B=v", "deploy.ENV={A: x}", "deploy.ENV.C=z") == expected


def test_a_sweep_keeps_the_sign_in_the_name(content: Content) -> None:
    code, out, err = content.run("new", "ling3-flash/new", "steps=1,-1", *SELECTORS)
    assert (code, out, err) == (
        0,
        "wrote experiments/ling3-flash/new-s1.yml\nwrote experiments/ling3-flash/new-s-1.yml\n",
        "",
    )
    assert text(content, "ling3-flash/new-s-1").endswith("maxtext:\n  steps: -1\n")


def test_from_a_file_of_comments_keeps_them(content: Content) -> None:
    content.write("experiments/ling3-flash/base.yml", "# why\n")
    assert content.run("new", "ling3-flash/new", "--from", "ling3-flash/base", *SELECTORS[:6]).code == 0
    assert text(content, "ling3-flash/new") == (
        "# why\nlaunch:\n  model: ling3-flash\n  chips: 64\n  context: 8k\n  environment: test\n"
    )


@pytest.mark.parametrize(
    ("source", "err"),
    [
        ("launch: 5\n", ":1:9: launch: must be a mapping of keys\n"),
        ("launch: {}\nmaxtext: []\n", ":2:10: maxtext: must be a mapping of keys\n"),
        ("launch: 010\n", None),
        (
            "launch: {name: -_}\nmaxtext:\n  run_name: -_\n",
            ": is written in a way that no edit keeps whole: simplify it, or copy it and change the copy by hand\n",
        ),
    ],
)
def test_a_source_that_cannot_be_copied_whole_is_refused(source: str, err: str | None, content: Content) -> None:
    content.write("experiments/ling3-flash/base.yml", source)
    code, out, found = content.run("new", "ling3-flash/new", "--from", "ling3-flash/base", *SELECTORS)
    assert (code, out) == (1, "")
    assert found == f"experiments/ling3-flash/base.yml{err}" if err else "base.yml:1:9: launch: leading zero" in found
    assert not (content.root / "experiments/ling3-flash/new.yml").exists()


def refused(content: Content, *values: str) -> str:
    before = sorted(content.root.parent.rglob("*"))
    code, out, err = content.run("new", "ling3-flash/new", *values, *SELECTORS)
    assert (code, out) == (1, "")
    assert sorted(content.root.parent.rglob("*")) == before
    return str(err)


NEW = "experiments/ling3-flash/new.yml: "


def test_nothing_is_written_through_a_link(content: Content, tmp_path: Path) -> None:
    folder = content.root / "experiments/ling3-flash"
    folder.mkdir(parents=True)
    (folder / "new.yml").symlink_to(tmp_path / "elsewhere.yml")
    assert refused(content) == f"{NEW}{NEW[:-2]} is a symbolic link: nothing is written through\n"
    (folder / "new.yml").unlink()
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert refused(content) == f"{NEW}experiments/ling3-flash is a symbolic link: nothing is written through\n"


def test_what_stands_in_the_way_is_named_and_nothing_is_written(content: Content) -> None:
    content.write("experiments/ling3-flash/new-s2.yml", "")
    there = "experiments/ling3-flash/new-s2.yml: exists already: choose another name\n"
    assert refused(content, "steps=1,2") == there
    (content.root / "experiments/ling3-flash/new-s2.yml").unlink()
    os.mkfifo(content.root / "experiments/ling3-flash/new.yml")
    assert refused(content) == f"{NEW}cannot be written: {NEW[:-2]} is not a regular file\n"
    (content.root / "experiments/ling3-flash/new.yml").unlink()
    (content.root / "experiments/ling3-flash").rmdir()
    content.write("experiments/ling3-flash", "")
    assert refused(content) == f"{NEW}cannot be written: experiments/ling3-flash is not a folder\n"
