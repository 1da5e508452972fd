"""What preflight prints for missing node pools, and that no value can break out of a command."""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess

import pytest

from renderer.accelerators import Slice, find_slice
from renderer.cluster import remedies, tpu_remedies
from renderer.cluster.permissions import Permission
from renderer.cluster.tpu_remedies import flavor_name, nodes, pool_name
from tests.cluster_unit.ready_cluster import CLUSTER, QUOTA
from tests.content import SHIPPED
from tools.jobset_schema import MODULE


def slice_of(topology: str, accelerator: str = "tpu7x") -> Slice:
    found = find_slice(accelerator, topology)
    assert found is not None
    return found


NODES = """\
# 1. Is the cluster there, and has it a pool of this topology that is RUNNING?
gcloud container clusters list --filter=name=tpu-prod --project=p-1
gcloud container node-pools list --cluster=tpu-prod --region=us-central1 --project=p-1
# 2. If not, make one with xpk, which configures Kueue too. It takes some minutes.
xpk cluster adapt --cluster=tpu-prod --project=p-1 --zone=us-central1-c --tpu-type=tpu7x-4x4x8 --num-slices=1 \
--reservation=r-2
#    Only if that ends with RESOURCE_EXHAUSTED: the next reservation.
xpk cluster adapt --cluster=tpu-prod --project=p-1 --zone=us-central1-c --tpu-type=tpu7x-4x4x8 --num-slices=1 \
--reservation=r-1
#    RESOURCE_EXHAUSTED again: no reservation of presets/clusters.yml is left; wait for capacity.
# 3. Only if xpk fails with its memory_limit bug: gcloud beta, not gcloud. The policy must be there:
gcloud compute resource-policies describe tpu7x-256-4x4x8-placement-policy --region=us-central1 --project=p-1
#    Only if it is not:
gcloud compute resource-policies create workload-policy tpu7x-256-4x4x8-placement-policy --type=HIGH_THROUGHPUT \
--accelerator-topology=4x4x8 --region=us-central1 --project=p-1
gcloud beta container node-pools create tpu7x-4x4x8 \\
  --cluster=tpu-prod \\
  --project=p-1 \\
  --location=us-central1 \\
  --node-locations=us-central1-c \\
  --machine-type=tpu7x-ultranet-4t \\
  --num-nodes=32 \\
  --placement-policy=tpu7x-256-4x4x8-placement-policy \\
  --reservation-affinity=specific \\
  --reservation=r-2 \\
  --enable-gvnic \\
  --scopes=storage-full,gke-default,https://www.googleapis.com/auth/cloud-platform \\
  --max-pods-per-node=15 \\
  --node-version="$(gcloud container clusters describe tpu-prod --location=us-central1 --project=p-1 \
'--format=value(currentNodeVersion)')"
#    Only if that ends with RESOURCE_EXHAUSTED: again with --reservation=r-1.
#    Without --placement-type=COMPACT and --tpu-topology: this TPU takes its topology from the policy.
#    Without --no-enable-autoupgrade: the RAPID channel does not allow it.
#    The cluster is regional: --location and --region are us-central1; --node-locations and xpk's
#    --zone are us-central1-c.
# 4. Then tell xpk of the size; only its own check reads this. Kueue is judged by preflight: run it again.
kubectl patch configmap tpu-prod-resources-configmap --type=merge -p '{"data":{"tpu7x-256":"32"}}'"""


def test_a_node_pool_with_the_run_s_own_reservation_first() -> None:
    assert nodes(CLUSTER, slice_of("4x4x8"), "high") == NODES


def test_a_run_without_reservation_of_its_own_takes_them_as_they_are_written() -> None:
    text = nodes(CLUSTER, slice_of("4x4x8"), "low")
    assert re.findall(r"^xpk .*--reservation=(\S+)", text, re.MULTILINE) == ["r-1", "r-2"]
    assert re.findall(r"^  --reservation=(\S+)", text, re.MULTILINE) == ["r-1"]


def test_without_reservations() -> None:
    text = nodes(dataclasses.replace(CLUSTER, reservations={}), slice_of("4x4x8"), "high")
    assert "reservation-affinity" not in text
    assert (
        """\
#    presets/clusters.yml names no reservation.
xpk cluster adapt --cluster=tpu-prod --project=p-1 --zone=us-central1-c --tpu-type=tpu7x-4x4x8 --num-slices=1 \
--on-demand
# 3."""
        in text
    )


def test_no_command_has_a_flag_that_must_not_be_there() -> None:
    commands = [line for line in nodes(CLUSTER, slice_of("8x8x16"), "high").split("\n") if not line.startswith("#")]
    for flag in ("--placement-type", "--tpu-topology", "--no-enable-autoupgrade"):
        assert not any(flag in line for line in commands)


