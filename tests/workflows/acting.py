"""Runs workflows with act, as GitHub would for an event: whose files, with which token, in which order."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.workflows.fake_github import NAME, Pull, Run, Token
from tests.workflows.origin import Origin

STAND_INS = Path(__file__).parent / "stand_ins"
ACT = shutil.which("act", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a workflow's run ended; `said` holds what its steps printed, a line each."""

    ok: bool
    out: str

    @property
    def said(self) -> str:
        return "\n".join(re.findall(r"^\[[^]]*\]\s+(?:\||❗|🚧|❓|⚙)\s*(.*)$", self.out, re.MULTILINE))


@dataclass
class Actions:
    """The part of GitHub that runs workflows, for one repository."""

    origin: Origin
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    runs: int = 0

    def check(self, pull: Pull) -> tuple[Ran, Run]:
        """Run the branch's own `check` for a pull request, and keep the run for those that follow it."""
        sha = self.origin.github.head(pull)
        event = {
            "action": "synchronize",
            "number": pull.number,
            "repository": _repository(),
            "pull_request": {
                "number": pull.number,
                "head": {"sha": sha, "ref": pull.branch, "repo": {"full_name": pull.repository}},
                "base": {"ref": pull.base, "repo": {"full_name": NAME}},
            },
        }
        ran, number = self.run("check", "pull_request", sha, event, fork=pull.repository != NAME)
        run = Run(number, sha, pull.branch, repository=pull.repository)
        self.origin.github.runs[number] = run
        return ran, run

    def follow(self, name: str, run: Run, conclusion: str = "success", **forged: Any) -> Ran:
        """Run the default branch's workflow `name` after a run of `check`."""
        event = {
            "action": "completed",
            "repository": _repository(),
            "workflow_run": {
                "id": run.id,
                "name": "check",
                "event": run.event,
                "conclusion": conclusion,
                "head_sha": run.sha,
                "head_branch": run.branch,
                "head_repository": {"full_name": run.repository},
                "pull_requests": [],
                **forged,
            },
        }
        return self.run(name, "workflow_run", "main", event)[0]

    def run(
        self, name: str, event_name: str, ref: str, event: Any, *, fork: bool = False, job: str = ""
    ) -> tuple[Ran, int]:
        """Run a workflow of commit `ref`; its token may do what its jobs ask for, on a fork only read.

        `job` runs that one job only.
        """
        self.runs += 1
        number = 1000 + self.runs
        home = self.folder / str(number)
        work = self._checkout(name, ref, home)
        asked = _permissions(work / f".github/workflows/{name}.yml")
        allowed = {key: "read" if fork else level for key, level in asked.items()}
        self.origin.github.tokens[f"job-token-{number}"] = Token(permissions=allowed)
        (home / "event.json").write_text(json.dumps(event))
        command = self._command(name, event_name, home, number, secret=not fork)
        command += ["--job", job] if job else []
        environment = {**plain_environment(), "XDG_CACHE_HOME": str(home / "cache"), "HOME": str(home)}
        done = subprocess.run(
            command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
        )
        (home / "output.txt").write_text(done.stdout)
        return Ran(done.returncode == 0, done.stdout), number

    def _checkout(self, name: str, ref: str, home: Path) -> Path:
        """Lay out the one workflow as GitHub reads it from a commit."""
        work = home / "work"
        path = work / f".github/workflows/{name}.yml"
        bare = self.origin.github.bare
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(bare), str(work)], check=True)
        if ref != "main":
            subprocess.run(["git", "-C", str(work), "update-ref", "--no-deref", "HEAD", ref], check=True)
        path.parent.mkdir(parents=True)
        text = self.origin.shown(ref, f".github/workflows/{name}.yml").decode()
        path.write_text(re.sub(r"^ +queue: max\b.*\n", "", text, flags=re.MULTILINE))  # act does not know the key yet
        return work

    def _command(self, name: str, event_name: str, home: Path, number: int, *, secret: bool) -> list[str]:
        github = self.origin.github
        environment = {
            "GITHUB_API_URL": f"{github.url}/api",
            "GITHUB_SERVER_URL": github.url,
            "GITHUB_REPOSITORY": NAME,
            "GITHUB_RUN_ID": str(number),
            "HOME": str(home),
            **self.environment,
        }
        secrets = {**(self.secrets if secret else {}), "GITHUB_TOKEN": f"job-token-{number}"}
        pins = _pins(home / f"work/.github/workflows/{name}.yml")
        assert ACT, "act is missing: make install"
        return [
            ACT,
            event_name,
            *("--eventpath", str(home / "event.json"), "--platform", "ubuntu-latest=-self-hosted"),
            "--no-cache-server",
            *_each("--local-repository", {pin: str(STAND_INS / pin.split("@")[0].split("/")[1]) for pin in pins}),
            *_each("--env", environment),
            *_each("--secret", secrets),
            *_each("--var", self.variables),
        ]


def plain_environment() -> dict[str, str]:
    """Return this process's environment without what a person's git or the CI around these tests would add."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    return kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def _each(option: str, values: Mapping[str, str]) -> list[str]:
    return [word for key, value in values.items() for word in (option, f"{key}={value}")]


def _repository() -> dict[str, Any]:
    return {"full_name": NAME, "name": "runs", "default_branch": "main", "owner": {"login": "acme"}}


def _permissions(path: Path) -> dict[str, str]:
    """Return what the workflow's jobs may do together, in the words of the API."""
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    found: dict[str, str] = {}
    for job in jobs:
        for key, level in job.get("permissions", {}).items():
            name = key.replace("-", "_")
            found[name] = level if found.get(name) != "write" else "write"
    return found


def _pins(path: Path) -> set[str]:
    return set(re.findall(r"uses: (\S+@[0-9a-f]{40})", path.read_text()))
