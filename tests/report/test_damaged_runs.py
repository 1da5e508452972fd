"""A merge whose rendered files apply would refuse is reported as refused, in the same words."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from repository import MODEL, Repo

from renderer import names
from renderer.outputs import POD_SCRIPTS

RUN = f"rendered/test/{MODEL}/run"


def reseal(repo: Repo, change: Callable[[dict[str, bytes]], None]) -> None:
    """Change a run's files and give them the digest of their bytes, as a careful hand would."""
    folder = repo.content.root / RUN
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    change(files)
    for name, data in names.seal(files).items():
        (folder / name).write_bytes(data)


def edited(repo: Repo) -> None:
    def more_steps(files: dict[str, bytes]) -> None:
        files["run.yml"] = files["run.yml"].replace(b"\nsteps: 20\n", b"\nsteps: 2000000\n")

    reseal(repo, more_steps)


def damaged(repo: Repo) -> None:
    reseal(repo, lambda files: files.update({"run.yml": b"steps: [\n"}))


def without_scripts(repo: Repo) -> None:
    shutil.rmtree(repo.content.root / POD_SCRIPTS)


def with_other_scripts(repo: Repo) -> None:
    next((repo.content.root / POD_SCRIPTS).glob("*/bootstrap.sh")).write_text("exit 0\n")


@pytest.mark.parametrize(
    ("damage", "place", "said"),
    [
        (edited, f"{RUN}/jobset.yml: ", "its content digest is not that of the run's files; run renderer render"),
        (damaged, f"{RUN}/jobset.yml: ", "is not a rendered run's: while parsing a flow node"),
        (without_scripts, f"{POD_SCRIPTS}/", ": is missing; run renderer render"),
        (with_other_scripts, f"{POD_SCRIPTS}/", ": holds other files than were rendered: their digest is "),
    ],
)
def test_what_apply_would_refuse_is_refused(damage: Callable[[Repo], None], place: str, said: str, repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    damage(repo)
    repo.commit()
    ((effect, _, reason),) = repo.effects()
    assert (effect, reason.startswith(place), said in reason) == ("refuse", True, True), reason
    ran = repo.report()
    assert (ran.code, ran.err) == (1, "1 run would be refused a launch: the report says why\n")
    # The merge queue's check refuses it too, for the same reason.
    assert reason.partition(place)[2] in repo.content.run("render", "--check", "--digests").err


def test_the_scripts_are_those_of_the_merge(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    repo.experiment("other")
    repo.commit()
    repo.git("checkout", "--quiet", "topic")
    without_scripts(repo)
    repo.commit()
    assert repo.effects() == [("launch", "run", "new experiment")]


def test_a_rendered_file_that_no_cluster_takes_is_not_parsed(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    reseal(repo, lambda files: files.update({"run.yml": files["run.yml"] + b"#" * (2 << 20)}))
    repo.commit()
    reason = "a rendered file has more than 2 MiB, which no cluster takes"
    assert repo.effects() == [("refuse", "run", reason)]
