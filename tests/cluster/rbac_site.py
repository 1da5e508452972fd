"""rbac/*.yml as installed on a real API server, with a kubeconfig for each identity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from renderer.cluster.api import Api, connect, core
from tests.cluster.plane import ControlPlane
from tests.cluster.sandbox import Sandbox
from tests.cluster.sandbox import sandbox as open_sandbox

MANIFESTS = Path(__file__).parents[2] / "rbac"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ENVIRONMENT = "renderer/environment"
IDENTITIES = ("apply", "read", "nobody")


@dataclass(frozen=True, slots=True)
class Site:
    """The manifests as installed for `test`, with runs in the sandbox's namespace; `other` is somebody else's."""

    sandbox: Sandbox
    other: Sandbox
    control: str
    kubeconfigs: Mapping[str, Path]

    def api(self, who: str, monkeypatch: pytest.MonkeyPatch) -> Api:
        """Return the client that the commands use, as one of the identities; KUBECONFIG stays set."""
        monkeypatch.setenv("KUBECONFIG", str(self.kubeconfigs[who]))
        return connect()


@contextmanager
def installed(sandbox: Sandbox, control: str, folder: Path) -> Iterator[Site]:
    """Install the manifests, and put a kubeconfig of each identity into a folder."""
    plane = sandbox.plane
    with open_sandbox(plane) as other:
        made = list(install(plane, {"default": sandbox.namespace, "renderer-control": control}))
        kubeconfigs = {who: kubeconfig(plane, control, who, folder) for who in IDENTITIES}
        try:
            yield Site(sandbox, other, control, kubeconfigs)
        finally:
            for path in made:
                plane.api.delete(path)


def install(plane: ControlPlane, namespaces: Mapping[str, str]) -> Iterator[str]:
    """Create the manifests, without what is prod's, in namespaces of the test's own; yield what outlives these.

    The subjects are service accounts here: each is the user system:serviceaccount:NAMESPACE:NAME.
    """
    control = namespaces["renderer-control"]
    for who in ("apply", "read"):
        for item in yaml.safe_load_all((MANIFESTS / f"{who}.yml").read_text()):
            metadata, kind = item["metadata"], item["kind"].lower() + "s"
            if kind == "namespaces" or metadata.get("labels", {}).get(ENVIRONMENT) == "prod":
                continue
            if "subjects" in item:
                item["subjects"][0]["name"] = f"system:serviceaccount:{control}:{who}"
            if item.get("roleRef", {}).get("kind") == "ClusterRole":
                item["roleRef"]["name"] += f"-{control}"
            if "namespace" in metadata:
                metadata["namespace"] = namespaces[metadata["namespace"]]
                plane.api.create(f"{RBAC}/namespaces/{metadata['namespace']}/{kind}", item)
            else:
                metadata["name"] += f"-{control}"
                plane.api.create(f"{RBAC}/{kind}", item)
                yield f"{RBAC}/{kind}/{metadata['name']}"


def kubeconfig(plane: ControlPlane, namespace: str, who: str, folder: Path) -> Path:
    """Make a service account and return a kubeconfig with its token."""
    plane.api.create(core(namespace, "serviceaccounts"), {"metadata": {"name": who}})
    path = f"{core(namespace, 'serviceaccounts', who)}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    data = yaml.safe_load(plane.kubeconfig.read_text())
    data["users"][0]["user"] = {"token": plane.api.create(path, request)["status"]["token"]}
    (folder / f"{who}.kubeconfig").write_text(yaml.safe_dump(data))
    return folder / f"{who}.kubeconfig"
