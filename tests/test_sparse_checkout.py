"""In a checkout that leaves files out, `render` keeps what these need, and takes away what nothing needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from content import Content, tree
from repository import MODEL, PROD, Repo

EXPERIMENT = f"experiments/{MODEL}/run.yml"


def sparse(repo: Repo, *patterns: str) -> Content:
    """Leave everything out of the checkout but presets, datasets and `patterns`."""
    repo.git("sparse-checkout", "set", "--no-cone", "/presets", "/datasets", *patterns)
    return repo.content


@pytest.fixture
def launched(repo: Repo) -> Repo:
    """Two experiments whose runs share their pod scripts."""
    repo.experiment("run")
    repo.experiment("other", launch=PROD)
    repo.commit()
    return repo


@pytest.mark.parametrize(
    "patterns",
    [
        ("/rendered/_pod",),
        ("/rendered",),
        ("/rendered/_pod", "/rendered/test"),
        (f"/{EXPERIMENT}", "/rendered"),
        (f"/{EXPERIMENT}", "/rendered/test", "/rendered/_pod"),
    ],
)
@pytest.mark.parametrize("base", [(), ("--base", "main")])
def test_nothing_is_deleted_that_an_absent_file_needs(
    patterns: tuple[str, ...], base: tuple[str, ...], launched: Repo
) -> None:
    content = sparse(launched, *patterns)
    before = tree(content.root)
    assert content.run("render", "--check", *base).code == 0
    assert content.run("render", *base).out.splitlines()[-1] == "nothing to write: rendered/ is up to date"
    assert tree(content.root) == before


def test_what_is_deleted_here_takes_its_run_along_and_leaves_the_others_their_scripts(launched: Repo) -> None:
    content = sparse(launched, f"/{EXPERIMENT}", "/rendered/test", "/rendered/_pod")
    (content.root / EXPERIMENT).unlink()
    assert content.run("render").out.splitlines()[-1] == "0 files written, 3 deleted"
    assert {Path(path).parts[1] for path in tree(content.root)} == {"_pod"}


def test_a_whole_checkout_keeps_nothing_back(launched: Repo) -> None:
    content = sparse(launched, "/rendered/_pod")
    launched.git("sparse-checkout", "disable")
    for name in ("run", "other"):
        (content.root / f"experiments/{MODEL}/{name}.yml").unlink()
    assert content.run("render").out.splitlines()[-1] == "0 files written, 10 deleted"


def test_a_folder_that_git_does_not_know_has_nothing_left_out(tmp_path: Path, launched: Repo) -> None:
    copy = Content(shutil.copytree(launched.content.root, tmp_path / "copy"))
    shutil.rmtree(copy.root / ".git")
    (copy.root / EXPERIMENT).unlink()
    assert copy.run("render").out.splitlines()[-1] == "0 files written, 3 deleted"
