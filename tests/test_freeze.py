"""What `render` keeps of launched runs, and what it renders anew."""

from __future__ import annotations

import re

import pytest
from content import tree
from frozen import EXPERIMENT, FROZEN, PRESET, RUN, UP_TO_DATE, check, edit_preset, launched, render, rewrite
from repository import PROD, Repo


def test_presets_do_not_reach_a_launched_run(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    assert render(repo) == (0, [FROZEN, "nothing to write: rendered/ is up to date"])
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    assert tree(repo.content.root) == before


def test_validate_counts_what_it_does_not_judge(repo: Repo) -> None:
    launched(repo)
    edit_preset(repo)
    said = "1 run frozen: judged again when its content changes\n0 errors, 0 warnings ("
    assert repo.content.run("validate").out.startswith(said)


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
    assert check(repo) == (1, [edited, "1 file is not what renderer render writes"])
    assert render(repo) == (0, [FROZEN, "1 file written, 0 deleted"])
    assert tree(repo.content.root) == before


def test_files_of_a_third_rendering_are_neither_the_targets_nor_a_refresh(repo: Repo) -> None:
    before = launched(repo)
    edit_preset(repo)
    render(repo, "--refresh")
    repo.git("checkout", "--quiet", PRESET)
    said = "is not as reviewed, and its experiment's content did not change; run renderer render"
    wrong = [f"{RUN}/{name}: {said}" for name in ("jobset.yml", "run.yml")]
    assert check(repo) == (1, [*wrong, "2 files are not what renderer render writes"])
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
    assert render(repo) == (0, [FROZEN, "1 file written, 0 deleted"])
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])
    run = re.search(r'"(run-64c-[0-9a-f]{8})"', "".join(old))[1]
    changed = [(was, now) for was, now in zip(old, names(repo), strict=True) if was != now]
    assert changed[0] == (f'name: "{run}"', f'name: "{run}-a2"')
    assert changed[1][0].startswith("renderer/files-digest")
    assert changed[2:] == [(f'name: "run-{run}"', f'name: "run-{run}-a2"')]
    rewrite(repo, '  "attempt": 2\n', "")
    assert render(repo) == (0, [FROZEN, "1 file written, 0 deleted"])
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


def test_a_new_run_may_not_take_a_frozen_runs_output(repo: Repo) -> None:
    launched(repo, maxtext={"run_name": "same"})
    repo.content.experiment("two", model="qwen3-0.6b", maxtext={"run_name": "same", "steps": 5})
    assert check(repo)[1][0] == (
        "experiments/qwen3-0.6b/two.yml:1:1: maxtext.run_name: run_name same and its output directory are taken by "
        f"{EXPERIMENT}"
    )


@pytest.mark.parametrize("key", ['"resume": ', "resume : ", "resume:\n      "])
def test_a_frozen_run_may_go_on_in_the_output_of_the_run_it_resumes(key: str, repo: Repo) -> None:
    repo.experiment("first")
    name = re.search(r'"(first-64c-[0-9a-f]{8})"', tree(repo.content.root)[FIRST].decode())[1]
    repo.experiment(launch={"resume": name})
    rewrite(repo, '"resume": ', key)
    repo.commit("launched")
    repo.branch("topic")
    assert check(repo)[1][-1] == "2 experiments are rendered and up to date"


FIRST = "rendered/test/qwen3-0.6b/first/jobset.yml"


def test_a_promise_called_resume_resumes_nothing(repo: Repo) -> None:
    launched(repo, maxtext={"run_name": "same"})
    repo.content.experiment("two", model="qwen3-0.6b", maxtext={"run_name": "same", "steps": 5})
    path = repo.content.root / EXPERIMENT
    path.write_text(path.read_text() + "checks:\n  resume: anything\n")
    codes = [line.split(": ")[1] for line in check(repo)[1] if line.startswith("experiments/")]
    assert codes == ["checks.resume", "maxtext.run_name"]


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        ("global_batch: 999", "promised 999, but the global batch of the frozen run is 128"),
        ("global_batch: many", "must be an integer, not the text"),
        ("global_bach: 128", "unknown key"),
    ],
)
def test_promises_are_held_against_the_frozen_run(promise: str, message: str, repo: Repo) -> None:
    launched(repo)
    edit_preset(repo)
    path = repo.content.root / EXPERIMENT
    path.write_text(path.read_text() + f"checks:\n  {promise}\n")
    code, lines = check(repo)
    assert (code, message in lines[0]) == (1, True), lines
    path.write_text(path.read_text().replace(promise, "global_batch: 128"))
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])


def test_a_file_renamed_back_takes_its_run_along(repo: Repo) -> None:
    better = EXPERIMENT.replace("run.yml", "better.yml")
    repo.experiment("better", launch={"name": "run"})
    repo.commit("launched")
    repo.branch("topic")
    before = tree(repo.content.root)
    edit_preset(repo)
    repo.git("mv", better, EXPERIMENT)
    rewrite(repo, '  "name": "run"\n', "")
    assert repo.content.run("render", "--base", "main").code == 0
    assert tree(repo.content.root) == {path.replace("/better/", "/run/"): data for path, data in before.items()}


def test_a_frozen_run_does_not_hide_that_the_file_lies_in_another_models_folder(repo: Repo) -> None:
    launched(repo)
    repo.git("mv", EXPERIMENT, "experiments/ling3-flash/run.yml", "-k")
    other = repo.content.root / "experiments/ling3-flash/run.yml"
    other.parent.mkdir(exist_ok=True)
    (repo.content.root / EXPERIMENT).rename(other)
    assert "launch.model: is qwen3-0.6b, but the file lies in experiments/ling3-flash/" in check(repo)[1][0]


def test_content_behind_a_link_is_none(repo: Repo) -> None:
    launched(repo)
    path = repo.content.root / EXPERIMENT
    path.rename(repo.content.root / "elsewhere.yml")
    path.symlink_to("../../elsewhere.yml")
    said = "is not an experiment: it is a symbolic link, of which git keeps only where it leads"
    assert check(repo)[1][0] == f"{EXPERIMENT}: {said}"
    path.parent.rename(repo.content.root / "elsewhere")
    path.parent.symlink_to("../elsewhere")
    assert check(repo)[1][0] == f"experiments/qwen3-0.6b: {said}"


def test_a_target_whose_run_lacks_a_file_is_no_target(repo: Repo) -> None:
    repo.experiment()
    (repo.content.root / f"{RUN}/run.yml").unlink()
    repo.commit("damaged")
    repo.branch("topic")
    assert check(repo)[1][0] == f"{RUN}/run.yml: is missing; run renderer render"
    assert render(repo) == (0, ["1 file written, 0 deleted"])


def test_pod_scripts_that_two_removals_left_on_the_target_turn_nobody_red(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched(repo)
    repo.git("checkout", "--quiet", "main")
    repo.content.write("rendered/_pod/0123456789ab/bootstrap.sh", "echo\n")
    repo.commit("left over")
    repo.branch("next")
    assert check(repo) == (0, [FROZEN, UP_TO_DATE])


def test_git_that_cannot_read_is_said(repo: Repo) -> None:
    launched(repo)
    (tree_object,) = [line.split()[2] for line in repo.git("ls-tree", "main", "rendered").splitlines()]
    (repo.content.root / f".git/objects/{tree_object[:2]}/{tree_object[2:]}").unlink()
    code, lines = check(repo)
    assert (code, lines[0][:24]) == (1, "git: ls-tree failed: err"), lines
