"""What the history of the target says was launched: an experiment is its model and its name, whatever its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from repository import MODEL, Repo, plain

KNOWN = "run-64c was launched before; raise launch.attempt to run it again"


def renamed(repo: Repo, steps: int) -> None:
    """Go on with the run of `run.yml` in the file `other.yml`."""
    repo.remove("run")
    repo.experiment("other", launch={"name": "run"}, maxtext={"steps": steps})


def test_content_that_ran_under_an_earlier_path_is_not_launched_again(repo: Repo) -> None:
    for steps in (11, 12):
        repo.experiment(maxtext={"steps": steps})
        repo.commit()
    renamed(repo, 12)
    repo.commit()
    repo.branch("topic")
    repo.experiment("other", launch={"name": "run"}, maxtext={"steps": 11})
    repo.commit()
    assert repo.effects() == [
        ("nothing", "run", f"reverted to earlier content: {KNOWN}"),
        ("stop", "run", "its content was reverted"),
    ]


@pytest.mark.parametrize("known_by", ["history", "ledger"])
def test_an_experiment_that_comes_back_in_another_file_is_not_launched_again(
    known_by: str, repo: Repo, tmp_path: Path
) -> None:
    repo.experiment(maxtext={"steps": 11})
    repo.commit()
    repo.remove("run")
    repo.commit()
    repo.branch("topic")
    repo.experiment("other", launch={"name": "run"}, maxtext={"steps": 11})
    repo.commit()
    (row,) = repo.data()["rows"]
    if known_by == "ledger":
        run = {"name": row["run"], "experiment": f"{MODEL}/run", "environment": "test", "state": "stopped"}
        ledger = tmp_path / "ledger.json"
        ledger.write_text(json.dumps({"runs": [run]}))
        (row,) = repo.data("--ledger", str(ledger))["rows"]
    assert (row["effect"], plain(row["reason"])) == ("nothing", KNOWN)


def test_the_next_attempt_in_another_file_continues_the_first(repo: Repo) -> None:
    repo.experiment(maxtext={"enable_checkpointing": True})
    repo.commit()
    repo.remove("run")
    repo.commit()
    repo.branch("topic")
    repo.experiment("other", launch={"name": "run", "attempt": 2}, maxtext={"enable_checkpointing": True})
    repo.commit()
    (row,) = repo.data()["rows"]
    assert (row["effect"], plain(row["starts"])) == ("launch", "continues run-64c")


def test_a_copy_under_another_name_is_launched(repo: Repo) -> None:
    repo.experiment(maxtext={"steps": 11})
    repo.commit()
    repo.branch("topic")
    repo.experiment("copy", maxtext={"steps": 11})
    repo.commit()
    assert repo.effects() == [("launch", "copy", "new experiment")]


def test_a_stopped_run_with_a_name_of_its_own_is_known_to_have_checkpoints(repo: Repo) -> None:
    given = {"enable_checkpointing": True, "run_name": "mine"}
    repo.experiment(maxtext=given)
    repo.commit()
    repo.experiment(launch={"state": "stopped"}, maxtext=given)
    repo.commit()
    repo.branch("topic")
    repo.experiment(maxtext={**given, "steps": 9})
    repo.commit()
    (row,) = repo.data()["rows"]
    assert (row["effect"], row["starts"]) == ("launch", "continues mine")
