"""A repository of experiments on the tests' server: the renderer's own code, workflows and presets, in a bare git."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.content import SHIPPED, Content, clusters
from tests.repository import Repo
from tests.workflows.fake_github import GitHub

MAKEFILE = f"""\
# Uses what is installed already; `renderer` is the code of this very tree.
.PHONY: install
install:
	@mkdir -p .cache/venv/bin
	@printf '%s\\n' '#!/bin/sh' 'exec {sys.executable} "$$@"' > .cache/venv/bin/python
	@cp renderer-command .cache/venv/bin/renderer
	@chmod +x .cache/venv/bin/*
"""

COMMAND = f"""\
#!/bin/sh
case "$1" in apply|drift) if [ -n "$STANDIN_CALLS" ]; then exec sh "$STANDIN_CALLS" "$@"; fi ;; esac
exec {sys.executable} -m renderer "$@"
"""
"""Stands in for the calls of a cluster where a test has no cluster."""


@dataclass(frozen=True, slots=True)
class Origin(Repo):
    """A clone to prepare branches in, whose remote is the server's bare repository."""

    github: GitHub

    @property
    def root(self) -> Path:
        return self.content.root

    def push(self, branch: str) -> str:
        """Commit everything, push it as the branch, and return the commit."""
        sha = self.commit()
        self.git("push", "--quiet", "--force", str(self.github.bare), f"HEAD:refs/heads/{branch}")
        return sha

    def push_fork(self, number: int) -> str:
        """Commit everything and make it the head of a fork's pull request; the fork itself is never seen."""
        sha = self.commit()
        self.git("push", "--quiet", str(self.github.bare), f"HEAD:refs/pull/{number}/head")
        return sha

    def shown(self, ref: str, path: str) -> bytes:
        """Return a file of the server's repository."""
        words = ["git", "-C", str(self.github.bare), "cat-file", "blob", f"{ref}:{path}"]
        return subprocess.run(words, capture_output=True, check=True).stdout

    def changed(self, old: str, new: str) -> list[str]:
        """Return the paths in which two commits on the server differ."""
        return self.github.git("diff", "--name-only", "--no-renames", old, new).splitlines()


def fill(content: Content) -> None:
    """Write all that the workflows need, and one rendered experiment."""
    for name in ("presets", "datasets", "renderer", "pod", ".github"):
        shutil.copytree(SHIPPED / name, content.root / name, ignore=shutil.ignore_patterns("__pycache__"))
    content.write("presets/clusters.yml", clusters())
    install(content)
    ran = content.run("render", str(content.experiment("first", model="qwen3-0.6b")))
    assert ran.code == 0, ran.err


def install(content: Content) -> None:
    """Write what `make install` needs there."""
    content.write("Makefile", MAKEFILE)
    content.write("renderer-command", COMMAND)
    content.write(".gitignore", "/.cache/\n__pycache__/\n")


def sketch(content: Content) -> None:
    """Write what the jobs' programs need, which read no file but git's."""
    for name in ("jobset", "run"):
        content.write(f"rendered/test/qwen3-0.6b/first/{name}.yml", f"{name}: 1\n")
    content.write(".github/workflows/check.yml", "name: check\n")


def make_origin(content: Content, github: GitHub) -> Origin:
    """Make the repository of some content, which becomes its branch main."""
    github.bare.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(github.bare)], check=True)
    origin = Origin(content, github)
    origin.git("init", "--quiet", "--initial-branch=main", ".")
    origin.push("main")
    return origin
