"""A clone whose git converts line ends, as it does on Windows by default: no byte that matters may differ in it."""

from __future__ import annotations

import shutil
from pathlib import Path

from content import SHIPPED, Content, make_content, tree
from repository import Repo

BYTES = "steps: 20\r\nenable_checkpointing: true\n"


def converting_clone(repo: Repo, to: Path) -> Repo:
    """Return a clone of a repository with the shipped attributes."""
    shutil.copy(SHIPPED / ".gitattributes", repo.content.root)
    repo.init()
    repo.git("clone", "--quiet", "--config=core.autocrlf=true", ".", str(to))
    return Repo(Content(to))


def test_what_is_launched_or_run_stays_byte_for_byte(tmp_path: Path) -> None:
    repo = Repo(make_content(tmp_path / "origin"))
    for name in ("Makefile", ".ci/run", "tools/go-program", "tools/chromium"):
        repo.content.write(name, (SHIPPED / name).read_bytes())
    shutil.copytree(SHIPPED / "pod", repo.content.root / "pod", ignore=shutil.ignore_patterns("__pycache__"))
    repo.content.write("rendered/test/m/run/run.yml", BYTES)
    repo.content.write("pod/odd.txt", BYTES)
    there = converting_clone(repo, tmp_path / "clone").content
    for folder in ("pod", "rendered", "presets", "datasets", "tools", ".ci"):
        assert tree(there.root, folder) == tree(repo.content.root, folder)
    assert (there.root / "Makefile").read_bytes() == (SHIPPED / "Makefile").read_bytes()


def test_the_commands_find_nothing_to_do_there(tmp_path: Path) -> None:
    repo = Repo(make_content(tmp_path / "origin"))
    repo.experiment()
    there = converting_clone(repo, tmp_path / "clone")
    assert there.content.run("format", "--check").code == 0
    ran = there.content.run("render", "--check")
    assert ran.code == 0, ran.err
    assert there.git("status", "--porcelain") == ""
