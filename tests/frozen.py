"""A launched run on a git repository, for tests of freezing: what `render` writes of it, and what `--check` says."""

from __future__ import annotations

from content import tree
from repository import Repo

RUN = "rendered/test/qwen3-0.6b/run"
PRESET = "presets/qwen3-0.6b/model.yml"
EXPERIMENT = "experiments/qwen3-0.6b/run.yml"
FROZEN = "1 frozen: on main, and its content did not change"
UP_TO_DATE = "1 experiment is rendered and up to date"


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
