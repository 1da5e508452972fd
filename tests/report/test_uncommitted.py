"""A report is on commits; who has not committed yet is told so."""

from __future__ import annotations

from repository import Repo


def test_what_is_not_committed_is_named(repo: Repo) -> None:
    repo.experiment("one")
    repo.commit("launched")
    repo.branch("topic")
    repo.experiment("two")
    repo.content.write("experiments/qwen3-0.6b/one.yml", "launch: {}\n")
    ran = repo.report()
    assert ran.err == (
        "not committed, so it does not count here: experiments/qwen3-0.6b/one.yml, experiments/qwen3-0.6b/two.yml,"
        " rendered/test/qwen3-0.6b/two/derive.json and 2 more files\n"
    )
    assert "### On merge: nothing is launched or stopped." in ran.out
    assert repo.report("--head", "main").err == ""
    repo.commit("all of it")
    assert repo.report().err == "1 run would be refused a launch: the report says why\n"
