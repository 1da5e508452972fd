"""A real Kubernetes control plane with simulated nodes: started, used, and ended without a trace."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import components
from tests.cluster.api import Api, ApiError, Object, jobsets
from tests.cluster.build import UNITS, program
from tests.cluster.components import ADMIN, Site
from tests.cluster.ports import reserved
from tests.cluster.processes import Processes, processes

GIVEN = "RENDERER_TEST_KUBECONFIG"
"""The variable that names an existing cluster to use: with JobSet, and with Kueue for the tests that need it."""

JOBSET_KINDS = ("jobset", "v1-pod")
KUEUE_KINDS = ("-v1-job", "-jobset", "clusterqueue", "cohort", "resourceflavor", "v1beta2-workload")
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HOOKS = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A control plane that is ready. `seconds` is how long it took to start; logs are in `folder`."""

    folder: Path
    kubeconfig: Path
    api: Api
    running: Processes
    seconds: float

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator, whatever comes of it."""
        command = [str(program("kubectl")), "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def audit(self) -> Iterator[Object]:
        """Yield the API server's own record: every write of a Job or JobSet with request and response.

        A control plane that was given to us has none. What is being written now is left out, and what the server was
        writing when it was killed.
        """
        for path in sorted(self.folder.glob("audit*.log")):  # the server begins another file every 100 MB
            with path.open() as file:
                for line in file:
                    with suppress(json.JSONDecodeError):
                        yield json.loads(line)

    def restart_api_server(self) -> None:
        """Let the API server crash and start it again; its clients see lost connections meanwhile."""
        self.running.kill("kube-apiserver")
        self.running.start_again("kube-apiserver")
        self.running.wait("the API server", lambda: _answers(self.api))


@contextmanager
def control_plane(folder: Path, *, kueue: bool = False) -> Iterator[ControlPlane]:
    """Yield a control plane: the one of RENDERER_TEST_KUBECONFIG, else one of our own. Raises StartError."""
    given = os.environ.get(GIVEN)
    start = time.monotonic()
    with reserved() as ports, processes(folder) as running:
        site = Site(folder, ports, running)
        if given:
            kubeconfig, api = Path(given), _use(site, Path(given))
        else:
            kubeconfig, api = _start(site, kueue=kueue)
        with closing(api):
            yield ControlPlane(folder, kubeconfig, api, running, time.monotonic() - start)


def _use(site: Site, kubeconfig: Path) -> Api:
    """Join an existing cluster: JobSet, and Kueue if wanted, are there; the simulated nodes are ours."""
    components.prepare(site)
    components.kwok(site, kubeconfig)
    site.start("kubectl", "--kubeconfig", str(kubeconfig), "proxy", f"--port={site.port('proxy')}")
    api = Api(f"http://{site.address('proxy')}")
    site.running.wait("the API server", lambda: _answers(api))
    return api


def _start(site: Site, *, kueue: bool) -> tuple[Path, Api]:
    components.prepare(site)
    components.etcd(site)
    components.api_server(site)
    api = Api(f"https://{site.address('api')}", site.tokens[ADMIN], site.certificate)
    site.running.wait("the API server", lambda: _answers(api))
    kubeconfig = site.kubeconfig()
    components.controllers(site)
    components.scheduler(site)
    components.kwok(site, kubeconfig)
    modules = ["jobset", "kueue"] if kueue else ["jobset"]
    for name in modules:
        for path in sorted((_folder(name) / "crds").iterdir()):
            api.call("POST", _CRDS, path.read_bytes())
    site.running.wait("custom resources", lambda: all(map(_established, api.items(_CRDS))))
    components.jobset(site)
    if kueue:
        api.create("/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
        components.kueue(site)
    for name in modules:
        url = f"http://{site.address(f'{name}-health')}/readyz"
        site.running.wait(name, lambda url=url: _responds(url))  # type: ignore[misc]
    for name in modules:
        _install_webhooks(site, api, name)
    site.running.wait("JobSet's webhooks", lambda: _admits(api))
    return kubeconfig, api


_PROBE = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "probe"},
    "spec": {
        "replicatedJobs": [
            {
                "name": "probe",
                "template": {"spec": {"template": {"spec": {"containers": [{"name": "probe", "image": "probe"}]}}}},
            }
        ]
    },
}


def _admits(api: Api) -> bool:
    """Whether the webhooks answer: a controller says that it is ready before it serves them."""
    try:
        api.create(jobsets("default"), _PROBE, dryRun="All")
    except (ApiError, OSError):
        return False
    return True


def _folder(name: str) -> Path:
    return next(unit.folder for unit in UNITS if unit.name == name)


def _install_webhooks(site: Site, api: Api, name: str) -> None:
    kinds = JOBSET_KINDS if name == "jobset" else KUEUE_KINDS
    for hooks in components.webhooks(site, name, _folder(name) / "webhooks.yaml", kinds):
        api.create(f"{_HOOKS}/{hooks['kind'].lower()}s", hooks)


def _established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


def _answers(api: Api) -> bool:
    try:
        api.get("/readyz")
        api.get("/api/v1/namespaces/default")
    except (ApiError, OSError):
        return False
    return True


def _responds(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False
