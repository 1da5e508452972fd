"""Whole comments, beside this file under cases/. UPDATE_CASES=1 writes them anew: read what changes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from repository import PROD, Repo

CASES = Path(__file__).with_name("cases")


def check(name: str, text: str) -> None:
    """Compare a comment with its file; digests and commits are left out, because presets and scripts change them."""
    text = re.sub(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}\b|(?<=-)[0-9a-f]{8}\b", "DIGEST", text)
    text = re.sub(r"`[0-9a-f]{12}`", "`COMMIT`", text)
    file = CASES / f"{name}.md"
    if "UPDATE_CASES" in os.environ:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text("utf-8")


def comment(repo: Repo) -> str:
    ran = repo.report()
    assert ran.code in {0, 1}, ran.err
    return ran.out


def test_a_day_s_work(repo: Repo) -> None:
    repo.content.write("results/qwen3-0.6b/edited/edited-64c-00000000.json", '{"step_seconds": 1.5, "chips": 64}\n')
    for name in ("edited", "gone", "same"):
        repo.experiment(name, launch=PROD)
    repo.experiment("again", launch=PROD)
    repo.commit("launched")
    repo.branch("topic")
    repo.experiment("edited", launch={**PROD, "supersede": "stop"}, maxtext={"steps": 2000, "learning_rate": 1e-4})
    repo.experiment("again", launch={**PROD, "attempt": 2})
    repo.experiment("same", launch={**PROD, "owner": "other-team"})
    repo.experiment("new", maxtext={"steps": 20}, deploy={"ENV": {"LOG": "a|b `c`"}})
    repo.remove("gone")
    repo.commit("work")
    check("a_day_s_work", comment(repo))


def test_a_sweep_is_grouped(repo: Repo) -> None:
    names = [f"lr{index}" for index in range(9)]
    for name in names:
        repo.experiment(name)
    repo.commit("launched")
    repo.branch("topic")
    for index, name in enumerate(names):
        repo.experiment(name, maxtext={"steps": 500, "learning_rate": 1e-4 * (index + 1)})
    repo.commit("sweep")
    check("a_sweep", comment(repo))


def test_a_preset_edit_and_frozen_runs(repo: Repo) -> None:
    for name in ("one", "two"):
        repo.experiment(name)
    repo.experiment("sets-it-itself", maxtext={"adam_eps": 1e-5})
    repo.commit("launched")
    repo.branch("topic")
    repo.content.edit("presets/qwen3-0.6b/model.yml", "\nmaxtext:\n", "\nmaxtext:\n  adam_eps: 1.0e-7\n")
    repo.content.write("tests/legacy/checks.yml", "waivers: {}\n")
    repo.commit("preset")
    check("a_preset_edit", comment(repo))


def test_an_edit_that_also_takes_preset_changes(repo: Repo) -> None:
    repo.experiment()
    repo.commit("launched")
    repo.content.edit("presets/qwen3-0.6b/model.yml", "\nmaxtext:\n", "\nmaxtext:\n  adam_eps: 1.0e-7\n")
    repo.commit("preset")
    repo.branch("topic")
    repo.experiment(maxtext={"steps": 500})
    repo.commit("edit")
    check("an_edit_with_preset_changes", comment(repo))


def test_above_the_policy_s_limits_and_paused(repo: Repo) -> None:
    policy = repo.content.root / "presets/policy.yml"
    policy.write_text("merge:\n  launches: 1\n  chips: 100\npaused: maintenance until noon, ask @platform\n")
    repo.commit("policy")
    repo.branch("topic")
    repo.experiment("one")
    repo.experiment("two", maxtext={"steps": 5})
    repo.commit("two")
    check("above_the_limits", comment(repo))


def test_what_does_not_render(repo: Repo) -> None:
    repo.branch("topic")
    repo.content.experiment("typo", model="qwen3-0.6b", maxtext={"stepps": 7})
    token = "ghp_" + "a1B2" * 9
    repo.content.experiment("secret", model="qwen3-0.6b", maxtext={"hf_access_token": token})
    repo.content.write("experiments/qwen3-0.6b/broken.yml", "launch: [\n")
    repo.commit("broken")
    text = comment(repo)
    assert token not in text
    check("what_does_not_render", text)


@pytest.mark.parametrize("form", ["md", "json", "html"])
def test_no_credential_is_shown_in_any_form(repo: Repo, form: str) -> None:
    token = "ghp_" + "a1B2" * 9
    repo.experiment()
    repo.commit()
    repo.branch("topic")
    path = repo.content.root / "rendered/test/qwen3-0.6b/run/run.yml"
    path.write_text(f'{path.read_text()}hf_access_token: "{token}"\n')
    repo.content.experiment("run", model="qwen3-0.6b", maxtext={"hf_access_token": token})
    repo.content.experiment("other", model="qwen3-0.6b", launch={"owner": token})
    repo.content.experiment(token, model="qwen3-0.6b")
    repo.commit()
    assert token not in repo.report("--format", form).out


def test_a_root_below_the_repository(repo: Repo) -> None:
    folder = repo.content.root / "content"
    folder.mkdir()
    for name in ("presets", "datasets"):
        (repo.content.root / name).rename(folder / name)
    repo.commit("moved")
    repo.branch("topic")
    below = Repo(type(repo.content)(folder))
    below.experiment()
    repo.commit()
    assert below.effects() == [("launch", "run", "new experiment")]


def test_an_unknown_target_or_head_is_said(repo: Repo) -> None:
    ran = repo.content.run("report")
    assert (ran.code, ran.out) == (1, "")
    message = "origin has no default branch here; name the target with --base"
    assert ran.err == f"command line: the target branch is not known: {message}\n"
    assert repo.content.run("report", "--base", "nothing").err == (
        "command line: the target branch is not known: nothing is not a commit here\n"
    )
    assert repo.report("--head", "nothing").err == "command line: nothing is not a commit here\n"


def test_what_is_not_committed_does_not_count(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    assert repo.effects() == []
