"""Freezing on real git repositories: what `render` keeps, restores and renders anew, and what `--check` says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from content import tree
from repository import PROD, Repo

RUN = "rendered/test/qwen3-0.6b/run"
PRESET = "presets/qwen3-0.6b/model.yml"
EXPERIMENT = "experiments/qwen3-0.6b/run.yml"
FROZEN = "1 frozen: on main, and their content did not change"
UP_TO_DATE = "1 experiments are rendered and up to date"


def launched(repo: Repo, **given: object) -> dict[str, bytes]:
    """Put an experiment and its rendered run on main, stand on a branch, and return the run's files."""
    repo.experiment(**given)
    repo.commit("launched")
    repo.branch("topic")
    return tree(repo.content.root)


def edit_preset(repo: Repo) -> None:
    repo.content.edit(PRESET, "\nmaxtext:\n", "\nmaxtext:\n  learning_rate: 1.5e-3\n")


def rewrite(repo: Repo, old: str, new: str) -> None:
    repo.content.edit(EXPERIMENT, old, new)


def render(repo: Repo, *arguments: str) -> tuple[int, list[str]]:
    """Run `renderer render --base main` for the one experiment; return the code and all lines."""
    code, out, err = repo.content.run("render", "--base", "main", "qwen3-0.6b/run", *arguments)
    return code, [*err.splitlines(), *out.splitlines()]


def check(repo: Repo, *arguments: str) -> tuple[int, list[str]]:
    """Run `renderer render --check` for everything; return the code and all lines."""
    base = () if "--base" in arguments else ("--base", "main")
    code, out, err = repo.content.run("render", "--check", *base, *arguments)
    return code, [*err.splitlines(), *out.splitlines()]


def test_presets_do_not_reach_a_launched_run(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    assert render(repo) == (0, [FROZEN, "nothing to write: rendered/ is up to date"])
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    assert tree(repo.content.root) == before


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("presets/policy.yml", "environments:\n  test:\n    buckets: []\n"),
        ("presets/qwen3-0.6b/topology/64chips/4k.yml", "maxtext:\n  ici_fsdp_parallelism: 3\n"),
        (PRESET, "deploy:\n  BOGUS: 1\n"),
    ],
)
def test_stricter_rules_do_not_turn_a_frozen_run_red(path: str, text: str, repo: Repo) -> None:
    launched(repo)
    repo.content.write(path, text)
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])


