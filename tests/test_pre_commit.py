"""The hooks, run by the real pre-commit on real commits of a repository that holds content only."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from content import SHIPPED, Content, make_content, tree
from repository import IDENTITY

EXPERIMENT = "experiments/qwen3-0.6b/run.yml"
RENDERED = "rendered/test/qwen3-0.6b/run"
HOOKS = yaml.safe_load((SHIPPED / ".pre-commit-hooks.yaml").read_text())
CONFIG = yaml.safe_load((SHIPPED / ".pre-commit-config.yaml").read_text())
PACKAGE = ("renderer", "pod", "pyproject.toml", "README.md", ".pre-commit-hooks.yaml")
LOCKED = {
    package["name"]: package["version"] for package in tomllib.loads((SHIPPED / "uv.lock").read_text())["package"]
}

pytestmark = pytest.mark.workflows


@dataclass(frozen=True, slots=True)
class Clone:
    """A repository whose commits pre-commit guards."""

    content: Content
    environment: Mapping[str, str]

    def git(self, *arguments: str, code: int = 0) -> str:
        """Run git with that exit code and return both its streams."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.content.root,
            env={**os.environ, **self.environment},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def add(self) -> None:
        """Stage everything, as people do."""
        self.git("add", "-A")

    def commit(self, *, refused: bool = False) -> str:
        """Commit what is staged, which the hooks refuse or let pass, and return what they said."""
        return self.git("commit", "-m", "change", code=1 if refused else 0)

    def files(self, below: str = "rendered") -> list[str]:
        """Return the committed files below a folder."""
        return self.git("ls-tree", "-r", "--name-only", "HEAD", "--", below).split()

    def merge(self) -> None:
        """Let the target branch be at HEAD."""
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")


def clone(root: Path, config: Mapping[str, Any], environment: Mapping[str, str]) -> Clone:
    """Return a repository of content with its hooks installed, its first commit made."""
    content = make_content(root)
    content.write(".pre-commit-config.yaml", json.dumps(config))
    made = Clone(content, {**IDENTITY, **environment})
    made.git("init", "--quiet", "--initial-branch=main")
    made.add()
    made.git("commit", "--quiet", "--message=presets")
    made.merge()
    subprocess.run(
        [sys.executable, "-m", "pre_commit", "install"],
        cwd=root,
        env={**os.environ, **made.environment},
        check=True,
        capture_output=True,
    )
    return made


@pytest.fixture
def here(tmp_path: Path) -> Clone:
    """A clone whose hooks are those of .pre-commit-hooks.yaml, run from the environment of this test."""
    hooks = [{**hook, "language": "system"} for hook in HOOKS]
    config = {"repos": [{"repo": "local", "hooks": hooks}]}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return clone(tmp_path / "repository", config, {"PATH": path, "PRE_COMMIT_HOME": str(tmp_path / "home")})


@pytest.fixture
def committed(here: Clone) -> Clone:
    """A clone in which an experiment and its rendered files are committed, and on the target branch."""
    render(here, "run")
    here.merge()
    return here


def render(made: Clone, name: str) -> None:
    """Commit an experiment with its rendered files, past the hooks."""
    made.content.experiment(name, model="qwen3-0.6b")
    assert made.content.run("render", f"qwen3-0.6b/{name}").code == 0
    made.add()
    made.git("commit", "--quiet", "--no-verify", "--message=experiment")


def test_a_new_experiment_is_formatted_validated_and_rendered(here: Clone) -> None:
    path = here.content.experiment(model="qwen3-0.6b")
    loose = path.read_text().replace("  ", "      ")
    path.write_text(loose)
    here.add()
    said = here.commit(refused=True)
    assert re.findall(r"renderer (\w+)\.*(Passed|Failed)", said) == [
        ("format", "Failed"),
        ("validate", "Passed"),
        ("render", "Failed"),
    ]
    assert f"{EXPERIMENT}: formatted\n" in said
    assert "git add -A rendered" in said
    assert path.read_text() != loose
    here.add()
    said = here.commit()
    assert said.count("Passed") == 3
    assert [f"{RENDERED}/{name}" for name in ("derive.json", "jobset.yml", "run.yml")] == here.files(RENDERED)
    assert here.content.run("render", "--check").code == 0