@pytest.mark.parametrize(
    ("accelerator", "topology", "tpu_type"),
    [("v5p", "4x4x8", "v5p-256"), ("v6e", "16x16", "v6e-256"), ("v5e", "16x16", "v5litepod-256")],
)
def test_other_generations_get_xpk_only(accelerator: str, topology: str, tpu_type: str) -> None:
    lines = nodes(CLUSTER, slice_of(topology, accelerator), "high").split("\n")
    assert f"--tpu-type={tpu_type} " in lines[4]
    assert lines[-1].startswith("#    RESOURCE_EXHAUSTED again")


def test_node_pools_are_named_as_clusters_yml_says() -> None:
    cluster = dataclasses.replace(CLUSTER, node_pool="np-{accelerator}-{chips}c-{topology}")
    assert pool_name(cluster, slice_of("4x8x8")) == "np-tpu7x-256c-4x8x8"


TABLE = """\
| topology | chips | devices | hosts | machine type | Kueue flavor | Kueue quota |
|---|---|---|---|---|---|---|
| tpu7x-4x4x4 | 64 | 128 | 16 | tpu7x-ultranet-4t | 1xtpu7x-128 | 64 |
| tpu7x-4x4x8 | 128 | 256 | 32 | tpu7x-ultranet-4t | 1xtpu7x-256 | 128 |
| tpu7x-4x8x8 | 256 | 512 | 64 | tpu7x-ultranet-4t | 1xtpu7x-512 | 256 |
| tpu7x-8x8x8 | 512 | 1024 | 128 | tpu7x-ultranet-4t | 1xtpu7x-1024 | 512 |
| tpu7x-8x8x16 | 1024 | 2048 | 256 | tpu7x-ultranet-4t | 1xtpu7x-2048 | 1024 |
| tpu7x-16x8x16 | 2048 | 4096 | 512 | tpu7x-ultranet-4t | 1xtpu7x-4096 | 2048 |
"""


@pytest.mark.parametrize("row", TABLE.splitlines()[2:])
def test_topologies_are_named_and_sized_as_on_real_clusters(row: str) -> None:
    name, *cells = [cell.strip() for cell in row.strip("|").split("|")]
    found = slice_of(name.removeprefix("tpu7x-"))
    machine = re.findall(r"--machine-type=(\S+)", nodes(CLUSTER, found, "high"))
    sizes = map(str, (found.chips, found.devices, found.hosts))
    assert cells == [*sizes, *machine, flavor_name(found, {}), str(found.chips)]


def test_the_documented_table_is_this_one() -> None:
    assert TABLE in (SHIPPED / "docs/preflight.md").read_text()


def test_the_jobset_release_is_the_one_that_manifests_are_checked_against() -> None:
    assert MODULE.endswith(f"@{remedies.JOBSET_RELEASE}")


HOSTILE = 'x y\'; touch /tmp/never "$(id)"\nEOF\n: {}'


def test_no_value_ends_its_word_or_its_manifest() -> None:
    slice_ = slice_of("4x4x8")
    cluster = dataclasses.replace(CLUSTER, cluster=HOSTILE, project=HOSTILE, reservations={"high": HOSTILE, "b": "'"})
    written = Permission("list", "", "nodes", HOSTILE)
    texts = [
        remedies.namespace(HOSTILE),
        remedies.service_account(HOSTILE, HOSTILE),
        remedies.priority_class(HOSTILE).split("\n", 1)[1],
        remedies.readable(HOSTILE, written),
        remedies.unbound(HOSTILE, HOSTILE).split("\n", 1)[1],
        tpu_remedies.gcs_fuse(cluster),
        tpu_remedies.entry(HOSTILE, 0, HOSTILE, 1),
        tpu_remedies.quota(HOSTILE, QUOTA.path, 1),
    ]
    for text in texts:
        assert any(HOSTILE in word for word in shlex.split(text)), text
        assert not {"touch", "$(id)"} & set(shlex.split(text)), text
    manifests = [
        remedies.claim(HOSTILE, HOSTILE, HOSTILE),
        remedies.permitted(HOSTILE, [written]),
        tpu_remedies.cluster_queue(HOSTILE, HOSTILE, slice_, "v"),
        tpu_remedies.local_queue(HOSTILE, HOSTILE, HOSTILE, "v"),
    ]
    for text in manifests:
        assert text.split("\n").count("EOF") == 1
        assert text.endswith("\nEOF")


def test_a_secret_is_typed_in_and_stands_in_no_command_line() -> None:
    text = remedies.secret("s", "KEY", "ns")
    script = f'kubectl() {{ echo "$@"; cat; }}\n{text}\necho "[$VALUE]"'
    done = subprocess.run(["bash", "-c", script], input=" v \\a\n", capture_output=True, text=True, check=True)
    assert done.stdout == "create secret generic s -n ns --from-file=KEY=/dev/stdin\n v \\a[]\n"
