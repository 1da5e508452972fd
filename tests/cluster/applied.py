"""A repository whose merges are applied to a sandbox of a real control plane, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.cluster.api import Api, connect, jobsets
from renderer.cluster.ledger import Entry, Store
from tests.cluster.merges import Merges, make_repository
from tests.cluster.sandbox import Sandbox
from tests.content import Ran
from tests.repository import MODEL

POLICY = "environments:\n  test:\n    scale_from_zero: true\n  prod:\n    scale_from_zero: true\n"


@dataclass(frozen=True, slots=True)
class Applied:
    """A repository whose merges are applied to a sandbox."""

    merges: Merges
    sandbox: Sandbox
    api: Api

    @property
    def store(self) -> Store:
        return Store(self.api, "test")

    def write(self, name: str = "run", *, launch: Mapping[str, Any] | None = None, **maxtext: Any) -> None:
        """Write and render an experiment of one host in image mode."""
        given = {"chips": 4, "image": "maxtext-0.2.5", "branch": None, **(launch or {})}
        self.merges.experiment(name, launch=given, maxtext=maxtext)

    def merge(self, name: str = "run", **given: Any) -> str:
        """Write an experiment and commit it."""
        self.write(name, **given)
        return self.merges.commit()

    def run(self, *options: str, environment: str = "test") -> Ran:
        """Run `renderer apply`."""
        return self.merges.content.run("apply", "--environment", environment, *options)

    def apply(self, *options: str, code: int = 0) -> list[tuple[str, str, str]]:
        """Apply; return verdict, experiment's name and reason of each run, without digests."""
        ran = self.run("--format", "json", *options)
        assert ran.code == code, ran.out + ran.err
        found = json.loads(ran.out)["results"]
        return [(one["verdict"], one["experiment"].partition("/")[2], self.plain(one["reason"])) for one in found]

    def plain(self, text: str) -> str:
        for entry in self.store.entries():
            text = text.replace(entry.digest[:8], "(digest)")
        return text

    def entries(self) -> dict[str, Entry]:
        """Return the ledger by the experiment's name and attempt."""
        return {entry.name: entry for entry in self.store.entries()}

    def states(self) -> list[str]:
        """Return the states in the ledger, in the order in which the runs were recorded."""
        return [str(entry.state) for entry in sorted(self.store.entries(), key=lambda entry: entry.created)]

    def only(self) -> Entry:
        (entry,) = self.store.entries()
        return entry

    def remove(self, name: str = "run") -> str:
        """Remove an experiment and its rendered files, and commit that."""
        self.merges.remove(name)
        return self.merges.commit()

    def policy(self, text: str) -> str:
        """Commit a policy on top of the usual one."""
        self.merges.content.write("presets/policy.yml", POLICY + text)
        return self.merges.commit()

    def finish(self, name: str) -> None:
        """Let a JobSet that may run finish, as its controller would say it."""
        condition = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobset completed"}
        now = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        path = f"{jobsets(self.sandbox.namespace, name)}/status"
        self.api.merge(path, {"status": {"conditions": [condition | now], "terminalState": "Completed"}})

    def started(self) -> list[str]:
        """Return the names of the JobSets that may run."""
        return sorted(item["metadata"]["name"] for item in self.sandbox.jobsets() if not item["spec"].get("suspend"))


@contextmanager
def applying(sandbox: Sandbox, root: Path, deploy: Mapping[str, object] | None = None) -> Iterator[Applied]:
    """Yield a repository at `root` with nothing but presets, which are adopted."""
    merges = make_repository(root, sandbox.plane, sandbox.namespace, deploy)
    test = (root / f"presets/{MODEL}/environment/test.yml").read_bytes()
    merges.content.write(f"presets/{MODEL}/environment/prod.yml", test)
    path = "presets/clusters.yml"
    merges.content.edit(path, "  prod: prod-tpu7x\n", "  prod: test-tpu7x\n")
    merges.content.write("presets/policy.yml", POLICY)
    merges.commit()
    with closing(connect()) as api:
        found = Applied(merges, sandbox, api)
        assert found.apply("--adopt") == []
        yield found