def test_rendered_files_must_be_in_the_commit(here: Clone) -> None:
    here.content.experiment(model="qwen3-0.6b")
    here.git("add", "experiments")
    here.commit(refused=True)
    here.git("add", "experiments")
    said = here.commit(refused=True)
    assert f"{RENDERED}/run.yml: is not in the commit: git add -A rendered" in said
    here.add()
    here.commit()


def test_a_hand_edit_is_restored(committed: Clone) -> None:
    before = tree(committed.content.root)
    run_yml = committed.content.root / RENDERED / "run.yml"
    run_yml.write_bytes(run_yml.read_bytes() + b"steps: 1\n")
    committed.add()
    assert "files were modified by this hook" in committed.commit(refused=True)
    assert tree(committed.content.root) == before


def test_a_deleted_rendered_file_is_restored(committed: Clone) -> None:
    before = tree(committed.content.root)
    committed.git("rm", "--quiet", f"{RENDERED}/derive.json")
    committed.commit(refused=True)
    assert tree(committed.content.root) == before


def test_the_rendered_files_of_a_deleted_experiment_go(committed: Clone) -> None:
    committed.git("rm", "--quiet", EXPERIMENT)
    assert "deleted" in committed.commit(refused=True)
    assert tree(committed.content.root) == {}
    committed.add()
    committed.commit()
    assert committed.files() == []


def test_the_rendered_files_of_a_renamed_experiment_move(committed: Clone) -> None:
    committed.git("mv", EXPERIMENT, EXPERIMENT.replace("run", "moved"))
    committed.commit(refused=True)
    committed.add()
    committed.commit()
    folder = RENDERED.replace("run", "moved")
    assert committed.files("rendered/test") == [f"{folder}/{name}" for name in ("derive.json", "jobset.yml", "run.yml")]


def test_a_preset_reaches_what_is_not_launched_yet(committed: Clone) -> None:
    render(committed, "new")
    before = tree(committed.content.root)
    committed.content.edit("presets/qwen3-0.6b/environment/test.yml", "K8S_NAMESPACE: default", "K8S_NAMESPACE: tests")
    committed.add()
    committed.commit(refused=True)
    after = tree(committed.content.root)
    assert {path.split("/")[3] for path in before if before[path] != after[path]} == {"new"}
    committed.add()
    committed.commit()


def test_an_invalid_experiment_is_told_once(here: Clone) -> None:
    here.content.experiment(model="qwen3-0.6b", maxtext={"steps": "8"})
    here.add()
    said = here.commit(refused=True)
    problem = f'{EXPERIMENT}:9:12: maxtext.steps: expected an integer of at least -1, got the text "8": write 8'
    assert said.count(problem) == 1
    assert "renderer render" not in said
    assert tree(here.content.root) == {}


def test_a_stray_file_is_told(here: Clone) -> None:
    here.content.write("experiments/qwen3-0.6b/run.yaml", "launch: {}\n")
    here.add()
    said = here.commit(refused=True)
    assert "experiments/qwen3-0.6b/run.yaml: is not an experiment: rename it to .yml" in said


def test_other_files_pass(committed: Clone) -> None:
    committed.content.write("README.md", "text\n")
    committed.add()
    said = committed.commit()
    assert re.findall(r"renderer (\w+).*(Skipped|Passed)", said) == [
        ("format", "Skipped"),
        ("validate", "Passed"),
        ("render", "Passed"),
    ]


def test_no_file_is_taken_for_an_option(committed: Clone) -> None:
    before = tree(committed.content.root)
    for name in ("--check", "--base=HEAD", "--refresh", "-h.yml"):
        committed.content.write(name, "text\n")
    committed.add()
    assert committed.commit().count("Passed") == 2
    assert tree(committed.content.root) == before


def test_with_nothing_staged_nothing_happens(committed: Clone) -> None:
    before = tree(committed.content.root, ".")
    said = run_all(committed)
    assert said.count("Passed") + said.count("Skipped") == 3
    assert tree(committed.content.root, "rendered") == {
        path: data for path, data in before.items() if path.startswith("rendered/")
    }


