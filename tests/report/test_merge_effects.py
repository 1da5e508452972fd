"""Each row of the table in docs/report.md, on real commits."""

from __future__ import annotations

from typing import Any

import pytest
from repository import PROD, Repo


def on_main(repo: Repo, **given: Any) -> None:
    repo.experiment(**given)
    repo.commit("launched")
    repo.branch("topic")


def test_a_new_experiment_is_launched_at_step_0(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    repo.commit()
    assert repo.effects() == [("launch", "run", "new experiment")]
    row = repo.data()["rows"][0]
    assert row["starts"] == "starts at step 0 (checkpoints are off)"
    assert row["size"] == {
        "chips": 64,
        "devices": 128,
        "global_batch": 128,
        "tokens_per_step": 128 * 4096,
        "steps": row["size"]["steps"],
        "tokens": 128 * 4096 * row["size"]["steps"],
        "chip_hours": None,
    }


def test_a_new_experiment_that_is_stopped_is_not_launched(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment(launch={"state": "stopped"})
    repo.commit()
    assert repo.effects() == [("nothing", "run", "state: stopped, and no run of it is known to live")]


@pytest.mark.parametrize("edit", ["comment", "owner", "checks", "order"])
def test_what_is_not_content_changes_nothing(repo: Repo, edit: str) -> None:
    on_main(repo, maxtext={"steps": 5, "learning_rate": 0.1})
    if edit == "owner":
        repo.experiment(launch={"owner": "other-team"}, maxtext={"steps": 5, "learning_rate": 0.1})
    elif edit == "checks":
        repo.experiment(maxtext={"steps": 5, "learning_rate": 0.1}, promises={"global_batch": 128})
    elif edit == "order":
        repo.experiment(maxtext={"learning_rate": 0.1, "steps": 5})
    else:
        path = repo.content.root / "experiments/qwen3-0.6b/run.yml"
        path.write_text(f"# why\n{path.read_text()}")
    repo.commit()
    assert repo.effects() == [("nothing", "run", "its content did not change")]


def test_changed_content_in_test_stops_the_old_run_first(repo: Repo) -> None:
    on_main(repo)
    repo.experiment(maxtext={"steps": 7})
    repo.commit()
    assert repo.effects() == [
        ("launch", "run", "its content changed; run-64c is stopped first"),
        ("stop", "run", "superseded"),
    ]
    launch, stop = repo.data()["rows"]
    assert stop["then"] == launch["run"] != stop["run"]


def test_changed_content_in_prod_must_say_what_becomes_of_the_old_run(repo: Repo) -> None:
    on_main(repo, launch=PROD)
    repo.experiment(launch=PROD, maxtext={"steps": 7})
    repo.commit()
    assert repo.effects() == [
        ("refuse", "run", "launch.supersede must say what becomes of run-64c: keep or stop"),
    ]


def test_keep_lets_the_old_run_go_on(repo: Repo) -> None:
    on_main(repo, launch=PROD)
    repo.experiment(launch={**PROD, "supersede": "keep"}, maxtext={"steps": 7})
    repo.commit()
    assert repo.effects() == [("launch", "run", "its content changed; run-64c goes on")]


def test_keep_with_a_shared_output_directory_is_refused(repo: Repo) -> None:
    on_main(repo, launch=PROD, maxtext={"run_name": "mine"})
    repo.experiment(launch={**PROD, "supersede": "keep"}, maxtext={"run_name": "mine", "steps": 7})
    repo.commit()
    (row,) = repo.data()["rows"]
    assert row["effect"] == "refuse"
    assert row["reason"].endswith(
        "writes to gs://example-maxtext-prod/qwen3-0.6b/mine too: stop it, or change run_name"
    )


def test_a_raised_attempt_launches_the_same_content_again(repo: Repo) -> None:
    on_main(repo, launch=PROD)
    repo.experiment(launch={**PROD, "attempt": 2})
    repo.commit()
    (row,) = repo.data()["rows"]
    name = row["run"].removesuffix("-a2")
    assert (row["effect"], row["reason"]) == ("relaunch", "attempt raised from 1 to 2")
    assert row["starts"] == f"continues {name}"
    assert row["condition"] == f"refused while {name} lives"
    assert repo.data()["values"] == []


def test_a_lowered_attempt_does_nothing(repo: Repo) -> None:
    on_main(repo, launch={"attempt": 3})
    repo.experiment(launch={"attempt": 2})
    repo.commit()
    assert repo.effects() == [("nothing", "run", "attempt lowered from 3 to 2")]


def test_state_stopped_stops_and_taking_it_out_does_not_start(repo: Repo) -> None:
    on_main(repo)
    repo.experiment(launch={"state": "stopped"})
    repo.commit()
    assert repo.effects() == [("stop", "run", "state: stopped")]
    repo.git("checkout", "--quiet", "main")
    repo.git("merge", "--quiet", "--no-ff", "topic")
    repo.branch("again")
    repo.experiment()
    repo.commit()
    known = "run-64c was launched before; raise launch.attempt to run it again"
    assert repo.effects() == [("nothing", "run", known)]
    repo.experiment(launch={"attempt": 2})
    repo.commit()
    assert repo.effects() == [("relaunch", "run", "attempt raised from 1 to 2")]


def test_an_experiment_that_was_stopped_from_the_start_is_launched_when_it_no_longer_is(repo: Repo) -> None:
    on_main(repo, launch={"state": "stopped"})
    repo.experiment()
    repo.commit()
    assert repo.effects() == [("launch", "run", "no longer stopped")]


def test_a_removed_file_stops_its_runs(repo: Repo) -> None:
    on_main(repo)
    repo.remove("run")
    repo.commit()
    assert repo.effects() == [("stop", "run", "its file was removed")]
    assert repo.data()["deleted"] == ["experiments/qwen3-0.6b/run.yml"]
    assert repo.report().out.splitlines()[1] == "### On merge: 1 stop, 1 experiment file removed."


def test_reverted_content_is_not_launched_again(repo: Repo) -> None:
    on_main(repo)
    repo.experiment(maxtext={"steps": 7})
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    repo.git("merge", "--quiet", "--squash", "topic")
    repo.commit("squashed")
    repo.branch("revert")
    repo.git("revert", "--no-edit", "HEAD")
    known = "run-64c was launched before; raise launch.attempt to run it again"
    assert repo.effects() == [
        ("nothing", "run", f"reverted to earlier content: {known}"),
        ("stop", "run", "its content was reverted"),
    ]


def test_a_removed_experiment_that_comes_back_is_not_launched_again(repo: Repo) -> None:
    repo.experiment()
    repo.commit()
    repo.remove("run")
    repo.commit()
    repo.branch("topic")
    repo.experiment()
    repo.commit()
    assert repo.effects() == [("nothing", "run", "run-64c was launched before; raise launch.attempt to run it again")]


def test_a_renamed_file_with_the_same_name_changes_nothing(repo: Repo) -> None:
    on_main(repo, launch={"name": "kept"})
    repo.remove("run")
    repo.experiment("other", launch={"name": "kept"})
    repo.commit()
    assert repo.effects() == [
        ("nothing", "kept", "renamed from experiments/qwen3-0.6b/run.yml; the run stays the same")
    ]
    assert repo.data()["deleted"] == []


def test_a_renamed_file_with_another_name_is_removed_and_new_and_flagged(repo: Repo) -> None:
    on_main(repo)
    repo.remove("run")
    repo.experiment("other")
    repo.commit()
    flag = "with the content of qwen3-0.6b/run, which was removed (launch.name: run would keep its run)"
    assert repo.effects() == [
        ("launch", "other", f"new experiment {flag}"),
        ("stop", "run", "its file was removed"),
    ]


def test_another_environment_stops_there_and_launches_here(repo: Repo) -> None:
    on_main(repo)
    repo.git("rm", "--quiet", "-r", "rendered/test/qwen3-0.6b/run")
    repo.experiment(launch=PROD)
    repo.commit()
    assert repo.effects() == [("launch", "run", "moved from test to prod"), ("stop", "run", "moved to prod")]
    assert [row["environment"] for row in repo.data()["rows"]] == ["prod", "test"]


def test_resume_continues_another_run(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment(launch={**PROD, "resume": "earlier-64c-0123abcd"})
    repo.commit()
    assert repo.data()["rows"][0]["starts"] == "continues earlier-64c-0123abcd"


def test_what_is_not_rendered_is_refused(repo: Repo) -> None:
    repo.experiment()
    repo.commit()
    repo.branch("topic")
    repo.content.experiment(model="qwen3-0.6b", maxtext={"steps": 9})
    repo.content.experiment("new", model="qwen3-0.6b")
    repo.commit()
    assert repo.effects() == [
        ("refuse", "new", "it is not rendered: run renderer render"),
        ("refuse", "run", "its rendered files are those of other content: run renderer render"),
    ]


def test_two_files_of_one_name_are_refused(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment("one", launch={"name": "same"})
    repo.experiment("two", launch={"name": "same"}, maxtext={"steps": 7})
    repo.commit()
    assert repo.effects()[1] == (
        "refuse",
        "same",
        "its name qwen3-0.6b/same is that of experiments/qwen3-0.6b/one.yml too",
    )


def test_other_merges_meanwhile_are_not_taken_for_removals(repo: Repo) -> None:
    repo.experiment("old")
    repo.commit()
    repo.branch("first")
    repo.experiment("one")
    repo.commit()
    repo.branch("second")
    repo.experiment("two")
    repo.commit()
    repo.branch("third")
    repo.remove("old")
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    repo.git("merge", "--quiet", "--no-ff", "first")
    assert repo.effects("--head", "second") == [("launch", "two", "new experiment")]
    repo.git("merge", "--quiet", "--squash", "second")
    repo.commit("squash of second")
    assert repo.effects("--head", "third") == [("stop", "old", "its file was removed")]
    repo.git("checkout", "--quiet", "third")
    repo.git("rebase", "--quiet", "main")
    assert repo.effects("--head", "third") == [("stop", "old", "its file was removed")]
    assert repo.effects("--head", "first") == []
    assert repo.effects("--head", "second") == []


def test_presets_that_moved_on_the_target_are_told(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    repo.content.edit("presets/qwen3-0.6b/model.yml", "\nmaxtext:\n", "\nmaxtext:\n  adam_eps: 1.0e-7\n")
    repo.commit("presets")
    repo.git("checkout", "--quiet", "topic")
    (drift,) = (value for value in repo.data()["values"] if value["role"] == "drift")
    assert (drift["path"], drift["old"], drift["new"], drift["layer"]) == (
        "maxtext.adam_eps",
        "(absent)",
        "1.0e-07",
        "model",
    )


def test_both_sides_changed_a_file(repo: Repo) -> None:
    repo.experiment()
    repo.commit()
    repo.branch("topic")
    repo.experiment(maxtext={"steps": 7})
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    repo.experiment(maxtext={"steps": 8})
    repo.commit()
    notices = repo.data("--head", "topic")["notices"]
    file = "experiments/qwen3-0.6b/run.yml"
    assert f"{file} changed on the target too since the branch left it: update the branch" in notices


def test_a_name_that_the_rendered_files_do_not_carry_is_refused(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    repo.content.experiment(model="qwen3-0.6b", launch={"name": "other"})
    repo.commit()
    reason = "its rendered files are those of another name: run renderer render"
    assert repo.effects() == [("refuse", "other", reason)]


def test_hand_edited_files_are_refused(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    repo.content.edit("rendered/test/qwen3-0.6b/run/run.yml", "\nsteps: 20\n", "\nsteps: 21\n")
    repo.commit()
    assert repo.effects() == [("refuse", "run", "its rendered files were edited by hand: run renderer render")]


def test_the_limits_hold_in_each_environment(repo: Repo) -> None:
    repo.content.write("presets/policy.yml", "merge:\n  launches: 1\n")
    repo.commit("limits")
    repo.branch("topic")
    repo.experiment("one")
    repo.experiment("two", launch=PROD)
    repo.commit("one each")
    assert repo.data()["limits"] == []
    repo.experiment("three", launch=PROD)
    repo.commit("another of prod")
    assert repo.data()["limits"] == ["would launch 2 runs, at most 1 is allowed in prod"]
