"""What to type for missing node pools and Kueue quotas of TPUs: xpk first, gcloud where xpk fails."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from renderer.accelerators import Slice
from renderer.cluster.needs import ACCELERATOR_LABEL, TOPOLOGY_LABEL, TPU
from renderer.cluster.remedies import apply, command, flow, json_patch, long_command
from renderer.clusters import Cluster
from renderer.scalars import quote

_XPK = {"v5e": "v5litepod"}
_MACHINES = {
    "tpu7x": "tpu7x-ultranet-4t",
    "v6e": "ct6e-standard-4t",
    "v5p": "ct5p-hightpu-4t",
    "v5e": "ct5lp-hightpu-4t",
}


def _device_type(slice_: Slice) -> str:
    """Return what xpk calls the slice by its size, such as tpu7x-256: as MaxText counts, mostly under its name."""
    name, _, size = slice_.compile_topology.partition("-")
    return f"{_XPK.get(name, name)}-{size}"


def pool_name(cluster: Cluster, slice_: Slice) -> str:
    """Return the name of the cluster's node pool for a slice."""
    fields = {"accelerator": slice_.accelerator.name, "topology": slice_.topology, "chips": str(slice_.chips)}
    name = cluster.node_pool
    for field, value in fields.items():
        name = name.replace(f"{{{field}}}", value)
    return name


def nodes(cluster: Cluster, slice_: Slice, priority_class: str) -> str:
    """Return how to look for a node pool of the slice and how to make one.

    The reservation of the run's PriorityClass comes first, the others as presets/clusters.yml orders them.
    """
    reservations = _reservations(cluster, priority_class)
    lines = [
        "# 1. Is the cluster there, and has it a pool of this topology that is RUNNING?",
        command(
            *("gcloud", "container", "clusters", "list"),
            *(f"--filter=name={cluster.cluster}", f"--project={cluster.project}"),
        ),
        command("gcloud", "container", "node-pools", "list", *_place(cluster)),
        "# 2. If not, make one with xpk, which configures Kueue too. It takes some minutes.",
        *_adapt(cluster, slice_, reservations),
    ]
    if slice_.accelerator.name == "tpu7x":
        lines += _by_hand(cluster, slice_, reservations)
    return "\n".join(lines)


def no_slice(accelerator: str, topology: str) -> str:
    """Return what to do about pods that ask for nodes of no known slice: only an edited manifest has them."""
    return f"# {accelerator!r} has no topology {topology!r} that is known: run renderer render."


def _place(cluster: Cluster) -> list[str]:
    return [f"--cluster={cluster.cluster}", f"--region={cluster.region}", f"--project={cluster.project}"]


def _reservations(cluster: Cluster, priority_class: str) -> list[str]:
    first = cluster.reservations.get(priority_class)
    return list(dict.fromkeys([*([first] if first else []), *cluster.reservations.values()]))


def _adapt(cluster: Cluster, slice_: Slice, reservations: list[str]) -> list[str]:
    name = slice_.accelerator.name
    name = f"{name}-{slice_.topology}" if name == "tpu7x" else _device_type(slice_)
    place = [f"--cluster={cluster.cluster}", f"--project={cluster.project}", f"--zone={cluster.zone}"]
    words = ["xpk", "cluster", "adapt", *place, f"--tpu-type={name}", "--num-slices=1"]
    if not reservations:
        return ["#    presets/clusters.yml names no reservation.", command(*words, "--on-demand")]
    first, *others = (command(*words, f"--reservation={reservation}") for reservation in reservations)
    lines = [first]
    for other in others:
        lines += ["#    Only if that ends with RESOURCE_EXHAUSTED: the next reservation.", other]
    return [*lines, "#    RESOURCE_EXHAUSTED again: no reservation of presets/clusters.yml is left; wait for capacity."]


def _by_hand(cluster: Cluster, slice_: Slice, reservations: list[str]) -> list[str]:
    policy = f"tpu7x-{slice_.devices}-{slice_.topology}-placement-policy"
    region = [f"--region={cluster.region}", f"--project={cluster.project}"]
    policies = ["gcloud", "compute", "resource-policies"]
    form = ["--type=HIGH_THROUGHPUT", f"--accelerator-topology={slice_.topology}"]
    sizes = f'{{"data":{{"{_device_type(slice_)}":"{slice_.hosts}"}}}}'
    sizes_map = f"{cluster.cluster}-resources-configmap"
    return [
        "# 3. Only if xpk fails with its memory_limit bug: gcloud beta, not gcloud. The policy must be there:",
        command(*policies, "describe", policy, *region),
        "#    Only if it is not:",
        command(*policies, "create", "workload-policy", policy, *form, *region),
        *_create(cluster, slice_, policy, reservations),
        "#    Without --placement-type=COMPACT and --tpu-topology: this TPU takes its topology from the policy.",
        "#    Without --no-enable-autoupgrade: the RAPID channel does not allow it.",
        f"#    The cluster is regional: --location and --region are {cluster.region}; --node-locations and xpk's",
        f"#    --zone are {cluster.zone}.",
        "# 4. Then tell xpk of the size; only its own check reads this. Kueue is judged by preflight: run it again.",
        command("kubectl", "patch", "configmap", sizes_map, "--type=merge", "-p", sizes),
    ]


