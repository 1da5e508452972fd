"""A launched run goes with its experiment to another file, whatever the old path holds by then."""

from __future__ import annotations

import pytest
from content import tree
from frozen import edit_preset
from repository import MODEL, Repo

FOLDER = f"experiments/{MODEL}"
RUNS = f"rendered/test/{MODEL}"


def named(repo: Repo, file: str, text: str, name: str) -> None:
    """Write an experiment that is called otherwise than its file."""
    repo.content.write(f"{FOLDER}/{file}.yml", text.replace("launch:\n", f"launch:\n  name: {name}\n"))


def rendered(repo: Repo) -> tuple[int, str, str]:
    """Render everything; return the code, how many runs are frozen, and what was written."""
    code, out, err = repo.content.run("render", "--base", "main")
    return code, err.partition(" ")[0], out.splitlines()[-1]


def text_of(repo: Repo, name: str) -> str:
    return (repo.content.root / FOLDER / f"{name}.yml").read_text()


@pytest.fixture
def launched(repo: Repo) -> dict[str, bytes]:
    """Two experiments and their runs on main, whose presets changed since; return the runs' files."""
    for name, steps in (("one", 5), ("two", 6)):
        repo.experiment(name, maxtext={"steps": steps})
    before = tree(repo.content.root)
    repo.commit("launched")
    edit_preset(repo)
    repo.commit("presets")
    repo.branch("topic")
    return before


def test_an_old_path_that_is_used_again_takes_no_run(repo: Repo, launched: dict[str, bytes]) -> None:
    old = text_of(repo, "one")
    named(repo, "first", old, "one")
    repo.content.experiment("one", model=MODEL, launch={"name": "second"}, maxtext={"steps": 7})
    assert rendered(repo) == (0, "2", "5 files written, 0 deleted")
    now = tree(repo.content.root)
    for name in ("derive.json", "jobset.yml", "run.yml"):
        assert now[f"{RUNS}/first/{name}"] == launched[f"{RUNS}/one/{name}"]
    assert repo.content.run("render", "--check", "--base", "main").code == 0
    repo.commit()
    assert repo.effects() == [
        ("nothing", "one", f"renamed from {FOLDER}/one.yml; the run stays the same"),
        ("launch", "second", "new experiment"),
    ]


def test_two_experiments_that_change_places_keep_their_runs(repo: Repo, launched: dict[str, bytes]) -> None:
    one, two = text_of(repo, "one"), text_of(repo, "two")
    named(repo, "one", two, "two")
    named(repo, "two", one, "one")
    assert rendered(repo) == (0, "2", "4 files written, 0 deleted")
    now = tree(repo.content.root)
    for name in ("derive.json", "jobset.yml", "run.yml"):
        assert now[f"{RUNS}/one/{name}"] == launched[f"{RUNS}/two/{name}"]
        assert now[f"{RUNS}/two/{name}"] == launched[f"{RUNS}/one/{name}"]
    repo.commit()
    assert repo.effects() == [
        ("nothing", "one", f"renamed from {FOLDER}/one.yml; the run stays the same"),
        ("nothing", "two", f"renamed from {FOLDER}/two.yml; the run stays the same"),
    ]


def test_a_copy_under_another_name_is_no_launched_run(repo: Repo, launched: dict[str, bytes]) -> None:
    named(repo, "copy", text_of(repo, "one"), "other")
    assert rendered(repo) == (0, "2", "3 files written, 0 deleted")
    now = tree(repo.content.root)
    assert b"learning_rate: 0.0015" in now[f"{RUNS}/copy/run.yml"]
    assert {path: now[path] for path in launched} == launched
