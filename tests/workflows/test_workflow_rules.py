"""What every workflow must keep to, read from the files; and the linters, without a finding."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
UNTRUSTED = {"check", "test"}
TRUSTED = {"apply", "drift", "render", "report"}
FOLLOWING = {"render", "report"}

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    data = yaml.safe_load(path.read_text())
    data["on"] = data.pop(True)  # what YAML 1.1 makes of the key
    return data


def jobs(path: Path) -> Any:
    return read(path)["jobs"]


def steps(path: Path) -> Iterator[Any]:
    for job in jobs(path).values():
        yield from job["steps"]


def texts(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield str(key)
            yield from texts(value)
    elif isinstance(data, list):
        for item in data:
            yield from texts(item)
    else:
        yield str(data)


def test_every_workflow_is_known_to_these_rules() -> None:
    assert {path.stem for path in FILES} == UNTRUSTED | TRUSTED


@each_file
def test_actions_are_pinned_by_hash_with_their_version(path: Path) -> None:
    lines = [line.strip() for line in path.read_text().splitlines() if re.match(r"\s*(- )?uses:", line)]
    assert lines
    for line in lines:
        assert re.fullmatch(r"(- )?uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    assert len(lines) == sum("uses" in step for step in steps(path))


@each_file
def test_one_action_has_one_pin(path: Path) -> None:
    pins = {tuple(step["uses"].split("@")) for other in FILES for step in steps(other) if "uses" in step}
    assert len({name for name, _ in pins}) == len(pins)


@each_file
def test_nothing_is_allowed_but_what_a_job_says(path: Path) -> None:
    assert read(path)["permissions"] == {}
    for name, job in jobs(path).items():
        assert job["permissions"], name
        assert job["permissions"].get("contents") in {"read", "write"}, name


@each_file
def test_every_job_has_an_end(path: Path) -> None:
    for name, job in jobs(path).items():
        assert 0 < job["timeout-minutes"] <= 60, name
        assert job["runs-on"] == "ubuntu-latest"


@each_file
def test_no_script_holds_an_expression(path: Path) -> None:
    for step in steps(path):
        assert "${{" not in step.get("run", ""), step
        assert "github-script" not in step.get("uses", "")


@each_file
def test_no_checkout_leaves_its_token_behind(path: Path) -> None:
    found = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert len(found) == len(jobs(path))
    for step in found:
        assert step["with"]["persist-credentials"] is False


def test_only_the_renderers_own_tests_keep_a_cache() -> None:
    """A branch can fill what its own untrusted jobs restore; no job with a right to anything restores a cache."""
    caching = [(path, step) for path in FILES for step in steps(path) if "cache" in step.get("uses", "")]
    found = [(path.stem, step["with"]["path"]) for path, step in caching]
    assert found == [("test", ".cache/control-plane")]


@each_file
def test_pull_request_target_is_never_used(path: Path) -> None:
    assert "pull_request_target" not in path.read_text()


@pytest.mark.parametrize("name", sorted(UNTRUSTED))
def test_untrusted_jobs_hold_nothing(name: str) -> None:
    path = ROOT / f".github/workflows/{name}.yml"
    assert set(read(path)["on"]) == {"pull_request", "merge_group"}
    for job in jobs(path).values():
        assert job["permissions"] == {"contents": "read"}
        assert "environment" not in job
    for text in texts(read(path)):
        assert not re.search(r"secrets\b|github\.token|GITHUB_TOKEN|\bvars\.", text), text


def test_untrusted_jobs_check_the_head_itself() -> None:
    for name in UNTRUSTED:
        (checkout, *_) = steps(ROOT / f".github/workflows/{name}.yml")
        assert checkout["with"]["ref"] == "${{ github.event.pull_request.head.sha || github.sha }}"
        assert checkout["with"]["fetch-depth"] == 0


@pytest.mark.parametrize("name", sorted(TRUSTED))
def test_trusted_jobs_run_the_default_branch_only(name: str) -> None:
    path = ROOT / f".github/workflows/{name}.yml"
    default = "${{ github.event.repository.default_branch }}" if name in FOLLOWING else "${{ github.sha }}"
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["ref"] == default
        assert "git checkout" not in step.get("run", "")
    if name not in FOLLOWING:
        first = next(iter(jobs(path).values()))
        assert first["if"] == "github.ref == format('refs/heads/{0}', github.event.repository.default_branch)"
        assert all("needs" in job for job in list(jobs(path).values())[1:])


@pytest.mark.parametrize("name", sorted(FOLLOWING))
def test_followers_believe_nothing_of_the_run_but_its_number(name: str) -> None:
    path = ROOT / f".github/workflows/{name}.yml"
    assert read(path)["on"] == {"workflow_run": {"workflows": ["check"], "types": ["completed"]}}
    for step in steps(path):
        assert "download-artifact" not in step.get("uses", ""), "it unpacks before anything is checked"
        for text in texts([step.get("env", {}), step.get("with", {})]):
            fields = set(re.findall(r"github\.event\.([\w.]+)", text))
            assert fields <= {"repository.default_branch", "workflow_run.id"}, text


def test_only_the_committing_job_writes_contents_and_has_a_secret() -> None:
    found = {(path.stem, name) for path in FILES for name, job in jobs(path).items() if "secrets" in str(job)}
    writing = {
        (path.stem, name)
        for path in FILES
        for name, job in jobs(path).items()
        if job["permissions"]["contents"] == "write"
    }
    assert found == writing == {("render", "commit")}
    commit = jobs(ROOT / ".github/workflows/render.yml")["commit"]
    assert commit["environment"] == "render", "a secret outside an environment is every branch's"
    assert "head_repository.full_name == github.repository" in commit["if"]


def test_jobs_with_a_cloud_identity_cannot_write_to_the_repository() -> None:
    for path in FILES:
        for name, job in jobs(path).items():
            signs_in = any(step.get("uses", "").startswith("google-github-actions/auth@") for step in job["steps"])
            assert signs_in == ("id-token" in job["permissions"]), (path.stem, name)
            if signs_in:
                assert job["permissions"] == {"contents": "read", "id-token": "write"}
    apply = jobs(ROOT / ".github/workflows/apply.yml")
    assert "APPLY_SERVICE_ACCOUNT" in str(apply["apply"])
    assert "APPLY_SERVICE_ACCOUNT" not in str(apply["plan"])
    assert apply["apply"]["environment"] == "${{ matrix.environment }}"


def test_applies_wait_for_each_other_and_none_is_cancelled() -> None:
    queue = jobs(ROOT / ".github/workflows/apply.yml")["apply"]["concurrency"]
    assert queue == {"group": "apply-${{ matrix.environment }}", "cancel-in-progress": False, "queue": "max"}


@pytest.mark.parametrize("name", sorted(FOLLOWING))
def test_followers_of_one_branch_wait_for_each_other_and_none_is_cancelled(name: str) -> None:
    """Its runs may be of several pull requests, which only the job itself can tell apart."""
    queue = read(ROOT / f".github/workflows/{name}.yml")["concurrency"]
    assert queue.pop("group").startswith(f"{name}:${{{{ github.event.workflow_run.head_repository.full_name }}}}:")
    assert queue == {"cancel-in-progress": False, "queue": "max"}


def test_linters_are_silenced_for_one_thing_only_with_a_reason() -> None:
    ignores = [
        (path.stem, line.strip())
        for path in FILES
        for line in path.read_text().splitlines()
        if re.search("zizmor:|actionlint:|shellcheck disable", line)
    ]
    reason = "nothing of the branch is checked out or run, and the artifact is validated data"
    line = f"# zizmor: ignore[dangerous-triggers] {reason}"
    assert ignores == [(name, line) for name in sorted(FOLLOWING)]
    assert not (ROOT / ".github/zizmor.yml").exists()
    assert not (ROOT / ".github/actionlint.yaml").exists()


def program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found, f"{name} is missing: make install"
    return found


def test_zizmor_finds_nothing() -> None:
    words = [program("zizmor"), "--offline", "--no-progress", "--quiet", ".github"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_actionlint_finds_nothing() -> None:
    """Its own checks, and shellcheck on every script."""
    words = [program("actionlint"), "-shellcheck", program("shellcheck"), *map(str, FILES)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