def _create(cluster: Cluster, slice_: Slice, policy: str, reservations: list[str]) -> list[str]:
    version = [f"--location={cluster.region}", f"--project={cluster.project}", "--format=value(currentNodeVersion)"]
    found = command("gcloud", "container", "clusters", "describe", cluster.cluster, *version)
    reserved = ["--reservation-affinity=specific", f"--reservation={reservations[0]}"] if reservations else []
    flags = [
        f"--cluster={cluster.cluster}",
        f"--project={cluster.project}",
        f"--location={cluster.region}",
        f"--node-locations={cluster.zone}",
        f"--machine-type={_MACHINES[slice_.accelerator.name]}",
        f"--num-nodes={slice_.hosts}",
        f"--placement-policy={policy}",
        *reserved,
        "--enable-gvnic",
        "--scopes=storage-full,gke-default,https://www.googleapis.com/auth/cloud-platform",
        "--max-pods-per-node=15",
    ]
    words = command("gcloud", "beta", "container", "node-pools", "create", pool_name(cluster, slice_))
    made = long_command(words, flags) + f' \\\n  --node-version="$({found})"'
    after = "#    Only if that ends with RESOURCE_EXHAUSTED: again with --reservation={}."
    return [made, *(after.format(shlex.quote(reservation)) for reservation in reservations[1:])]


def gcs_fuse(cluster: Cluster) -> str:
    """Return how to switch on the GCS Fuse CSI driver."""
    place = [f"--location={cluster.region}", f"--project={cluster.project}"]
    addon = "--update-addons=GcsFuseCsiDriver=ENABLED"
    return command("gcloud", "container", "clusters", "update", cluster.cluster, *place, addon)


def flavor_name(slice_: Slice, flavors: Mapping[str, Mapping[str, str]]) -> str:
    """Return the name of a slice's ResourceFlavor: xpk's, unless that is another topology of the same size."""
    name = f"1x{_device_type(slice_)}"
    return name if flavors.get(name, _node_labels(slice_)) == _node_labels(slice_) else f"{name}-{slice_.topology}"


def _node_labels(slice_: Slice) -> dict[str, str]:
    """Return the labels by which GKE's nodes of a slice are found."""
    return {ACCELERATOR_LABEL: slice_.accelerator.gke_label, TOPOLOGY_LABEL: slice_.topology}


def flavor(name: str, slice_: Slice, version: str) -> str:
    """Return how to make the ResourceFlavor of a slice."""
    return apply(_flavor(name, slice_, version))


def entry(queue: str, group: int, name: str, chips: int) -> str:
    """Return how to give a ClusterQueue `chips` of a flavor, in its resource group for TPUs."""
    value = {"name": name, "resources": [{"name": TPU, "nominalQuota": chips}]}
    return json_patch("clusterqueue", queue, f"/spec/resourceGroups/{group}/flavors/-", "add", value)


def group(queue: str, name: str, chips: int) -> str:
    """Return how to give a ClusterQueue without a resource group for TPUs one with `chips` of a flavor."""
    flavors = [{"name": name, "resources": [{"name": TPU, "nominalQuota": chips}]}]
    value = {"coveredResources": [TPU], "flavors": flavors}
    return json_patch("clusterqueue", queue, "/spec/resourceGroups/-", "add", value)


def quota(queue: str, path: str, chips: int) -> str:
    """Return how to raise a ClusterQueue's quota at the JSON pointer `path`."""
    return json_patch("clusterqueue", queue, path, "replace", chips)


def cluster_queue(queue: str, name: str, slice_: Slice, version: str) -> str:
    """Return how to make a ClusterQueue for one slice, with its flavor."""
    made = [
        f"apiVersion: {version}",
        "kind: ClusterQueue",
        f"metadata: {{name: {quote(queue)}}}",
        "spec:",
        "  namespaceSelector: {}",
        "  resourceGroups:",
        f"    - coveredResources: [{TPU}]",
        "      flavors:",
        f"        - name: {quote(name)}",
        "          resources:",
        f"            - {{name: {TPU}, nominalQuota: {slice_.chips}}}",
    ]
    return apply(_flavor(name, slice_, version), made)


def local_queue(name: str, namespace: str, queue: str, version: str) -> str:
    """Return how to make a LocalQueue of a ClusterQueue."""
    return apply(
        [
            f"apiVersion: {version}",
            "kind: LocalQueue",
            f"metadata: {flow({'name': name, 'namespace': namespace})}",
            f"spec: {flow({'clusterQueue': queue})}",
        ]
    )


def _flavor(name: str, slice_: Slice, version: str) -> list[str]:
    labels = [f"    {key}: {quote(value)}" for key, value in _node_labels(slice_).items()]
    metadata = f"metadata: {{name: {quote(name)}}}"
    return [f"apiVersion: {version}", "kind: ResourceFlavor", metadata, "spec:", "  nodeLabels:", *labels]
