"""The command line and the configuration of each program of a control plane."""

from __future__ import annotations

import json
import secrets
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.build import CERTIFICATE, program
from tests.cluster.processes import Processes, StartError

ADMIN = "admin"
CONTROLLERS = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
SIMULATED = "test/simulated=true"
"""The label of the nodes that kwok plays."""

_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "RequestResponse",
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [{"group": "batch", "resources": ["jobs", "jobs/status"]}, {"group": "jobset.x-k8s.io"}],
        },
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class Site:
    """Where one control plane lives: its folder, its ports, its processes and the token of each of its users."""

    folder: Path
    ports: Iterator[int]
    running: Processes
    tokens: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    def address(self, name: str) -> str:
        """Return HOST:PORT of a listener, the same each time."""
        if name not in self.addresses:
            self.addresses[name] = f"127.0.0.1:{next(self.ports)}"
        return self.addresses[name]

    def port(self, name: str) -> str:
        """Return the port of a listener."""
        return self.address(name).split(":")[1]

    @property
    def certificate(self) -> Path:
        """The one self-signed certificate that every listener shows."""
        return self.folder / "tls.crt"

    @property
    def key(self) -> Path:
        """Its private key, which also signs service accounts' tokens."""
        return self.folder / "tls.key"

    def write(self, name: str, data: Any) -> str:
        """Write a configuration file, JSON being YAML, and return its path."""
        return str(self._write(name, json.dumps(data)))

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Write a kubeconfig for a user and return its path."""
        cluster = {"server": f"https://{self.address('api')}", "certificate-authority": str(self.certificate)}
        data = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "simulated", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "simulated", "context": {"cluster": "simulated", "user": user}}],
            "current-context": "simulated",
        }
        return self._write(f"{user.replace(':', '-')}.kubeconfig", yaml.safe_dump(data))

    def _write(self, name: str, text: str) -> Path:
        """Write a file in one step: a program that was started with it before may be reading it just now."""
        path = self.folder / name
        fresh = path.with_name(f"{name}.new")
        fresh.write_text(text)
        return fresh.replace(path)

    def start(self, name: str, *arguments: str, **environment: str) -> None:
        """Start a program."""
        path = program(name)
        if path is None:
            raise StartError(f"{name} is not built: run python -m tests.cluster.build")
        self.running.start(name, path, *arguments, environment=environment)


def prepare(site: Site) -> None:
    """Make the certificate and the users' tokens."""
    host = ["--host", "127.0.0.1,localhost", "--ca", "--ecdsa-curve", "P256", "--duration", "240h"]
    subprocess.run([CERTIFICATE, *host], cwd=site.folder, check=True, capture_output=True)
    (site.folder / "cert.pem").rename(site.certificate)
    (site.folder / "key.pem").rename(site.key)
    groups = {ADMIN: "system:masters", CONTROLLERS: "", SCHEDULER: ""}
    site.tokens.update({user: secrets.token_hex(16) for user in groups})
    lines = [f'{site.tokens[user]},{user},{user},"{group}"' for user, group in groups.items()]
    (site.folder / "tokens.csv").write_text("\n".join(lines) + "\n")


def etcd(site: Site) -> None:
    """Start etcd; nothing here outlives the test, so it need not wait for the disk."""
    client, peer = f"http://{site.address('etcd')}", f"http://{site.address('etcd-peer')}"
    site.start(
        "etcd",
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )


def api_server(site: Site) -> None:
    """Start kube-apiserver with RBAC, the admission plugins of a real one, and a record of all writes of runs."""
    site.start(
        "kube-apiserver",
        f"--etcd-servers=http://{site.address('etcd')}",
        f"--secure-port={site.port('api')}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--tls-cert-file={site.certificate}",
        f"--tls-private-key-file={site.key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--service-account-issuer=https://{site.address('api')}",
        f"--service-account-key-file={site.certificate}",
        f"--service-account-signing-key-file={site.key}",
        f"--token-auth-file={site.folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        f"--audit-policy-file={site.write('audit-policy.json', _AUDIT)}",
        f"--audit-log-path={site.folder / 'audit.log'}",
        "--audit-log-mode=blocking",
    )


def controllers(site: Site) -> None:
    """Start kube-controller-manager; there are no cloud and no pod networks to control."""
    kubeconfig = site.kubeconfig(CONTROLLERS)
    site.start(
        "kube-controller-manager",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={site.key}",
        f"--root-ca-file={site.certificate}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.port('controllers')}",
        f"--tls-cert-file={site.certificate}",
        f"--tls-private-key-file={site.key}",
        "--controllers=*,-node-ipam-controller,-service-lb-controller,-node-route-controller",
        "--node-monitor-grace-period=1h",  # kwok is late on a busy machine; a node is lost by its deletion
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    )


def scheduler(site: Site) -> None:
    """Start kube-scheduler."""
    kubeconfig = site.kubeconfig(SCHEDULER)
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
        "leaderElection": {"leaderElect": False},
    }
    site.start(
        "kube-scheduler",
        f"--config={site.write('scheduler.json', configuration)}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.port('scheduler')}",
        f"--tls-cert-file={site.certificate}",
        f"--tls-private-key-file={site.key}",
    )


def kwok(site: Site, kubeconfig: Path) -> None:
    """Start kwok, which plays the kubelets of simulated nodes."""
    site.start(
        "kwok",
        f"--kubeconfig={kubeconfig}",
        f"--manage-nodes-with-label-selector={SIMULATED}",
        f"--config={Path(__file__).parent / 'stages.yml'}",
        f"--server-address={site.address('kwok')}",
        "--node-ip=127.0.0.1",
        f"--node-port={site.port('kwok')}",
        f"--tls-cert-file={site.certificate}",
        f"--tls-private-key-file={site.key}",
    )


def jobset(site: Site) -> None:
    """Start JobSet's controller with its webhooks."""
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        **_manager(site, "jobset"),
    }
    site.start("jobset", f"--config={site.write('jobset.json', configuration)}", KUBECONFIG=str(site.kubeconfig()))


def kueue(site: Site) -> None:
    """Start Kueue with its webhooks, for JobSets and Jobs."""
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        **_manager(site, "kueue"),
        "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]},
    }
    site.start(
        "kueue",
        f"--config={site.write('kueue.json', configuration)}",
        "--feature-gates=VisibilityOnDemand=false",
        KUBECONFIG=str(site.kubeconfig()),
        METRICS_CERTS=str(site.folder),
    )


def _manager(site: Site, name: str) -> dict[str, Any]:
    return {
        "health": {"healthProbeBindAddress": site.address(f"{name}-health")},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": int(site.port(f"{name}-webhook")), "certDir": str(site.folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 500, "burst": 1000},
    }


def webhooks(site: Site, name: str, manifests: Path, kinds: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield a module's webhook configurations for those of its `kinds` that it serves, reached on the loopback."""
    bundle = b64encode(site.certificate.read_bytes()).decode()
    for document in filter(None, yaml.safe_load_all(manifests.read_text())):
        hooks = []
        for hook in document["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            if path.endswith(kinds):
                url = f"https://{site.address(f'{name}-webhook')}{path}"
                hooks.append({**hook, "clientConfig": {"url": url, "caBundle": bundle}})
        yield {**document, "metadata": {"name": f"{name}-{document['metadata']['name']}"}, "webhooks": hooks}
