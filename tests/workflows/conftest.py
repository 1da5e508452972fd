"""Fixtures of the workflows' tests: a GitHub on this machine, a repository there, and what runs its workflows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.content import Content
from tests.repository import IDENTITY
from tests.workflows.acting import Actions
from tests.workflows.fake_github import GitHub, Pull
from tests.workflows.fake_server import serve
from tests.workflows.job import Job
from tests.workflows.origin import Origin, fill, make_origin, sketch


@pytest.fixture(autouse=True)
def plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the person who runs the tests, nor of the CI they run in."""
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    """A GitHub without any repository yet."""
    with serve(tmp_path / "server") as running:
        yield running


@pytest.fixture
def origin(github: GitHub, tmp_path: Path) -> Origin:
    """The repository acme/runs there, with a few files."""
    content = Content(tmp_path / "clone")
    sketch(content)
    return make_origin(content, github)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a repository of experiments holds."""
    folder = tmp_path_factory.mktemp("whole")
    fill(Content(folder))
    return folder


@pytest.fixture
def actions(github: GitHub, whole: Path, tmp_path: Path) -> Actions:
    """What runs the workflows of acme/runs, with all that they need there."""
    content = Content(tmp_path / "clone")
    shutil.copytree(whole, content.root)
    return Actions(make_origin(content, github), tmp_path / "runs")


@pytest.fixture
def job(github: GitHub, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job of main, and the open pull request 7 of branch sweep, whose clone is at hand."""
    origin.branch("sweep")
    origin.push("sweep")
    github.pulls.append(Pull(7, "sweep"))
    return Job(github, tmp_path, monkeypatch)
