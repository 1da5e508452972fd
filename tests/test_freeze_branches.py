"""Freezing across branches, merges and clones: what the target is, and that no branch turns another's run red."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from content import tree
from frozen import FROZEN, PRESET, RUN, UP_TO_DATE, check, edit_preset, launched, render
from repository import Repo


def clone(repo: Repo, folder: Path, *options: str) -> Repo:
    subprocess.run(["git", "clone", "--quiet", *options, repo.content.root.as_uri(), str(folder)], check=True)
    return Repo(type(repo.content)(folder))


@pytest.mark.parametrize(
    ("options", "prepare", "said"),
    [
        ((), lambda _: None, "1 frozen: on origin/main, and its content did not change"),
        (("--depth=1",), lambda _: None, "1 frozen: on origin/main, and its content did not change"),
        (
            (),
            lambda r: r.git("checkout", "--quiet", "--detach"),
            "1 frozen: on origin/main, and its content did not change",
        ),
        (
            (),
            lambda r: r.git("remote", "remove", "origin"),
            "1 frozen as it is on disk: the target branch is not known (origin has no default branch here; "
            "name the target with --base)",
        ),
    ],
)
def test_the_target_in_clones(
    options: tuple[str, ...], prepare: Callable[[Repo], object], said: str, repo: Repo, tmp_path: Path
) -> None:
    launched(repo)
    repo.git("checkout", "--quiet", "main")
    cloned = clone(repo, tmp_path / "clone", *options)
    prepare(cloned)
    edit_preset(cloned)
    code, out, err = cloned.content.run("render", "--check")
    assert (code, err, out) == (0, f"{said}\n", f"{UP_TO_DATE}\n")


def test_the_pull_requests_target_in_ci(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched(repo)
    cloned = clone(repo, tmp_path / "clone")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    assert cloned.content.run("render", "--check").err == "1 frozen: on origin/main, and its content did not change\n"
    monkeypatch.setenv("GITHUB_BASE_REF", "release")
    assert tuple(cloned.content.run("render", "--check")) == (
        1,
        "",
        "command line: --base: origin/release is not fetched; name the target with --base\n",
    )


def test_a_tag_does_not_stand_for_the_target(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched(repo)
    edit_preset(repo)
    render(repo, "--refresh")
    repo.git("checkout", "--quiet", PRESET)
    repo.commit("neither the target's nor a refresh")
    repo.git("tag", "origin/main", "topic")
    cloned = clone(repo, tmp_path / "clone")
    cloned.git("fetch", "--quiet", "--tags")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    code, _, err = cloned.content.run("render", "--check")
    assert (code, err.splitlines()[-1]) == (1, "2 files are not what renderer render writes")


def test_without_git_the_disk_stands_for_the_target(repo: Repo) -> None:
    launched(repo)
    edit_preset(repo)
    (repo.content.root / ".git").rename(repo.content.root.parent / "git")
    said = "1 frozen as it is on disk: the target branch is not known (this is not a git repository)"
    assert repo.content.run("render", "--check").err == f"{said}\n"
    repo.content.edit(f"{RUN}/run.yml", "\nsteps: ", "\nsteps: 9")
    edited = f"{RUN}/run.yml: was edited by hand; run renderer render"
    assert edited in repo.content.run("render", "--check").err.splitlines()


def test_a_base_that_is_none(repo: Repo) -> None:
    assert tuple(repo.content.run("render", "--base", "nowhere")) == (
        1,
        "",
        "command line: --base: nowhere is not a commit here\n",
    )


def test_a_branch_that_is_behind_is_not_red(repo: Repo) -> None:
    """The target refreshes and edits runs that the branch does not touch."""
    launched(repo)
    repo.git("checkout", "--quiet", "main")
    edit_preset(repo)
    assert repo.content.run("render", "--base", "main", "--refresh", "qwen3-0.6b/run").code == 0
    repo.commit("refreshed")
    repo.git("checkout", "--quiet", "topic")
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    repo.git("checkout", "--quiet", "main")
    repo.experiment(launch={"branch": "other"})
    repo.commit("edited")
    repo.git("checkout", "--quiet", "topic")
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])


def test_a_stacked_branch_after_a_squash_merge(repo: Repo) -> None:
    """main holds the first branch's run as one other commit; the second branch goes on from the first."""
    repo.branch("first")
    repo.experiment()
    repo.commit("one")
    repo.branch("second", "first")
    edit_preset(repo)
    repo.commit("a preset, not yet merged")
    repo.git("checkout", "--quiet", "main")
    repo.git("merge", "--quiet", "--squash", "first")
    repo.commit("squashed")
    repo.git("checkout", "--quiet", "second")
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    assert render(repo) == (0, [FROZEN, "nothing to write: rendered/ is up to date"])


def test_a_preset_change_on_the_target_between_render_and_merge(repo: Repo) -> None:
    """The branch was rendered against its own tree; after the merge its run is frozen, over presets that are newer."""
    repo.branch("topic")
    repo.experiment()
    repo.commit("new")
    repo.git("checkout", "--quiet", "main")
    edit_preset(repo)
    repo.commit("preset")
    repo.git("merge", "--quiet", "topic")
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    assert check(repo, "--digests")[0] == 0


@pytest.mark.parametrize("how", [("merge", "--no-ff"), ("rebase",), ("squash",)])
def test_three_interleaved_merges(how: tuple[str, ...], repo: Repo) -> None:
    """Three branches from one commit, merged in turn: none makes another's run stale."""
    for name in ("one", "two", "three"):
        repo.branch(name)
        if name == "two":
            edit_preset(repo)
        repo.experiment(name)
        repo.commit(name)
    for name in ("one", "two", "three"):
        if how == ("rebase",):
            repo.git("rebase", "--quiet", "main", name)
            if name == "three":  # it stands over newer presets now, and nobody launched it yet
                assert check(repo)[1][-1] == "2 files are not what renderer render writes"
                assert repo.content.run("render", "--base", "main").code == 0
                repo.commit("rendered again")
            assert check(repo)[0] == 0
            repo.git("checkout", "--quiet", "main")
            repo.git("merge", "--quiet", "--ff-only", name)
        elif how == ("squash",):
            repo.git("checkout", "--quiet", "main")
            repo.git("merge", "--quiet", "--squash", name)
            repo.commit(name)
        else:
            repo.git("checkout", "--quiet", "main")
            repo.git("merge", "--quiet", "--no-edit", *how[1:], name)
        assert check(repo, "--digests")[0] == 0
    assert check(repo)[1][-1] == "3 experiments are rendered and up to date"


def test_a_revert_brings_back_the_bytes(repo: Repo) -> None:
    before = launched(repo)
    repo.git("checkout", "--quiet", "main")
    repo.experiment(launch={"branch": "other"})
    repo.commit("edited")
    repo.git("revert", "--no-edit", "HEAD")
    assert tree(repo.content.root) == before
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    repo.branch("revert", "main~1")
    repo.git("revert", "--no-edit", "HEAD")
    edit_preset(repo)
    repo.git("checkout", "--quiet", PRESET)
    assert check(repo, "--base", "main~1") == (0, [UP_TO_DATE])