def test_all_files_are_what_they_should_be(committed: Clone) -> None:
    assert run_all(committed, "--all-files").count("Passed") == 3


def run_all(made: Clone, *arguments: str) -> str:
    """Run every hook without a commit, as CI may, and return what they said; they all pass."""
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", *arguments],
        cwd=made.content.root,
        env={**os.environ, **made.environment},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This package as a repository that another one may name in its .pre-commit-config.yaml."""
    root = tmp_path_factory.mktemp("renderer")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in PACKAGE:
        source = SHIPPED / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=ignored)
        else:
            shutil.copy(source, root)
    environment = {**os.environ, **IDENTITY}
    for arguments in (["init", "--quiet"], ["add", "-A"], ["commit", "--quiet", "--message=package"], ["tag", "v1"]):
        subprocess.run(["git", *arguments], cwd=root, env=environment, check=True)
    return root


def documented() -> Any:
    """Return the .pre-commit-config.yaml that docs/guide.md shows."""
    (text,) = re.findall(r"```yaml\n(repos:\n.*?)```", (SHIPPED / "docs/guide.md").read_text(), re.DOTALL)
    return yaml.safe_load(text)


@pytest.mark.workflows
def test_a_content_only_repository_installs_the_hooks(published: Path, tmp_path: Path) -> None:
    """As docs/guide.md says."""
    config = documented()
    config["repos"][0] |= {"repo": str(published), "rev": "v1"}
    there = clone(tmp_path / "repository", config, {"PRE_COMMIT_HOME": str(tmp_path / "home")})
    there.content.experiment(model="qwen3-0.6b")
    there.add()
    assert "git add -A rendered" in there.commit(refused=True)
    there.add()
    assert there.commit().count("Passed") == 3
    assert f"{RENDERED}/jobset.yml" in there.files()
    there.git("rm", "--quiet", EXPERIMENT)
    there.commit(refused=True)
    there.add()
    there.commit()
    assert there.files() == []


@pytest.mark.workflows
@pytest.mark.parametrize("tool", [hook["id"] for hook in CONFIG["repos"][0]["hooks"]])
def test_this_repositorys_own_tools_find_nothing(tool: str, tmp_path: Path) -> None:
    """On a copy, because ruff corrects what it finds."""
    root = tmp_path / "copy"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(SHIPPED), str(root)], check=True)
    shutil.copy(SHIPPED / ".pre-commit-config.yaml", root)
    subprocess.run(["git", "add", ".pre-commit-config.yaml"], cwd=root, check=True)
    copy = Clone(Content(root), {"PRE_COMMIT_HOME": str(SHIPPED / ".cache/pre-commit")})
    assert "Passed" in run_all(copy, "--all-files", tool)


def test_tools_have_the_versions_of_the_lock_file() -> None:
    hooks = [hook for repository in CONFIG["repos"] for hook in repository["hooks"]]
    pins = {pin for hook in hooks for pin in hook.get("additional_dependencies", ())}
    assert pins == {f"{name}=={LOCKED[name]}" for name in (pin.partition("==")[0] for pin in pins)}


def test_every_hook_that_may_be_given_a_file_of_the_top_folder_ends_its_options() -> None:
    hooks = [*HOOKS, *(hook for repository in CONFIG["repos"] for hook in repository["hooks"])]
    assert all(hook["entry"].endswith(" --") or hook["files"].startswith(r"^\.github/") for hook in hooks)


def test_our_own_hooks_are_those_of_other_repositories() -> None:
    (ours,) = [found["hooks"] for found in CONFIG["repos"] if found["hooks"][0]["id"] == "renderer-format"]
    expected = [
        {**hook, "language": "system", "entry": f".cache/venv/bin/{hook['entry']}"}
        for hook in ({key: value for key, value in hook.items() if key != "description"} for hook in HOOKS)
    ]
    assert ours == expected
    assert [hook["id"] for hook in documented()["repos"][0]["hooks"]] == [hook["id"] for hook in HOOKS]
