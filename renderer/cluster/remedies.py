"""What to type for each thing that a cluster lacks, kubectl's part: complete for a shell, explanations as comments."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence

from renderer.cluster.permissions import Permission
from renderer.clusters import Cluster
from renderer.scalars import quote

JOBSET_RELEASE = "v0.12.0"
_KUEUE_RELEASE = "v0.17.0"
_RELEASE = "https://github.com/kubernetes-sigs/{}/releases/download/{}/manifests.yaml"

_PRIORITIES = {"very-low": 100, "low": 250, "medium": 500, "high": 750, "very-high": 1000}
"""The PriorityClasses that xpk makes, with their values."""


def namespace(name: str) -> str:
    """Return how to make a namespace."""
    return command("kubectl", "create", "namespace", name)


def jobset() -> str:
    """Return how to install the JobSet release that the manifests are made for."""
    return command("kubectl", "apply", "--server-side", "-f", _RELEASE.format("jobset", JOBSET_RELEASE))


def kueue() -> str:
    """Return how to install Kueue, and how to do without."""
    said = "# xpk cluster adapt installs it too. To run without a queue, write QUEUE: !remove under deploy: instead."
    return f"{said}\n{command('kubectl', 'apply', '--server-side', '-f', _RELEASE.format('kueue', _KUEUE_RELEASE))}"


def service_account(name: str, namespace: str) -> str:
    """Return how to make a service account."""
    return command("kubectl", "create", "serviceaccount", name, "-n", namespace)


def priority_class(name: str) -> str:
    """Return how to make a PriorityClass, with xpk's value where xpk has one of this name."""
    value = _PRIORITIES.get(name)
    others = ", ".join(f"{known} {number}" for known, number in _PRIORITIES.items())
    said = [] if value else [f"# Choose the value; xpk's are: {others}."]
    return "\n".join([*said, command("kubectl", "create", "priorityclass", name, f"--value={value or 500}")])


def secret(name: str, key: str, namespace: str) -> str:
    """Return how to make a secret of one entry that is typed in: its value is in no command line and no history."""
    make = command("kubectl", "create", "secret", "generic", name, "-n", namespace, f"--from-file={key}=/dev/stdin")
    prompt = f"IFS= read -rsp {shlex.quote(f'{key}: ')} VALUE"
    return f'# In bash: asks for the value.\n{prompt} && printf %s "$VALUE" | {make}; unset VALUE'


def hidden(name: str, namespace: str) -> str:
    """Return how to see whether a secret is there that the caller may not list."""
    said = "# Who may list secrets may read their values: better let someone look who may already."
    return f"{said}\n{command('kubectl', 'get', 'secret', name, '-n', namespace)}"


def claim(name: str, namespace: str, bucket: str) -> str:
    """Return how to make a claim on a bucket through GCS Fuse, with the volume it is bound to."""
    volume = f"{namespace}-{name}"
    shape = ["  accessModes: [ReadWriteMany]", '  storageClassName: ""']
    return apply(
        [
            "apiVersion: v1",
            "kind: PersistentVolume",
            f"metadata: {{name: {quote(volume)}}}",
            "spec:",
            *shape,
            "  capacity: {storage: 1Ti}",
            f"  claimRef: {{namespace: {quote(namespace)}, name: {quote(name)}}}",
            "  mountOptions: [implicit-dirs]",
            "  csi:",
            "    driver: gcsfuse.csi.storage.gke.io",
            f"    volumeHandle: {quote(bucket)}",
        ],
        [
            "apiVersion: v1",
            "kind: PersistentVolumeClaim",
            f"metadata: {{name: {quote(name)}, namespace: {quote(namespace)}}}",
            "spec:",
            *shape,
            "  resources: {requests: {storage: 1Ti}}",
            f"  volumeName: {quote(volume)}",
        ],
        said="# volumeHandle is the bucket to mount: here the one that the run writes to.",
    )


def unbound(name: str, namespace: str) -> str:
    """Return how to see why a claim is not bound."""
    said = "# Its events say why; usually its volume or storage class is missing."
    return f"{said}\n{command('kubectl', 'describe', 'persistentvolumeclaim', name, '-n', namespace)}"


def readable(caller: str, permission: Permission) -> str:
    """Return how to let the caller read what it may not."""
    where = ["-n", permission.namespace] if permission.namespace else []
    kind = "role" if permission.namespace else "clusterrole"
    name = f"renderer-{permission.verb}-{permission.resource}"
    verb, resource = f"--verb={permission.verb}", f"--resource={permission.kind}"
    bound = [f"--{kind}={name}", f"--user={caller}"]
    return "\n".join(
        [
            command("kubectl", "create", kind, name, verb, resource, *where),
            command("kubectl", "create", f"{kind}binding", f"{name}-{_tag(caller)}", *bound, *where),
        ]
    )


def permitted(caller: str, permissions: Sequence[Permission]) -> str:
    """Return how to let the caller do all of `permissions`, which lie in one namespace."""
    namespace, name = permissions[0].namespace, f"renderer-apply-{_tag(caller)}"
    verbs: dict[tuple[str, str], list[str]] = {}
    for permission in permissions:
        verbs.setdefault((permission.group, permission.resource), []).append(permission.verb)
    rules = [
        f"  - {{apiGroups: [{quote(group)}], resources: [{resource}], verbs: [{', '.join(found)}]}}"
        for (group, resource), found in verbs.items()
    ]
    rbac = "apiVersion: rbac.authorization.k8s.io/v1"
    metadata = f"metadata: {{name: {quote(name)}, namespace: {quote(namespace)}}}"
    subject = f"  - {{apiGroup: rbac.authorization.k8s.io, kind: User, name: {quote(caller)}}}"
    reference = f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {quote(name)}}}"
    return apply(
        [rbac, "kind: Role", metadata, "rules:", *rules],
        [rbac, "kind: RoleBinding", metadata, reference, "subjects:", subject],
    )


def identity(cluster: Cluster, found: str) -> str:
    """Return how to get to the cluster, and what to write if this is it."""
    return "\n".join(
        [
            "# Turn kubectl to the cluster:",
            command(
                *("gcloud", "container", "clusters", "get-credentials", cluster.cluster),
                *(f"--region={cluster.region}", f"--project={cluster.project}"),
            ),
            f"# If this is the cluster, correct presets/clusters.yml: identity: {found}",
        ]
    )


def command(*words: str) -> str:
    """Return a command line."""
    return shlex.join(words)


def long_command(words: str, flags: Iterable[str]) -> str:
    """Return a command line with one flag a line."""
    return " \\\n  ".join([words, *map(shlex.quote, flags)])


def json_patch(kind: str, name: str, path: str, operation: str, value: object) -> str:
    """Return a change of one place in an object that lies in no namespace."""
    patch = json.dumps([{"op": operation, "path": path, "value": value}])
    return command("kubectl", "patch", kind, name, "--type=json", "-p", patch)


def apply(*documents: Sequence[str], said: str = "") -> str:
    """Return how to apply manifests, given by lines. Values in them are quoted, so that none ends the text."""
    lines = "\n---\n".join("\n".join(document) for document in documents)
    return f"{said}\nkubectl apply -f - <<'EOF'\n{lines}\nEOF".lstrip("\n")


def flow(values: Mapping[str, str]) -> str:
    """Return a mapping of texts as YAML in one line."""
    return "{" + ", ".join(f"{key}: {quote(value)}" for key, value in values.items()) + "}"


def _tag(caller: str) -> str:
    """Return a few characters that stand for the caller in the name of an object."""
    return hashlib.sha256(caller.encode()).hexdigest()[:8]