def test_refresh_renders_anew_and_what_it_wrote_is_legal(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    assert render(repo, "--refresh") == (0, ["2 files written, 0 deleted"])
    refreshed = tree(repo.content.root)
    assert refreshed != before
    assert check(repo) == (0, [UP_TO_DATE])
    assert render(repo) == (0, ["nothing to write: rendered/ is up to date"])
    assert tree(repo.content.root) == refreshed


def test_refresh_takes_names_only(repo: Repo) -> None:
    code, _, err = repo.content.run("render", "--refresh")
    assert (code, err.splitlines()[-1]) == (
        2,
        "Error: --refresh needs the names of the experiments to render anew",
    )


def test_hand_edits_of_a_frozen_run_are_found_and_undone(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    repo.content.edit(f"{RUN}/run.yml", "\nsteps: ", "\nsteps: 9")
    edited = f"{RUN}/run.yml: was edited by hand; run renderer render"
    assert check(repo) == (1, [edited, "1 files under rendered/ are not what they should be"])
    assert render(repo) == (0, [FROZEN, "1 files written, 0 deleted"])
    assert tree(repo.content.root) == before


def test_files_of_a_third_rendering_are_neither_the_targets_nor_a_refresh(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    render(repo, "--refresh")
    repo.git("checkout", "--quiet", PRESET)
    said = "is not as reviewed, and its experiment's content did not change; run renderer render"
    wrong = [f"{RUN}/{name}: {said}" for name in ("jobset.yml", "run.yml")]
    assert check(repo) == (1, [*wrong, "2 files under rendered/ are not what they should be"])
    assert render(repo) == (0, [FROZEN, "2 files written, 0 deleted"])
    assert tree(repo.content.root) == before


def test_an_edit_of_the_content_frees_the_run(repo: Repo) -> None:
    launched(repo)
    edit_preset(repo)
    rewrite(repo, '  "owner"', '  "resume": "other"\n  "owner"')
    assert render(repo) == (0, ["3 files written, 0 deleted"])
    assert b"learning_rate: 0.0015" in tree(repo.content.root)[f"{RUN}/run.yml"]
    assert check(repo) == (0, [UP_TO_DATE])


def test_comments_and_the_order_of_keys_are_no_content(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    rewrite(repo, '  "chips": 64\n', "")
    rewrite(repo, '  "branch": ', '  # again\n  "chips": 64\n  "branch": ')
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    assert tree(repo.content.root) == before


def names(repo: Repo) -> list[str]:
    """Return every line of the run's files that holds a name, an owner or a digest."""
    text = "".join(data.decode() for path, data in tree(repo.content.root).items() if path.startswith(RUN))
    return [
        line.strip() for line in text.splitlines() if re.search(r"name: \"r|RUN_NAME|value: \"run-|owner|digest", line)
    ]


def test_another_attempt_changes_names_only(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    old = names(repo)
    rewrite(repo, '  "owner"', '  "attempt": 2\n  "owner"')
    assert check(repo)[1][0] == (
        f"{RUN}/jobset.yml: is not as reviewed, and its experiment's content did not change; run renderer render"
    )
    assert render(repo) == (0, [FROZEN, "1 files written, 0 deleted"])
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    run = re.search(r'"(run-64c-[0-9a-f]{8})"', "".join(old))[1]
    changed = [(was, now) for was, now in zip(old, names(repo), strict=True) if was != now]
    assert changed[0] == (f'name: "{run}"', f'name: "{run}-a2"')
    assert changed[1][0].startswith("renderer/files-digest")
    assert changed[2:] == [(f'name: "run-{run}"', f'name: "run-{run}-a2"')]
    rewrite(repo, '  "attempt": 2\n', "")
    assert render(repo) == (0, [FROZEN, "1 files written, 0 deleted"])
    assert tree(repo.content.root) == before


def test_another_attempt_of_a_run_with_a_watcher(repo: Repo) -> None:
    launch = {"environment": "prod", "image": "v1", "branch": None}
    deploy = {"ENABLE_HF_CONVERSION": True, "HF_OUTPUT_DIRECTORY": "gs://bucket/hf", "HF_WATCHER_IMAGE": "r/w:1"}
    repo.experiment(launch=launch, deploy=deploy)
    repo.commit("launched")
    repo.branch("topic")
    repo.experiment(launch={**launch, "attempt": 3, "owner": "others"}, deploy=deploy)
    frozen = tree(repo.content.root)
    assert repo.content.run("render", "--base", "main", "--refresh", "qwen3-0.6b/run").out == (
        "nothing to write: rendered/ is up to date\n"
    )
    assert tree(repo.content.root) == frozen


@pytest.mark.parametrize("owner", ["others", None])
def test_another_owner_changes_the_label_only(owner: str | None, repo: Repo) -> None:
    launched(repo)
    repo.experiment(launch={"owner": owner})
    frozen = tree(repo.content.root)
    assert render(repo, "--refresh") == (0, ["nothing to write: rendered/ is up to date"])
    assert tree(repo.content.root) == frozen
    assert (b'renderer/owner: "others"' in frozen[f"{RUN}/jobset.yml"]) == (owner is not None)


@pytest.mark.parametrize("key", ["state: stopped", "supersede: keep"])
def test_what_is_meant_for_the_launch_changes_no_byte(key: str, repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    rewrite(repo, '  "owner"', f'  {key}\n  "owner"')
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    assert tree(repo.content.root) == before


def test_a_wrong_intent_of_a_frozen_run_is_an_error(repo: Repo) -> None:
    launched(repo)
    rewrite(repo, '  "owner"', '  attempt: 0\n  state: stoped\n  "owner"')
    code, lines = check(repo)
    assert (code, [line.split(": ")[1] for line in lines if line.startswith("exp")]) == (
        1,
        ["launch.attempt", "launch.state"],
    )


def test_a_prod_run_keeps_an_owner(repo: Repo) -> None:
    repo.experiment(launch=PROD)
    repo.commit("launched")
    repo.branch("topic")
    rewrite(repo, '  "owner": "team"\n', "")
    assert check(repo)[1] == [f"{EXPERIMENT}:5:18: launch.owner: missing: prod runs have an owner; write launch.owner"]


def test_a_renamed_file_that_keeps_its_name_takes_its_folder_along(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    repo.git("mv", EXPERIMENT, EXPERIMENT.replace("run.yml", "better.yml"))
    repo.content.edit(EXPERIMENT.replace("run.yml", "better.yml"), '  "owner"', '  "name": "run"\n  "owner"')
    code, out, err = repo.content.run("render", "--base", "main")
    assert (code, err, out.splitlines()[-1]) == (0, f"{FROZEN}\n", "3 files written, 3 deleted")
    after = tree(repo.content.root)
    assert after == {path.replace("/run/", "/better/"): data for path, data in before.items()}
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    repo.commit("renamed")
    assert repo.effects() == [("nothing", "run", f"renamed from {EXPERIMENT}; the run stays the same")]
    repo.git("checkout", "--quiet", "main")
    repo.git("merge", "--quiet", "topic")
    repo.branch("next")
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])


def test_a_renamed_file_with_another_name_is_rendered_anew(repo: Repo) -> None:
    launched(repo)
    edit_preset(repo)
    repo.git("mv", EXPERIMENT, EXPERIMENT.replace("run.yml", "better.yml"))
    code, out, err = repo.content.run("render", "--base", "main")
    assert (code, err, out.splitlines()[-1]) == (0, "", "3 files written, 3 deleted")
    assert b'renderer/experiment: "better"' in tree(repo.content.root)["rendered/test/qwen3-0.6b/better/jobset.yml"]


def test_a_name_written_into_a_launched_experiment_frees_it_if_it_is_another(repo: Repo) -> None:
    launched(repo)
    edit_preset(repo)
    rewrite(repo, '  "owner"', '  "name": "run"\n  "owner"')
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    rewrite(repo, '  "name": "run"', '  "name": "other"')
    assert render(repo) == (0, ["2 files written, 0 deleted"])


def test_another_environment_is_another_run(repo: Repo) -> None:
    launched(repo)
    repo.content.experiment("run", model="qwen3-0.6b", launch=PROD)
    code, out, err = repo.content.run("render", "--base", "main")
    assert (code, err, out.splitlines()[-1]) == (0, "", "3 files written, 3 deleted")


def test_a_removed_experiment_takes_its_run_along(repo: Repo) -> None:
    launched(repo)
    (repo.content.root / EXPERIMENT).unlink()
    code, out, _ = repo.content.run("render", "--base", "main")
    assert (code, out.splitlines()[-1]) == (0, "0 files written, 7 deleted")


def test_what_the_target_does_not_have_is_rendered_freely(repo: Repo) -> None:
    repo.branch("topic")
    repo.experiment()
    repo.commit("not merged yet")
    edit_preset(repo)
    assert render(repo) == (0, ["2 files written, 0 deleted"])


def clone(repo: Repo, folder: Path, *options: str) -> Repo:
    subprocess.run(["git", "clone", "--quiet", *options, repo.content.root.as_uri(), str(folder)], check=True)
    return Repo(type(repo.content)(folder))


@pytest.mark.parametrize(
    ("options", "prepare", "said"),
    [
        ((), lambda _: None, "1 frozen: on origin/main, and their content did not change"),
        (("--depth=1",), lambda _: None, "1 frozen: on origin/main, and their content did not change"),
        (
            (),
            lambda r: r.git("checkout", "--quiet", "--detach"),
            "1 frozen: on origin/main, and their content did not change",
        ),
        (
            (),
            lambda r: r.git("remote", "remove", "origin"),
            "1 frozen as they are on disk: the target branch is not known (origin has no default branch here; "
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
    assert cloned.content.run("render", "--check").err == "1 frozen: on origin/main, and their content did not change\n"
    monkeypatch.setenv("GITHUB_BASE_REF", "release")
    assert cloned.content.run("render", "--check").err == (
        "1 frozen as they are on disk: the target branch is not known "
        "(origin/release is not fetched; name the target with --base)\n"
    )


def test_without_git_the_disk_stands_for_the_target(repo: Repo) -> None:
    launched(repo)
    edit_preset(repo)
    (repo.content.root / ".git").rename(repo.content.root.parent / "git")
    said = "1 frozen as they are on disk: the target branch is not known (this is not a git repository)"
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
                assert check(repo)[1][-1] == "2 files under rendered/ are not what they should be"
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


def test_old_pod_scripts_stay_with_the_runs_that_were_reviewed_with_them(repo: Repo) -> None:
    launched(repo)
    pod = next(path for path in tree(repo.content.root) if path.startswith("rendered/_pod/")).split("/")[2]
    code, out, _ = repo.content.run("render", "--base", "main")
    assert (code, out.splitlines()[-1]) == (0, "nothing to write: rendered/ is up to date")
    repo.content.write(f"rendered/_pod/{pod}/bootstrap.sh", "echo\n")
    assert check(repo)[1][0] == f"rendered/_pod/{pod}/bootstrap.sh: was edited by hand; run renderer render"


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
            "1 digests are not those of the files",
        ],
    )


def test_digests_see_another_experiment_and_edited_pod_scripts(repo: Repo) -> None:
    launched(repo)
    rewrite(repo, '"main"', '"other"')
    pod = next(path for path in tree(repo.content.root) if path.endswith("bootstrap.sh"))
    repo.content.write(pod, "echo\n")
    assert digests(repo)[1][:2] == [
        f"{RUN}/jobset.yml: its experiment digest is not that of the experiment: it was rendered from other content",
        f"{pod.rpartition('/')[0]}: the pod scripts are missing or edited: their digest is another",
    ]


def test_a_new_run_may_not_take_a_frozen_runs_output(repo: Repo) -> None:
    launched(repo, maxtext={"run_name": "same"})
    repo.content.experiment("two", model="qwen3-0.6b", maxtext={"run_name": "same", "steps": 5})
    assert check(repo)[1][0] == (
        "experiments/qwen3-0.6b/two.yml:1:1: maxtext.run_name: run_name same and its output directory are taken by "
        f"{EXPERIMENT}"
    )
