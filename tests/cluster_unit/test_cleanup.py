"""What counts as left over, and what is printed of node pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from renderer.accelerators import find_slice
from renderer.cluster.api import Api, Object
from renderer.cluster.cleanup import Leftover, Plan, _pool_commands, delete, find
from renderer.cluster.damage import Damaged
from renderer.cluster.ledger import State
from renderer.cluster.observe import Seen
from renderer.clusters import Cluster
from renderer.location import Location
from tests.cluster_unit.seen import ended, entry, jobset, seen

SCRIPTS = {"bootstrap.sh": "set -e\n"}


class Namespace:
    """A cluster that has these ConfigMaps and Deployments."""

    def __init__(self, config_maps: dict[str, Any], *deployments: str) -> None:
        self._objects = {
            "configmaps": [_object(name, data) for name, data in config_maps.items()],
            "deployments": [_object(name, {}) for name in deployments],
        }

    def items(self, path: str, **_query: str) -> Iterator[Object]:
        return iter(self._objects[path.rpartition("/")[2]])


def _object(name: str, data: Any) -> Object:
    return {"metadata": {"name": name, "uid": f"uid of {name}", "resourceVersion": "1"}, "data": data}


def run(name: str, *, scripts: str = "", over: bool = False, **fields: Any) -> Seen:
    found = jobset(name, ended=ended("Completed") if over else None)
    volumes = [{"configMap": {"name": f"run-{name}"}}, {"configMap": {"name": scripts}}]
    found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"] = {"spec": {"volumes": volumes}}
    return seen(entry(name, **fields), found)


def left(namespace: Namespace, *runs: Seen, unreadable: bool = False) -> list[str]:
    plan = find(cast("Api", namespace), runs, ["test"], unreadable=unreadable)
    return [f"{item.kind} {item.name}: {item.why}" for item in plan.leftovers]


def test_what_a_finished_run_left_and_nothing_of_a_living_one() -> None:
    there = Namespace(
        {
            "run-old": {},
            "run-new": {},
            "run-other": {},
            "pod-111111111111": SCRIPTS,
            "pod-222222222222": SCRIPTS,
            "pod-333333333333": {"else": ""},
        },
        "old-hf",
        "new-hf",
    )
    old, new = run("old", scripts="pod-111111111111", over=True), run("new", scripts="pod-222222222222")
    assert left(there, old, new) == [
        "JobSet old: the run has finished",
        "Deployment old-hf: the run has finished; it converts no checkpoint after this",
        "ConfigMap run-old: the run has finished",
        "ConfigMap pod-111111111111: no living run uses these pod scripts",
    ]


def test_pod_scripts_stay_while_a_run_is_being_launched() -> None:
    there = Namespace({"run-old": {}, "pod-111111111111": SCRIPTS})
    old = run("old", scripts="pod-111111111111", over=True)
    assert left(there, old, seen(entry("next", state=State.PENDING))) == [
        "JobSet old: the run has finished",
        "ConfigMap run-old: the run has finished",
    ]


def test_scripts_stay_while_an_entry_cannot_be_read() -> None:
    there = Namespace({"run-old": {}, "run-lost": {}, "pod-111111111111": SCRIPTS}, "lost-hf")
    assert left(there, run("old", over=True), unreadable=True) == [
        "JobSet old: the run has finished",
        "ConfigMap run-old: the run has finished",
    ]


def test_what_a_run_left_whose_entry_cannot_be_read_stays() -> None:
    there = Namespace({"run-lost": {}, "pod-111111111111": SCRIPTS}, "lost-hf")
    unreadable = Damaged("ConfigMap", "control", "lost", "is no entry of the ledger: it has no digest")
    lost = Seen(None, jobset("lost", ended=ended("Completed")), unreadable=unreadable)
    assert left(there, lost, seen(entry("old", state=State.STOPPED))) == [
        "ConfigMap pod-111111111111: no living run uses these pod scripts"
    ]
    assert left(there, lost, seen(entry("old", state=State.STOPPED)), unreadable=True) == []


def test_the_namespace_of_a_run_that_was_refused_before_it_was_made_is_not_asked() -> None:
    refused = seen(entry("new", state=State.REFUSED, uid="", namespace="closed"))
    assert find(cast("Api", None), [refused], ["test"]) == Plan((), ())


@pytest.mark.parametrize("spec", [None, {}, {"replicatedJobs": [{"template": {"spec": {"template": {"spec": {}}}}}]}])
def test_a_living_jobset_that_mounts_nothing_keeps_nothing(spec: Any) -> None:
    odd = Seen(None, {**jobset("odd"), "spec": spec})
    assert left(Namespace({"run-old": {}}), odd, run("old", over=True))[1:] == [
        "ConfigMap run-old: the run has finished"
    ]


def test_a_volume_of_no_config_map_keeps_none() -> None:
    odd = jobset("odd")
    odd["spec"]["replicatedJobs"][0]["template"]["spec"]["template"] = {"spec": {"volumes": [{"configMap": {}}]}}
    assert left(Namespace({}), Seen(None, odd), seen(entry("old", state=State.STOPPED))) == []


def test_runs_of_another_environment_are_left_alone_and_keep_their_scripts() -> None:
    there = Namespace({"run-old": {}, "run-prod": {}, "pod-111111111111": SCRIPTS})
    prod = run("prod", scripts="pod-111111111111", environment="prod")
    assert left(there, seen(entry("old", state=State.STOPPED)), prod) == ["ConfigMap run-old: the run is stopped"]
    over = run("prod", scripts="pod-111111111111", environment="prod", over=True)
    assert left(there, over) == []


def test_a_jobset_that_took_the_name_of_a_launched_one_keeps_its_files_and_its_watcher() -> None:
    there = Namespace({"run-old": {}}, "old-hf")
    stray = run("old")
    assert left(there, seen(entry("old")), Seen(None, stray.jobset)) == []


def test_a_jobset_that_the_ledger_does_not_record_stays_for_the_launch_that_may_take_it_up() -> None:
    there = Namespace({"run-old": {}, "pod-111111111111": SCRIPTS})
    dropped = run("old", scripts="pod-111111111111", state=State.STOPPED, uid="")
    assert left(there, dropped) == []
    assert left(there, run("old", scripts="pod-111111111111", state=State.STOPPED)) == [
        "JobSet old: the run is stopped",
        "ConfigMap run-old: the run is stopped",
        "ConfigMap pod-111111111111: no living run uses these pod scripts",
    ]


def test_what_is_in_no_ledger_is_left_over_once_it_has_finished() -> None:
    stray = jobset("stray", ended=ended("Failed"))
    stray["spec"]["replicatedJobs"] = []
    assert left(Namespace({}), seen(None, stray)) == ["JobSet stray: the run has failed, in no ledger"]


def test_node_pools_are_named_as_clusters_yml_says_and_are_regional() -> None:
    found = find_slice("tpu7x", "4x4x4")
    assert found is not None
    cluster = Cluster(
        "c", "project", "us-central1", "zone", "tpu-prod", "", "{accelerator}-{topology}", {}, Location("")
    )
    assert "\n".join(_pool_commands(cluster, [found])) == (
        "gcloud container node-pools delete tpu7x-4x4x4 \\\n"
        "  --cluster=tpu-prod \\\n  --region=us-central1 \\\n  --project=project \\\n  --quiet\n"
        "gcloud container node-pools list --cluster=tpu-prod --region=us-central1 --project=project"
    )
    assert _pool_commands(cluster, []) == []


def leftover(name: str, uid: str = "1", version: str = "1") -> Leftover:
    return Leftover("ConfigMap", "ns", name, uid, "the run has finished", version)


def test_only_what_was_agreed_to_and_is_left_over_still_is_deleted() -> None:
    old, new = seen(entry("old")), seen(entry("new"))
    agreed = Plan(tuple(map(leftover, ("run-old", "run-again", "run-used", "run-gone"))), (old,))
    changed = (leftover("run-again", uid="2"), leftover("run-used", version="2"))
    later = Plan((leftover("run-old"), *changed, leftover("run-new")), (new, old))
    assert agreed.still(later) == Plan((leftover("run-old"),), (old,))


class Recorder(Namespace):
    """One that deletes everything, and keeps what is written to the ledger."""

    def __init__(self) -> None:
        super().__init__({})
        self.written: list[Object] = []

    def replace(self, _path: str, body: Object) -> Object:
        self.written.append(body["data"])
        return {**body, "metadata": {**body["metadata"], "resourceVersion": "2"}}

    def delete(self, _path: str, **_given: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "state", "reason"),
    [
        ("Completed", "launched", "is over since 2026-11-29T11:00:00Z: finished"),
        ("Failed", "failed", "is over since 2026-11-29T11:00:00Z: failed: no more restarts"),
    ],
)
def test_how_a_run_ended_is_recorded_before_its_jobset_goes(kind: str, state: str, reason: str) -> None:
    over = seen(entry(version="1"), jobset(ended=ended(kind, "no more restarts")))
    api = Recorder()
    assert list(delete(cast("Api", api), Plan((leftover("run-old"),), (over,)))) == [leftover("run-old")]
    assert [(data["state"], data["reason"]) for data in api.written] == [(state, reason)]
    assert left(Namespace({"run-run-64c-11111111": {}}), seen(entry(state=State(state), reason=reason))) == [
        f"ConfigMap run-run-64c-11111111: the run {'has failed' if state == 'failed' else 'has finished'}"
    ]
