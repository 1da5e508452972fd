"""bootstrap.sh in both modes against a local repository and stand-ins for pip, uv, gcloud and the trainer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in_pod import SCRIPTS, TOKEN, Pod

IMAGE = ("--mode", "image")
SOURCE = ("--mode", "source", "--repository", "github.com/owner/maxtext.git", "--branch", "feature/x")
LOG = "var/log/maxtext/demo-64c-0a1b2c3d-0.log"


def trainer(pod: Pod) -> list[str]:
    return (pod.seen / "trainer").read_text().splitlines()


def test_shellcheck() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    subprocess.run([str(shellcheck), str(SCRIPTS / "bootstrap.sh")], check=True)


# ---- image mode ----


def test_image_mode_activates_the_images_environment(pod: Pod) -> None:
    pod.put("opt/maxtext_venv/bin/activate", f"export VIRTUAL_ENV={pod.root}/opt/maxtext_venv\n: $PS1\n")
    (pod.root / "root/maxtext").mkdir(parents=True)
    ended = pod.run(*IMAGE)
    assert ended.code == 0
    assert trainer(pod)[1:3] == [str(pod.root / "root/maxtext"), str(pod.root / "etc/maxtext/run.yml")]
    assert f"VIRTUAL_ENV={pod.root}/opt/maxtext_venv" in trainer(pod)
    assert [call for call in ended.calls if not call.startswith("gcloud")] == []


def test_image_mode_without_that_environment_uses_the_images_python(pod: Pod) -> None:
    assert pod.run(*IMAGE).code == 0
    assert trainer(pod)[1] == str(pod.root)


def test_another_run_file_and_arguments_go_to_the_trainer(pod: Pod) -> None:
    pod.run(*IMAGE, "--", "/tmp/copy.yml", "a=b c", "d=")
    assert trainer(pod)[2:5] == ["/tmp/copy.yml", "a=b c", "d="]


@pytest.mark.parametrize("code", [0, 1, 2, 42, 137])
def test_the_trainers_exit_code_is_the_containers(pod: Pod, code: int) -> None:
    ended = pod.run(*IMAGE, TRAINER=str(code))
    assert ended.code == code
    assert ended.log.endswith(f"bootstrap: the trainer ended with exit code {code}\n")


def test_both_streams_reach_stdout_and_the_log(pod: Pod) -> None:
    ended = pod.run(*IMAGE)
    for text in ("trainer on stdout", "trainer on stderr\n"):
        assert text in ended.out
        assert text in (pod.root / LOG).read_text()


def test_a_log_that_cannot_be_written_stops_nothing(pod: Pod) -> None:
    pod.put("file", "")
    ended = pod.run(*IMAGE, LOG_FILE=str(pod.root / "file/log"))
    assert ended.code == 0
    assert f"bootstrap: {pod.root}/file/log cannot be written, so the log goes to stdout only\n" in ended.out


# ---- source mode ----


def test_source_mode_takes_every_step(pod: Pod) -> None:
    ended = pod.run(*SOURCE, "--deps-command", "install_extra_deps", GCS_BUCKET="")
    assert ended.code == 0
    assert ended.calls == [
        "pip install --quiet uv==0.13.9",
        "uv venv --quiet --python 3.12 --seed maxtext_venv",
        "uv pip install -e .[tpu] --resolution=lowest",
        "install_extra_deps ",
        "uv pip install --reinstall-package optax optax @ git+https://github.com/google-deepmind/optax",
    ]
    checkout = pod.root / "root/maxtext"
    assert (checkout / "content").read_text() == "second"
    assert trainer(pod)[1] == str(checkout)
    assert f"VIRTUAL_ENV={checkout}/maxtext_venv" in trainer(pod)
    assert re.search(r"bootstrap: MaxText is at commit [0-9a-f]{40}\n", ended.log)


@pytest.mark.parametrize("words", [(), ("--deps-command", "")])
def test_no_extra_dependencies(pod: Pod, words: tuple[str, ...]) -> None:
    calls = pod.run(*SOURCE, *words).calls
    assert [call.split()[0] for call in calls] == ["pip", "uv", "uv", "uv"]


def test_a_commit_is_fetched_and_checked_out(pod: Pod, tmp_path: Path) -> None:
    served = tmp_path / "served/owner/maxtext.git"
    first = subprocess.check_output(["git", "-C", str(served), "rev-parse", "HEAD~1"], text=True).strip()
    ended = pod.run(*SOURCE, "--commit", first)
    assert ended.code == 0
    assert (pod.root / "root/maxtext/content").read_text() == "first"
    assert f"bootstrap: MaxText is at commit {first}\n" in ended.log


def test_the_same_entry_again_uses_the_finished_checkout(pod: Pod) -> None:
    assert pod.run(*SOURCE).code == 0
    (pod.seen / "calls").unlink()
    pod.put("root/maxtext/content", "edited in the pod")
    ended = pod.run(*SOURCE, "--", "/tmp/copy.yml")
    assert (ended.code, ended.calls, trainer(pod)[2]) == (0, [], "/tmp/copy.yml")
    assert (pod.root / "root/maxtext/content").read_text() == "edited in the pod"


def test_an_unknown_checkout_is_never_removed(pod: Pod) -> None:
    pod.put("root/maxtext/content", "somebody's")
    ended = pod.run(*SOURCE)
    assert ended.code == 75
    assert (
        "is there, and not a finished checkout of github.com/owner/maxtext.git feature/x : remove it first" in ended.log
    )
    assert (pod.root / "root/maxtext/content").read_text() == "somebody's"


# ---- the token ----


@pytest.mark.parametrize("mode", [IMAGE, (*SOURCE, "--deps-command", "install_extra_deps")])
@pytest.mark.parametrize("code", ["0", "1"])
def test_the_token_is_nowhere(pod: Pod, mode: tuple[str, ...], code: str) -> None:
    pod.put("root/maxtext/scripts/comm/env_check.sh", "env\n") if mode == IMAGE else None
    ended = pod.run(*mode, TRAINER=code, GCS_BUCKET="bucket", ASK_HOST="elsewhere.com")
    assert ended.code == int(code)
    assert TOKEN not in ended.out
    assert pod.seen_in_argv == []
    assert pod.files_with(TOKEN) == []
    assert [line for line in trainer(pod) if line.startswith(("GITHUB_TOKEN", "GIT_CONFIG_"))] == []


def test_git_gets_the_token_for_the_repositorys_host_only(pod: Pod) -> None:
    pod.run(*SOURCE)
    expected = f"protocol=https\nhost=github.com\nusername=x-access-token\npassword={TOKEN}\n"
    assert (pod.seen / "credential").read_text() == expected
    (pod.root / "root/maxtext.ready").unlink()
    (pod.root / "root/maxtext").rename(pod.root / "root/before")
    pod.run(*SOURCE, ASK_HOST="elsewhere.com")
    assert TOKEN not in (pod.seen / "credential").read_text()


def test_git_never_stores_the_token_in_the_images_helper(pod: Pod) -> None:
    config = Path(pod.environment["GIT_CONFIG_GLOBAL"])
    config.write_text(config.read_text() + "[credential]\n\thelper = store\n")
    pod.run(*SOURCE, GIT_APPROVES="x")
    assert TOKEN in (pod.seen / "credential").read_text()
    assert not (pod.root / "home/.git-credentials").exists()


def test_a_public_repository_needs_no_token(pod: Pod) -> None:
    del pod.environment["GITHUB_TOKEN"]
    assert pod.run(*SOURCE).code == 0


# ---- bootstrap failures are never 2 ----


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--mode must be image or source, not ''"),
        (("--mode", "docker"), "--mode must be image or source, not 'docker'"),
        (("--mode",), "--mode needs a value"),
        (("--mode", "image", "--chips", "64"), "unknown argument --chips"),
        (("--mode", "source", "--branch", "b"), "source mode needs --repository and --branch"),
        (("--mode", "source", "--repository", "r"), "source mode needs --repository and --branch"),
    ],
)
def test_wrong_arguments(pod: Pod, words: tuple[str, ...], message: str) -> None:
    ended = pod.run(*words)
    assert ended.code == 75
    assert f"bootstrap: {message}\n" in ended.out


@pytest.mark.parametrize(
    ("words", "environment", "step"),
    [
        ((*SOURCE[:-1], "no-such-branch"), {}, "cloning https://github.com/owner/maxtext.git, branch no-such-branch"),
        ((*SOURCE, "--commit", "f" * 40), {}, f"fetching commit {'f' * 40}"),
        (SOURCE, {"UV_FAILS": "--quiet"}, "making the environment"),
        (SOURCE, {"UV_FAILS": "install"}, "installing MaxText"),
        ((*SOURCE, "--deps-command", "no_such_command"), {}, "running no_such_command"),
    ],
)
def test_a_failing_step(pod: Pod, words: tuple[str, ...], environment: dict[str, str], step: str) -> None:
    ended = pod.run(*words, GCS_BUCKET="bucket", **environment)
    assert ended.code == 75
    last = rf"bootstrap: failed while {re.escape(step)} \(exit code \d+\); the trainer was not started\n"
    assert re.search(last, ended.log)
    assert not (pod.seen / "trainer").exists()
    assert step in (pod.seen / "uploaded").read_text()


@pytest.mark.parametrize("script", ["exit 2", "exit 0"])
def test_a_checkouts_script_that_exits(pod: Pod, script: str) -> None:
    pod.put("root/maxtext/scripts/comm/env_check.sh", f"{script}\n")
    ended = pod.run(*IMAGE)
    assert ended.code == 75
    assert "bootstrap: failed while sourcing scripts/comm/env_check.sh" in ended.log


@pytest.mark.parametrize("name", ["run_pretrain.py", "derivations.py", "start_trainer.py"])
def test_a_missing_script(pod: Pod, name: str) -> None:
    (pod.root / "etc/maxtext-pod" / name).unlink()
    ended = pod.run(*IMAGE)
    assert ended.code == 75
    assert f"bootstrap: {pod.root}/etc/maxtext-pod/{name} is missing\n" in ended.log


# ---- the checkout's scripts and the flags ----


@pytest.mark.parametrize(
    ("theirs", "ours", "merged"),
    [
        ("--a=1 --b=2", "--b=3 --c=4", "--a=1 --b=3 --c=4"),
        ("--a=1 --ab=2", "--a=*", "--ab=2 --a=*"),
        ("--a --b=x=y", "", "--a --b=x=y"),
        ("", "--a=1", "--a=1"),
        ("--a=1", "--a", "--a"),
    ],
)
def test_flags_merge_by_name_and_the_manifests_win(pod: Pod, theirs: str, ours: str, merged: str) -> None:
    pod.put("root/maxtext/--a=matches", "")
    pod.put("root/maxtext/scripts/comm/xla_flags_common.sh", f'LIBTPU_INIT_ARGS="${{LIBTPU_INIT_ARGS:-{theirs}}}"\n')
    pod.run(*IMAGE, LIBTPU_INIT_ARGS=ours)
    assert f"LIBTPU_INIT_ARGS={merged}" in trainer(pod)


def test_scripts_are_sourced_in_order_and_may_be_careless(pod: Pod) -> None:
    for name in ("env_check", "xla_flags_common", "libtpu_diag_common"):
        pod.put(f"root/maxtext/scripts/comm/{name}.sh", f"export ORDER=$ORDER:{name}\nfalse\nunset_by_all=$NOT_SET\n")
    pod.put("root/maxtext/scripts/comm/libtpu_diag_common.sh", "export ORDER=$ORDER:last\nfalse\n")
    ended = pod.run(*IMAGE)
    assert ended.code == 0
    assert "ORDER=:env_check:xla_flags_common:last" in trainer(pod)
    assert "bootstrap: libtpu_diag_common.sh returned 1\n" in ended.log


# ---- the log upload ----


@pytest.mark.parametrize("code", ["0", "3"])
def test_index_0_uploads_its_whole_log(pod: Pod, code: str) -> None:
    ended = pod.run(*IMAGE, GCS_BUCKET="bucket", TRAINER=code)
    target = "gs://bucket/logs/demo-64c-0a1b2c3d/demo-slice-job-0-0-abcde.log"
    assert ended.calls == [f"gcloud storage cp --quiet {pod.root / LOG} {target}"]
    assert (pod.seen / "uploaded").read_text() == ended.log
    assert ended.log.endswith(f"bootstrap: the trainer ended with exit code {code}\n")
    assert ended.out.endswith(f"bootstrap: the log is in {target}\n")


@pytest.mark.parametrize("environment", [{"JOB_COMPLETION_INDEX": "1", "GCS_BUCKET": "bucket"}, {"GCS_BUCKET": ""}])
def test_no_other_upload(pod: Pod, environment: dict[str, str]) -> None:
    assert pod.run(*IMAGE, **environment).calls == []


def test_a_failing_upload_fails_nothing(pod: Pod) -> None:
    ended = pod.run(*IMAGE, GCS_BUCKET="bucket", UPLOAD_EXIT="2")
    assert ended.code == 0
    assert ended.out.splitlines()[-1].startswith("bootstrap: the log could not be uploaded to gs://bucket/logs/")


def test_gsutil_where_there_is_no_gcloud(pod: Pod) -> None:
    (pod.root / "stubs/gcloud").rename(pod.root / "stubs/gsutil")
    for name in ("bash", "sh", "dirname", "mkdir", "cat", "tee", "sleep", "timeout", "tr", "basename", "cp"):
        (pod.root / "stubs" / name).symlink_to(subprocess.check_output(["which", name], text=True).strip())
    pod.put("stubs/gsutil", (pod.root / "stubs/gsutil").read_text().replace('"$4"', '"$3"'), 0o755)
    ended = pod.run(*IMAGE, GCS_BUCKET="bucket", PATH=str(pod.root / "stubs"))
    assert ended.calls[0].startswith("gsutil -q cp ")
    (pod.root / "stubs/gsutil").unlink()
    ended = pod.run(*IMAGE, GCS_BUCKET="bucket", PATH=str(pod.root / "stubs"))
    assert ended.out.endswith("bootstrap: neither gcloud nor gsutil is here, so the log is not uploaded\n")


# ---- signals ----


@pytest.mark.parametrize(("after", "code"), [("0", 143), ("5", 5)])
def test_sigterm_reaches_the_trainer_which_may_save_a_checkpoint(pod: Pod, after: str, code: int) -> None:
    process = pod.start(*IMAGE, TRAINER="checkpoints", AFTER=after, GCS_BUCKET="bucket")
    ended = pod.terminate(process, pod.root / LOG, "training\n")
    assert ended.code == code
    assert "checkpoint saved\n" in ended.log
    assert "checkpoint saved\n" in (pod.seen / "uploaded").read_text()


def test_a_signal_to_the_whole_process_group_loses_no_words(pod: Pod) -> None:
    process = pod.start(*IMAGE, TRAINER="checkpoints")
    ended = pod.terminate(process, pod.root / LOG, "training\n", group=True)
    assert ended.code == 143
    assert "checkpoint saved\n" in ended.log


def test_an_unfinished_run_does_not_count_as_done(pod: Pod) -> None:
    process = pod.start(*IMAGE, TRAINER="checkpoints")
    ended = pod.terminate(process, pod.root / LOG, "training\n")
    assert ended.log.endswith("bootstrap: ended by a signal (exit code 0): the run is not finished\n")


def test_sigterm_for_a_trainer_that_has_no_handler(pod: Pod) -> None:
    process = pod.start(*IMAGE, TRAINER="waits")
    assert pod.terminate(process, pod.root / LOG, "training\n").code == 143


def test_sigterm_while_installing(pod: Pod) -> None:
    process = pod.start(*SOURCE, UV_SLEEPS="x")
    ended = pod.terminate(process, pod.seen / "calls", "uv venv")
    assert ended.code == 143
    assert not (pod.seen / "trainer").exists()
