"""Looking at a cluster with objects in it that are not as this package makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, cast

import pytest

from renderer.cluster.api import Api, ApiError, Object
from renderer.cluster.damage import Damaged, UnreadableError
from renderer.cluster.ledger import CONTROL, Entry, Store
from renderer.cluster.observe import View, look, newest_pod, observe
from renderer.runs import State
from tests.cluster_unit.seen import NAME, UID, ended, entry, jobset, pod

LEDGER = f"/api/v1/namespaces/{CONTROL}/configmaps"
OTHER = "other-64c-22222222"


class Cluster:
    """An API server that lists these ConfigMaps as the ledger of test, and these JobSets and pods; others may not."""

    def __init__(self, ledger: list[Object], *found: Object, pods: tuple[Object, ...] = ()) -> None:
        self._lists: dict[str, list[Object]] = {"configmaps": ledger, "jobsets": [*found], "pods": [*pods]}
        self.unlisted: dict[str, Object] = {}
        self.asked: list[str] = []

    def items(self, path: str, **_query: str) -> Iterator[Object]:
        self.asked.append(path)
        if "/namespaces/closed/" in path:
            raise ApiError(HTTPStatus.FORBIDDEN, "Forbidden", "you may not list jobsets in closed")
        return iter(self._lists.get(path.rpartition("/")[2], []))

    def get(self, path: str) -> Object | None:
        return self.unlisted.get(path.rpartition("/")[2])


def written(of: Entry, **data: str | None) -> Object:
    """Return an entry as its ConfigMap, some data changed or, where None, removed."""
    texts = {key: str(value) for key, value in asdict(of).items() if key != "version"} | data
    labels = {"renderer/ledger": "run", "renderer/environment": "test"}
    metadata = {"name": of.name, "namespace": CONTROL, "labels": labels, "resourceVersion": "1"}
    return {"metadata": metadata, "data": {key: value for key, value in texts.items() if value is not None}}


def looked(there: Cluster) -> View:
    return look(cast("Api", there), ["test"], ["ns"])


def names(view: View) -> list[tuple[str, bool, bool, bool]]:
    return [(run.name, bool(run.entry), bool(run.jobset), bool(run.unreadable)) for run in view.runs]


FOREIGN: Object = {
    "metadata": {"name": "settings", "namespace": CONTROL, "resourceVersion": "1", "labels": {"renderer/ledger": "run"}}
}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (FOREIGN, "it has no experiment"),
        (written(entry(OTHER), digest=None), "it has no digest"),
        (written(entry(OTHER), state="lost"), "'lost' is not a valid State"),
        (written(entry(OTHER), name="another"), "its name or its label is another"),
        (written(entry(OTHER), environment="prod"), "its label renderer/environment is another than its environment"),
        (written(entry(OTHER), changed="yesterday"), "'yesterday' is no time in RFC 3339"),
        (written(entry(OTHER), created="2026-11-29T10:00:00"), "'2026-11-29T10:00:00' is no time in RFC 3339"),
    ],
)
def test_what_is_no_entry_is_told_beside_what_is_one(found: Object, reason: str) -> None:
    name = found["metadata"]["name"]
    there = Cluster([found, written(entry())], jobset())
    view = looked(there)
    assert names(view) == [(NAME, True, True, False)]
    (damaged,) = view.damaged
    assert str(damaged) == f"ConfigMap {name} in renderer-control is no entry of the ledger: {reason}"
    assert damaged.command == f"kubectl get configmap {name} -n renderer-control -o yaml"
    assert damaged.mend == (
        f"put back what was changed: kubectl edit configmap {name} -n renderer-control\n"
        "or, if no run was ever recorded in it: "
        f"kubectl label configmap {name} -n renderer-control renderer/ledger-"
    )
    with pytest.raises(UnreadableError) as error:
        Store(cast("Api", there), "test").entries()
    assert (error.value.damaged, view.unreadable) == ((damaged,), True)


def test_the_jobset_of_an_unreadable_entry_is_not_one_that_nobody_launched() -> None:
    view = looked(Cluster([written(entry(), digest=None)], jobset()))
    assert names(view) == [(NAME, False, True, True)]
    assert view.runs[0].unreadable == view.damaged[0]


def test_an_entry_that_lost_its_label_is_found_by_its_jobset() -> None:
    there = Cluster([], jobset(), jobset(OTHER))
    there.unlisted[NAME] = written(entry())
    del there.unlisted[NAME]["metadata"]["labels"]["renderer/ledger"]
    view = looked(there)
    assert names(view) == [(NAME, False, True, True), (OTHER, False, True, False)]
    assert [item.name for item in view.damaged] == [NAME]


def test_an_entry_that_was_written_meanwhile_is_found_by_its_jobset() -> None:
    there = Cluster([], jobset())
    there.unlisted[NAME] = written(entry())
    assert names(looked(there)) == [(NAME, True, True, False)]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (None, "it has no replicatedJobs with pods"),
        ({}, "it has no replicatedJobs with pods"),
        ({"replicatedJobs": []}, "it has no replicatedJobs with pods"),
        ({"replicatedJobs": [{"template": {}}]}, "it has no replicatedJobs with pods"),
        ({"replicatedJobs": [{"template": {"spec": {"template": {"spec": {}}}}}]}, ""),
    ],
)
def test_a_jobset_that_is_not_as_the_template_makes_it_is_shown_and_told(spec: Any, reason: str) -> None:
    view = looked(Cluster([written(entry())], {**jobset(), "spec": spec}))
    assert names(view) == [(NAME, True, True, False)]
    said = f"JobSet {NAME} in ns is not as apply makes them: {reason}"
    assert list(map(str, view.damaged)) == ([said] if reason else [])


def test_a_jobset_without_the_label_of_its_model_is_told() -> None:
    stray = {**jobset(), "spec": {"replicatedJobs": [{"template": {"spec": {"template": {"spec": {}}}}}]}}
    del stray["metadata"]["labels"]["renderer/model"]
    view = looked(Cluster([], stray))
    assert view.damaged == (
        Damaged("JobSet", "ns", NAME, "is not as apply makes them: it has no label renderer/model"),
    )
    assert (view.runs[0].experiment, view.unreadable) == ("/run", False)


def test_a_condition_without_status_says_nothing() -> None:
    view = looked(Cluster([], {**jobset(), "status": {"conditions": [{"type": "Completed"}, {}]}}))
    assert view.runs[0].ended is None
    assert looked(Cluster([], jobset(ended=ended("Failed")))).runs[0].ended == ended("Failed")


@pytest.mark.parametrize("namespace", ["closed", "not/a name", ""])
def test_the_namespace_of_a_refused_run_need_not_be_one_that_can_be_read(namespace: str) -> None:
    refused = entry(OTHER, namespace=namespace, state=State.REFUSED, uid="")
    there = Cluster([written(refused), written(entry())], jobset())
    assert names(looked(there)) == [(OTHER, True, False, False), (NAME, True, True, False)]
    assert not [path for path in there.asked if "not/a name" in path or "//" in path]


def test_the_namespace_of_a_launched_run_must_be_readable() -> None:
    with pytest.raises(ApiError, match=r"^you may not list jobsets in closed$"):
        looked(Cluster([written(entry(namespace="closed"))]))


def test_pods_without_index_or_status_belong_to_their_run() -> None:
    labels = {"jobset.sigs.k8s.io/jobset-name": NAME}
    bare: Object = {"metadata": {"name": "bare", "namespace": "ns", "labels": labels, "creationTimestamp": "1"}}
    mine = pod()
    mine["metadata"]["labels"] |= labels
    view = observe(cast("Api", Cluster([written(entry())], jobset(), pods=(bare, mine))), ["test"], ["ns"])
    (run,) = view.runs
    assert (run.pods, run.jobset and run.jobset["metadata"]["uid"]) == ((bare, mine), UID)
    assert newest_pod([*run.pods, {"metadata": {"name": "unlabelled"}}], 0) == mine
