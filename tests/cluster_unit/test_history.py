"""What git tells of merges: which commits there are, and which pull request brought a run."""

from __future__ import annotations

import pytest

from tests.cluster_unit.committed_repo import CommittedRepo
from tests.repository import MODEL


def test_commits_are_those_after_a_base_the_newest_first(repo: CommittedRepo) -> None:
    base, *rest = [repo.commit(str(number)) for number in range(3)]
    assert repo.history.commits(rest[-1], base) == rest[::-1]
    assert repo.history.commits(rest[-1])[:3] == [*rest[::-1], base]
    assert repo.history.commits(base, base) == []
    assert repo.history.commits("0" * 40) == []


@pytest.mark.parametrize(
    ("message", "number"),
    [
        ("Merge pull request #12 from team/branch\n\nA run", "12"),
        ("A run (#7)", "7"),
        ("A run (#7)\n\nsee (#8)", "7"),
        ("A run, as in (#7) before", ""),
        ("A run", ""),
    ],
)
def test_the_pull_request_is_read_from_the_message(repo: CommittedRepo, message: str, number: str) -> None:
    base = repo.commit()
    head = repo.merge(message=message)
    assert repo.history.pull_requests(head, base) == {(MODEL, "run"): number}


def test_the_pull_request_is_the_last_one_that_touched_the_run(repo: CommittedRepo) -> None:
    base = repo.commit()
    repo.merge("first", "First (#1)")
    repo.git("checkout", "--quiet", "-b", "topic")
    repo.merge("second", "work in progress (#99)")
    repo.git("checkout", "--quiet", "main")
    repo.git("merge", "--quiet", "--no-ff", "--message", "Merge pull request #2 from topic", "topic")
    head = repo.commit("Other (#3)")
    assert repo.history.pull_requests(head, base) == {(MODEL, "first"): "1", (MODEL, "second"): "2"}
    assert repo.history.pull_requests(head, None)[(MODEL, "first")] == "1"


def test_a_shallow_clone_is_told(repo: CommittedRepo) -> None:
    assert not repo.history.shallow()
    repo.git("clone", "--quiet", "--depth=1", f"file://{repo.content.root}", str(repo.content.root / "clone"))
    assert type(repo.history)(repo.content.root / "clone").shallow()


@pytest.mark.parametrize(("file", "old", "new"), [("run.yml", "steps: 20", "steps: 21"), ("derive.json", "{", "{ ")])
def test_the_file_that_was_edited_by_hand_is_found(repo: CommittedRepo, file: str, old: str, new: str) -> None:
    repo.merge()
    folder = f"rendered/test/{MODEL}/run"
    path = repo.content.root / folder / file
    path.write_text(path.read_text().replace(old, new, 1))
    head = repo.commit("by hand")
    files = repo.reader(head).files(repo.run(head))
    assert repo.history.edited(head, folder, files) == [f"{folder}/{file}"]


def test_without_a_whole_commit_every_file_may_be_the_edited_one(repo: CommittedRepo) -> None:
    repo.experiment()
    folder = f"rendered/test/{MODEL}/run"
    path = repo.content.root / folder / "run.yml"
    path.write_text(path.read_text().replace("steps: 20", "steps: 21"))
    head = repo.commit()
    files = repo.reader(head).files(repo.run(head))
    names = [f"{folder}/{name}" for name in ("derive.json", "jobset.yml", "run.yml")]
    assert repo.history.edited(head, folder, files) == names
