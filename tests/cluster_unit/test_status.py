"""The words for what a run is doing, and the table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from renderer.cluster.api import Api, ApiError, Object
from renderer.cluster.ledger import OVER
from renderer.cluster.observe import Seen, View
from renderer.cluster.status import HELD, Row, exported, rows
from renderer.commands.status import age, table
from renderer.report import ledger
from renderer.runs import State
from tests.cluster_unit.seen import ended, entry, jobset, pod, seen, workload

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
_UNTIL = ": nothing starts before apply releases it"
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "0/16 nodes are available"}
PULLING = [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}}]


class Nobody:
    """An API without visibility of queues and without logs."""

    def get(self, _path: str) -> Object | None:
        return None

    def lines(self, path: str, **_query: Any) -> Any:
        raise ApiError(404, "NotFound", path)


class Logs(Nobody):
    """One that has a log."""

    def lines(self, path: str, **query: Any) -> Any:
        assert path == "/api/v1/namespaces/ns/pods/run-64c-11111111-slice-job-0-0-abcde/log"
        assert query == {"seconds": 5, "container": "trainer", "tailLines": "200"}
        return [b"completed step: 7, loss: 1\n", b"completed step: 8, loss: 1\n", b"saved\n"]


def row(run: Seen, *workloads: Object, api: Nobody | None = None) -> Row:
    (found,) = rows(cast("Api", api or Nobody()), View((run,), workloads))
    return found


@pytest.mark.parametrize(
    ("run", "status", "why"),
    [
        (seen(entry(state=State.PENDING)), "pending", "the next apply goes on with it"),
        (seen(entry(state=State.PENDING, reason="no answer")), "pending", "no answer"),
        (seen(entry(state=State.REFUSED, reason="no quota")), "refused", "no quota"),
        (seen(entry(state=State.STOPPED, reason="by me")), "stopped", "by me"),
        (seen(entry(state=State.HELD)), "held", "its JobSet was removed; the next apply records how it went on"),
        (seen(entry()), "gone", "its JobSet was removed"),
        (seen(entry(reason=OVER + "T: finished")), "finished", "is over since T: finished"),
        (seen(entry(state=State.FAILED, reason=OVER + "T: failed: x")), "failed", "is over since T: failed: x"),
        (seen(entry(), jobset(suspend=True, queue="renderer-hold")), "held", HELD + _UNTIL),
        (seen(entry(), jobset(suspend=True, queue="training")), "queued", "waits in queue training"),
        (
            seen(entry(state=State.HELD), jobset(suspend=True)),
            "held",
            "suspended: nothing starts before apply releases it",
        ),
        (seen(entry(), jobset(suspend=True)), "suspended", "spec.suspend is true, and no queue will change that"),
        (seen(entry(), jobset(), pod(), pod(index=1)), "running", ""),
        (seen(entry(), jobset(), pod(), pod("Succeeded", 1)), "running", ""),
        (
            seen(entry(), jobset(), pod(), pod("Pending", 1, conditions=[UNSCHEDULED])),
            "starting",
            "run-64c-11111111-slice-job-0-1-abcde: 0/16 nodes are available",
        ),
        (
            seen(entry(), jobset(), pod("Pending", containerStatuses=PULLING)),
            "starting",
            "run-64c-11111111-slice-job-0-0-abcde: ImagePullBackOff: no such tag",
        ),
        (seen(entry(), jobset(restarts=1), pod("Pending")), "restarting", ""),
        (seen(entry(), jobset(ended=ended("Completed"))), "finished", ""),
        (seen(entry(), jobset(ended=ended("Failed", "max restarts"))), "failed", "max restarts"),
        (seen(entry(state=State.STOPPED, reason="by me"), jobset(), pod()), "stopping", "by me"),
        (seen(None, jobset(), pod(), pod(index=1)), "running", "in no ledger: apply did not launch it"),
        (
            seen(None, jobset(suspend=True, queue="renderer-hold")),
            "held",
            f"in no ledger: apply did not launch it; {HELD}",
        ),
    ],
)
def test_each_state_has_its_words(run: Seen, status: str, why: str) -> None:
    found = row(run)
    assert (found.status, found.why) == (status, why)


def test_a_queued_run_says_its_place_and_kueues_words() -> None:
    words = "couldn't assign flavors to pod set slice-job: insufficient unused quota for google.com/tpu in flavor f"
    mine = workload("mine", created="3", QuotaReserved=words)
    others = [
        workload("older", created="2", QuotaReserved="x"),
        workload("urgent", created="9", priority=5, QuotaReserved="x"),
        workload("elsewhere", queue="other", QuotaReserved="x"),
        workload("running", Admitted=""),
    ]
    others[3]["status"]["conditions"].append({"type": "QuotaReserved", "status": "True"})
    found = row(seen(entry(), jobset(suspend=True, queue="training"), workload=mine), mine, *others)
    assert (found.status, found.why) == ("queued", words)
    assert str(found.place) == "3 of 3 in queue training"


class Visible(Nobody):
    """One whose visibility API counts the workloads."""

    def get(self, path: str) -> Object | None:
        if path != "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/ns/localqueues/training/pendingworkloads":
            return None
        places = [("other", 0, 0), ("mine", 4, 1)]
        return {
            "items": [
                {"metadata": {"name": name}, "positionInClusterQueue": overall, "positionInLocalQueue": place}
                for name, overall, place in places
            ]
        }


def test_kueue_counts_places_where_its_visibility_api_is_installed() -> None:
    mine = workload("mine", QuotaReserved="no quota", Evicted="preempted by other")
    found = row(seen(entry(), jobset(suspend=True, queue="training"), workload=mine), mine, api=Visible())
    assert str(found.place) == "2 of 2 in queue training, 5 in its cluster queue"
    assert found.why == "preempted by other; no quota"


def test_the_last_step_comes_from_the_end_of_the_first_pods_log() -> None:
    assert row(seen(entry(), jobset(), pod(), pod(index=1)), api=Logs()).step == 8
    assert row(seen(entry(), jobset(), pod("Pending")), api=Logs()).step is None
    assert row(seen(entry(), jobset(), pod())).step is None


def test_the_table() -> None:
    found = [
        row(seen(entry("lr3e4-64c-11111111"), jobset(restarts=3, restartsCountTowardsMax=1), pod(), pod(index=1))),
        row(seen(entry(state=State.REFUSED, reason="no quota", environment="prod"))),
    ]
    assert table(found, NOW) == [
        "RUN                  ENV    STATUS    PODS          RESTARTS      STEP   AGE    WHY",
        "lr3e4-64c-11111111   test   running   2/2 Running   1/3 +2 free          120m",
        "run-64c-11111111     prod   refused                                      120m   no quota",
    ]
    assert table([], NOW) == ["no runs"]


def test_the_living_and_the_newest_come_first() -> None:
    runs = (
        seen(entry("old", state=State.STOPPED, created="2026-11-01T00:00:00Z")),
        seen(entry("new", state=State.STOPPED, created="2026-11-28T00:00:00Z")),
        seen(entry("alive", created="2026-10-01T00:00:00Z"), jobset("alive")),
    )
    found = rows(cast("Api", Nobody()), View(runs, ()))
    assert [row.seen.name for row in found] == ["alive", "new", "old"]


@pytest.mark.parametrize(
    ("since", "text"),
    [
        ("2026-11-29T11:59:13Z", "47s"),
        ("2026-11-29T11:03:00Z", "57m"),
        ("2026-11-29T02:00:00Z", "10h"),
        ("2026-11-20T12:00:00Z", "9d"),
        ("", ""),
        ("never", ""),
        ("2026-11-29T12:00:09Z", "0s"),
    ],
)
def test_ages_are_short(since: str, text: str) -> None:
    assert age(since, NOW) == text


def test_the_json_is_a_ledger_for_the_report(tmp_path: Path) -> None:
    found = [
        row(seen(entry(), jobset(), pod(), pod(index=1))),
        row(seen(entry("waits", state=State.PENDING, experiment="m/other"))),
        row(seen(None, jobset("stray"))),
    ]
    data = exported(found)
    (tmp_path / "ledger.json").write_text(json.dumps(data))
    read = ledger.read(tmp_path / "ledger.json")
    assert read.pending == {"waits"}
    assert [live.name for live in read.live["m/run"]] == ["run-64c-11111111"]
    assert [run["name"] for run in data["unlisted"]] == ["stray"]
    first = data["runs"][0]
    assert (first["state"], first["status"], first["pods"]) == ("launched", "running", {"Running": 2})
