"""Logs of simulated pods: a kwok that serves what a test writes, read through the API server as from a kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import components
from tests.cluster.api import Api, ApiError, Object, wait_for
from tests.cluster.components import Site
from tests.cluster.ports import reserved
from tests.cluster.processes import processes
from tests.cluster.sandbox import Sandbox

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_LOGS = "/apis/kwok.x-k8s.io/v1alpha1"
_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "logs.kwok.x-k8s.io"},
    "spec": {
        "group": "kwok.x-k8s.io",
        "names": {"kind": "Logs", "listKind": "LogsList", "plural": "logs", "singular": "logs"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@dataclass(frozen=True, slots=True)
class PodLog:
    """The log file of one pod's container, in the form in which container runtimes write it."""

    path: Path

    def write(self, *lines: str, at: str = "2026-11-29T21:00:00.000000000Z", stream: str = "stdout") -> None:
        """Append lines, all with one time."""
        with self.path.open("a") as file:
            file.writelines(f"{at} {stream} F {line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class NodeLogs:
    """Serves the logs of a sandbox's pods."""

    sandbox: Sandbox
    site: Site

    def of(self, pod: Object) -> PodLog:
        """Let a pod that is running have a log, which is empty."""
        metadata, api = pod["metadata"], self.sandbox.plane.api
        log = PodLog(self.site.folder / f"{metadata['name']}.log")
        log.path.touch()
        node = f"/api/v1/nodes/{pod['spec']['nodeName']}/status"
        endpoint = {"kubeletEndpoint": {"Port": int(self.site.port("kwok"))}}
        api.patch(node, {"status": {"daemonEndpoints": endpoint}})
        spec = {"logs": [{"containers": ["trainer"], "logsFile": str(log.path)}]}
        named = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Logs", "metadata": {"name": metadata["name"]}}
        api.create(f"{_LOGS}/namespaces/{metadata['namespace']}/logs", {**named, "spec": spec})
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/log"
        wait_for("the pod's log", lambda: _answers(api, path))
        return log

    def lose(self) -> None:
        """Let every connection to the nodes break."""
        self.site.running.kill("kwok")

    def return_(self) -> None:
        """Let the nodes answer again."""
        self.site.running.start_again("kwok")


@contextmanager
def node_logs(sandbox: Sandbox, folder: Path) -> Iterator[NodeLogs]:
    """Yield what serves the logs of the sandbox's pods; it has ended afterwards."""
    api = sandbox.plane.api
    with suppress(ApiError):
        api.create(_CRDS, _CRD)
    wait_for("kwok's logs", lambda: _is_served(api, f"{_LOGS}/namespaces/default/logs"))
    with reserved() as ports, processes(folder) as running:
        site = Site(folder, ports, running)
        components.prepare(site)
        site.start(
            "kwok",
            f"--kubeconfig={sandbox.plane.kubeconfig}",
            "--manage-nodes-with-label-selector=test/no-node=true",
            "--enable-crds=Logs",
            f"--server-address={site.address('kwok')}",
            "--node-ip=127.0.0.1",
            f"--node-port={site.port('kwok')}",
            f"--tls-cert-file={site.certificate}",
            f"--tls-private-key-file={site.key}",
        )
        yield NodeLogs(sandbox, site)


def _is_served(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError:  # it is not there yet, or its storage is not
        return False
    return True


def _answers(api: Api, path: str) -> bool:
    try:
        api.call("GET", path, None, container="trainer")
    except ApiError:
        return False
    return True
