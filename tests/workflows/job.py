"""A trusted job's surroundings, for tests that run its programs in this process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from flow.refusal import NothingToDoError, RefusedError
from tests.workflows.fake_github import NAME, GitHub, Pull, Run, Token


@dataclass(frozen=True, slots=True)
class Job:
    """Environment variables, event and clone of a job of the default branch."""

    github: GitHub
    folder: Path
    patch: pytest.MonkeyPatch

    def prepare(self, **permissions: str) -> None:
        """Set what the runner would, for a token with these permissions."""
        self.github.tokens["job"] = Token(permissions=permissions)
        clone = self.folder / "workspace"
        if not clone.exists():
            words = ["git", "clone", "--quiet", "--depth=1", f"{self.github.url}/{NAME}", str(clone)]
            subprocess.run(words, check=True)
        self.patch.chdir(clone)
        for name, value in {
            "GITHUB_API_URL": f"{self.github.url}/api",
            "GITHUB_SERVER_URL": self.github.url,
            "GITHUB_REPOSITORY": NAME,
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_TOKEN": "job",
        }.items():
            self.patch.setenv(name, value)

    def follow(self, pull: Pull, sha: str, artifacts: dict[str, bytes], **about: Any) -> Run:
        """Let the job follow a run of the pull request's branch that left these artifacts."""
        number = len(self.github.runs) + 5000
        run = Run(number, sha, pull.branch, repository=pull.repository, **about)
        self.github.runs[number] = run
        self.github.artifacts[number] = artifacts
        event = {"workflow_run": {"id": number}, "repository": {"default_branch": "main"}}
        (self.folder / "event.json").write_text(json.dumps(event))
        return run


def app_key(github: GitHub) -> str:
    """Return the private key of an App that the server knows."""
    private = rsa.generate_private_key(65537, 2048)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    public = private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    github.app_key = public.decode()
    github.app_permissions = {"contents": "write", "metadata": "read"}
    return private.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode()


def not_a_key(kind: str) -> str:
    """Return what somebody may take for the private key of an App."""
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    rsa_key = rsa.generate_private_key(65537, 2048)
    head, *_, end = rsa_key.private_bytes(pem, form, plain).splitlines()
    made = {
        "no key": b"SHA256:abc",
        "damaged": b"\n".join([head, b"AAAA", end]),
        "public": rsa_key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
        "ssh": rsa_key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
        "encrypted": rsa_key.private_bytes(pem, form, serialization.BestAvailableEncryption(b"word")),
        "elliptic": ec.generate_private_key(ec.SECP256R1()).private_bytes(pem, form, plain),
    }
    return made[kind].decode()


def said(main: Callable[[], str]) -> str:
    """Return what a program ends with: its line, or why it did nothing, or why it refused."""
    try:
        return main()
    except NothingToDoError as reason:
        return f"nothing: {reason}"
    except RefusedError as error:
        return f"refused: {error}"
