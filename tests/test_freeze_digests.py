"""The pod scripts and digests of launched runs: old ones stay, and what does not fit its digest is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from content import tree
from frozen import FROZEN, RUN, UP_TO_DATE, check, launched, render, rewrite
from repository import Repo

from renderer import outputs
from renderer.jobset import pod_scripts


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Returns what makes the renderer's pod scripts others, as a later release has them, by a line at their end."""

    def change(line: str) -> None:
        changed = {name: data + f"# {line}\n".encode() for name, data in pod_scripts().items()}
        monkeypatch.setattr(outputs, "pod_scripts", lambda: changed)
        outputs.pod_digest.cache_clear()

    yield change
    outputs.pod_digest.cache_clear()


def pods(repo: Repo) -> dict[str, bytes]:
    return tree(repo.content.root, "rendered/_pod")


def test_old_pod_scripts_stay_with_the_runs_that_were_reviewed_with_them(
    repo: Repo, scripts: Callable[[str], None]
) -> None:
    before = launched(repo)
    old = pods(repo)
    scripts("newer")
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    assert render(repo) == (0, [FROZEN, "nothing to write: rendered/ is up to date"])
    shutil.rmtree(repo.content.root / "rendered/_pod")
    assert check(repo)[1][-1] == f"{len(old)} files are not what renderer render writes"
    assert render(repo) == (0, [FROZEN, f"{len(old)} files written, 0 deleted"])
    assert tree(repo.content.root) == before
    repo.experiment("beside")
    new = {path: data for path, data in pods(repo).items() if path not in old}
    assert pods(repo) == old | new
    assert {path.split("/")[2] for path in new} == {outputs.pod_digest()}
    assert all(data.endswith(b"# newer\n") for data in new.values())
    assert len(new) == len(old)
    assert check(repo)[0] == 0


def test_edited_pod_scripts_are_found_and_undone(repo: Repo, scripts: Callable[[str], None]) -> None:
    before = launched(repo)
    scripts("newer")
    pod = next(path for path in before if path.endswith("/bootstrap.sh"))
    repo.content.write(pod, "echo\n")
    assert check(repo)[1][0] == f"{pod}: was edited by hand; run renderer render"
    assert render(repo)[0] == 0
    assert tree(repo.content.root) == before


def digests(repo: Repo) -> tuple[int, list[str]]:
    code, out, err = repo.content.run("render", "--check", "--digests")
    return code, [*err.splitlines(), *out.splitlines()]


def test_digests_name_the_file(repo: Repo) -> None:
    launched(repo)
    assert digests(repo) == (0, ["every digest is that of its files"])
    repo.content.edit(f"{RUN}/run.yml", "\nsteps: ", "\nsteps: 9")
    assert digests(repo) == (
        1,
        [
            f"{RUN}/jobset.yml: its files digest is not that of the run's files: one of them was edited by hand",
            "1 digest is wrong",
        ],
    )


def test_digests_see_another_experiment_and_edited_pod_scripts(repo: Repo) -> None:
    launched(repo)
    rewrite(repo, '"main"', '"other"')
    pod = next(path for path in tree(repo.content.root) if path.endswith("bootstrap.sh"))
    repo.content.write(pod, "echo\n")
    folder = (repo.content.root / pod).parent
    edited = outputs.scripts_digest({path.name: path.read_bytes() for path in folder.iterdir()})
    assert digests(repo)[1][:2] == [
        f"{RUN}/jobset.yml: its experiment digest is not that of the experiment: it was rendered from other content",
        f"{pod.rpartition('/')[0]}: holds other files than were rendered: their digest is {edited}",
    ]
