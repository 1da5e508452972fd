"""The words for what a run is doing, and the table."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from renderer.cli import App
from renderer.cluster.api import Api, ApiError, Object
from renderer.cluster.damage import Damaged
from renderer.cluster.ledger import OVER
from renderer.cluster.observe import Seen, View
from renderer.cluster.status import HELD, Row, exported, rows
from renderer.cluster.waiting import Place
from renderer.commands import status
from renderer.commands.status import age, table
from renderer.report import ledger
from renderer.runs import State
from tests.cluster_unit.seen import ended, entry, jobset, pod, seen, workload

WORDS = "couldn't assign flavors to pod set slice-job: insufficient unused quota for google.com/tpu in flavor training"
UNREADABLE = Damaged("ConfigMap", "control", "run-64c-11111111", "is no entry of the ledger: it has no digest")
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


def without_pods(spec: Any) -> Object:
    return {**jobset(), "spec": spec}


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
        (seen(entry(state=State.HELD), jobset(suspend=True, queue="renderer-hold")), "held", HELD + _UNTIL),
        (seen(entry(), jobset(suspend=True, queue="renderer-hold")), "held", HELD),
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
        (
            Seen(None, jobset(), (pod(), pod(index=1)), unreadable=UNREADABLE),
            "running",
            "its entry in the ledger cannot be read",
        ),
        (seen(entry(), without_pods(None)), "unknown", "its JobSet does not say which pods it has"),
        (seen(entry(), without_pods({})), "unknown", "its JobSet does not say which pods it has"),
        (
            seen(entry(), without_pods({"replicatedJobs": [{"template": {}}]})),
            "unknown",
            "its JobSet does not say which pods it has",
        ),
        (seen(entry(), jobset(), {"metadata": {"name": "p"}}), "starting", ""),
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


def test_a_workload_that_asks_for_nothing_waits_nowhere() -> None:
    mine = workload("mine", QuotaReserved="x")
    empty = workload("empty")
    del empty["spec"], empty["status"]
    found = row(seen(entry(), jobset(suspend=True, queue="training"), workload=mine), mine, empty)
    assert str(found.place) == "1 of 1 in queue training"


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


QUEUED = jobset(suspend=True, queue="training")
PAIR = [
    Row(seen(entry("lr3e4-64c-11111111"), jobset(), pod(), pod(index=1)), "running", step=1200),
    Row(seen(entry("a-long-name-1024c-22222222-a2"), QUEUED), "queued", WORDS, Place("training", 1, 1)),
]


def test_a_narrow_terminal_has_the_reasons_below_the_rows() -> None:
    assert table(PAIR, NOW, 80) == [
        "RUN                            ENV   STATUS   PODS         RESTARTS  STEP  AGE",
        "lr3e4-64c-11111111             test  running  2/2 Running  0/3       1200  120m",
        "a-long-name-1024c-22222222-a2  test  queued                0/3             120m",
        "  1 of 1 in queue training: couldn't assign flavors to pod set slice-job:",
        "  insufficient unused quota for google.com/tpu in flavor training",
    ]
    assert table(PAIR, NOW, 300) == table(PAIR, NOW) != table(PAIR, NOW, 80)


def test_a_narrower_one_does_without_columns_and_says_so() -> None:
    assert table(PAIR, NOW, 60) == [
        "RUN                            STATUS   PODS         STEP",
        "lr3e4-64c-11111111             running  2/2 Running  1200",
        "a-long-name-1024c-22222222-a2  queued",
        "  1 of 1 in queue training: couldn't assign flavors to pod",
        "  set slice-job: insufficient unused quota for",
        "  google.com/tpu in flavor training",
        "no room for AGE, RESTARTS, ENV",
    ]


@pytest.mark.parametrize("width", [1, 10, 20, 40, 60, 79, 80, 81, 100, 150])
def test_no_width_cuts_a_name_or_makes_a_line_wrap_that_need_not(width: int) -> None:
    lines = table(PAIR, NOW, width)
    assert [line.split()[0] for line in lines if line.split()[0] in {row.seen.name for row in PAIR}] == [
        row.seen.name for row in PAIR
    ]
    assert max(map(len, lines)) <= max(width, len("no room for AGE, RESTARTS, ENV, STEP, PODS"))


def test_a_column_without_any_value_needs_no_room() -> None:
    found = [Row(row.seen, row.status, row.why) for row in PAIR]
    assert table(found, NOW, 76)[0] == "RUN                            ENV   STATUS   PODS         RESTARTS  AGE"


def test_names_in_a_reason_are_not_broken() -> None:
    pod_name = "run-64c-11111111-slice-job-0-0-abcde"
    found = Row(seen(entry(), jobset()), "starting", f"{pod_name}: Back-off")
    assert table([found], NOW, 30)[2:4] == [f"  {pod_name}:", "  Back-off"]
    assert table([found], NOW, 44)[2:4] == [f"  {pod_name}:", "  Back-off"]


def test_what_is_to_be_masked_in_a_reason_is_masked_before_it_is_broken() -> None:
    why = f"{'word ' * 13}password = {'a1B2' * 8}"
    found = Row(seen(entry(), jobset()), "starting", why)
    assert table([found], NOW, 80)[2:] == [
        "  word word word word word word word word word word word word word password =",
        "  ****",
    ]


@pytest.mark.parametrize(("width", "folded"), [(80, True), (300, False), (None, False)])
def test_only_a_terminal_is_narrow(width: int | None, folded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal() if width else io.StringIO())
    monkeypatch.setenv("COLUMNS", str(width or 40))
    monkeypatch.setattr(status, "rows", lambda *_: PAIR)
    monkeypatch.setattr(status, "observe", lambda *_: View((), damaged=(UNREADABLE,)))
    at, warned, *lines = status._look(cast("Api", None), App(Path()), [], ["test"], NOW)
    assert (at, warned) == (
        "at 12:00:00 UTC",
        "warning: ConfigMap run-64c-11111111 in control is no entry of the ledger: it has no digest; "
        "see kubectl get configmap run-64c-11111111 -n control -o yaml",
    )
    assert (len(lines) > len(table(PAIR, NOW))) is folded


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
    data = exported(found, [UNREADABLE])
    (tmp_path / "ledger.json").write_text(json.dumps(data))
    read = ledger.read(tmp_path / "ledger.json")
    assert read.pending == {"waits"}
    assert [live.name for live in read.live["m/run"]] == ["run-64c-11111111"]
    assert [run["name"] for run in data["unlisted"]] == ["stray"]
    assert data["warnings"] == [
        {
            "kind": "ConfigMap",
            "namespace": "control",
            "name": "run-64c-11111111",
            "wrong": "is no entry of the ledger: it has no digest",
            "command": "kubectl get configmap run-64c-11111111 -n control -o yaml",
        }
    ]
    first = data["runs"][0]
    assert (first["state"], first["status"], first["pods"]) == ("launched", "running", {"Running": 2})
