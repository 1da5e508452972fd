"""What each run is doing, in a few words: from what `observe` found, and the last step of its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from renderer.cluster import waiting
from renderer.cluster.api import Api, ApiError, Object, core
from renderer.cluster.damage import Damaged
from renderer.cluster.labels import CONTAINER
from renderer.cluster.ledger import Entry, export
from renderer.cluster.observe import Seen, View, newest_pod
from renderer.cluster.tasks import each
from renderer.cluster.waiting import Place
from renderer.manifests import HOLD_QUEUE
from renderer.names import QUEUE_LABEL
from renderer.outputs import DAMAGED
from renderer.runs import State
from renderer.train_log import parse_step

HELD = f"held in {HOLD_QUEUE}, a queue that does not exist"
_NOT_LISTED = "in no ledger: apply did not launch it"
_UNREADABLE = "its entry in the ledger cannot be read"
_REMOVED = "its JobSet was removed"
_TAIL = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One run. `status` is the word for it, `why` the reason it is not running, `step` the last training step."""

    seen: Seen
    status: str
    why: str = ""
    place: Place | None = None
    step: int | None = None

    @property
    def pods(self) -> Mapping[str, int]:
        """How many pods are in each phase; Terminating, as kubectl says it, for those that were told to end."""
        return dict(sorted(Counter(map(_phase, self.seen.pods)).items()))

    @property
    def expected(self) -> int:
        """How many pods the run has when it runs."""
        return _expected(self.seen.jobset)

    @property
    def restarts(self) -> tuple[int, int, int]:
        """How often it restarted, how many of these used up restarts, and how many may be used."""
        status = (self.seen.jobset or {}).get("status") or {}
        most = ((self.seen.jobset or {}).get("spec") or {}).get("failurePolicy") or {}
        return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0), most.get("maxRestarts", 0)

    @property
    def alive(self) -> bool:
        """Whether it has a JobSet that has not ended."""
        return self.seen.jobset is not None and self.seen.ended is None


def rows(api: Api, view: View) -> list[Row]:
    """Return a row per run, the living ones first, the newest of them first. Raises ApiError."""
    places = waiting.places(api, view.workloads)
    found = [_row(seen, places) for seen in view.runs]
    found = each(lambda row: replace(row, step=_last_step(api, row.seen)), found)
    found.sort(key=lambda row: row.seen.created, reverse=True)
    return sorted(found, key=lambda row: not row.alive)


def _row(seen: Seen, places: Mapping[str, Place]) -> Row:
    status, why = _told(seen)
    if seen.entry is None:
        why = "; ".join(filter(None, (_UNREADABLE if seen.unreadable else _NOT_LISTED, why)))
    uid = seen.workload["metadata"]["uid"] if seen.workload else ""
    return Row(seen, status, why, places.get(uid))


def _told(seen: Seen) -> tuple[str, str]:
    if seen.jobset is None:
        assert seen.entry is not None, "a run is seen by its entry or its JobSet"
        return _without_jobset(seen.entry)
    if seen.jobset["metadata"].get("deletionTimestamp") or (seen.entry and seen.entry.state is State.STOPPED):
        return "stopping", seen.entry.reason if seen.entry else ""
    if seen.ended:
        failed = seen.ended["type"] == "Failed"
        return ("failed", str(seen.ended.get("message", ""))) if failed else ("finished", "")
    if (seen.jobset.get("spec") or {}).get("suspend"):
        return _suspended(seen, seen.jobset)
    return _started(seen, seen.jobset)


def _without_jobset(entry: Entry) -> tuple[str, str]:
    if entry.state is State.HELD:
        return "held", f"{_REMOVED}; the next apply records how it went on"
    if entry.state is State.LAUNCHED and entry.over:
        return "finished", entry.reason
    if entry.state is State.LAUNCHED:
        return "gone", entry.reason or _REMOVED
    if entry.state is State.PENDING:
        return "pending", entry.reason or "the next apply goes on with it"
    return str(entry.state), entry.reason


def _suspended(seen: Seen, jobset: Object) -> tuple[str, str]:
    queue = (jobset["metadata"].get("labels") or {}).get(QUEUE_LABEL, "")
    if queue == HOLD_QUEUE:
        ours = seen.entry and seen.entry.state is State.HELD
        return "held", HELD + (": nothing starts before apply releases it" if ours else "")
    if queue:
        return "queued", waiting.reason(seen.workload) or f"waits in queue {queue}"
    if seen.entry and seen.entry.state is State.HELD:
        return "held", "suspended: nothing starts before apply releases it"
    return "suspended", "spec.suspend is true, and no queue will change that"


def _started(seen: Seen, jobset: Object) -> tuple[str, str]:
    phases, expected = Counter(map(_phase, seen.pods)), _expected(jobset)
    if not expected:
        return "unknown", "its JobSet does not say which pods it has"
    if phases["Running"] + phases["Succeeded"] >= expected:
        return "running", ""
    again = (jobset.get("status") or {}).get("restarts", 0)
    return "restarting" if again else "starting", next(filter(None, map(_why_not_running, seen.pods)), "")


def _expected(jobset: Object | None) -> int:
    """Return how many pods a JobSet is to have, 0 where it does not say."""
    try:
        jobs = ((jobset or {}).get("spec") or {}).get("replicatedJobs") or ()
        return sum(job.get("replicas", 1) * job["template"]["spec"].get("parallelism", 1) for job in jobs)
    except DAMAGED:
        return 0


def _phase(pod: Object) -> str:
    ended = {"Succeeded", "Failed"}
    phase = str((pod.get("status") or {}).get("phase", "Pending"))
    return "Terminating" if pod["metadata"].get("deletionTimestamp") and phase not in ended else phase


def _why_not_running(pod: Object) -> str:
    """Return why a pod does not run yet: the scheduler's words, or its container's; nothing where neither says."""
    status = pod.get("status") or {}
    for item in status.get("conditions") or ():
        if item["type"] == "PodScheduled" and item["status"] == "False":
            return f"{pod['metadata']['name']}: {item.get('message', item.get('reason', ''))}"
    for container in status.get("containerStatuses") or ():
        waits = (container.get("state") or {}).get("waiting")
        if waits and waits.get("reason"):
            words = ": ".join(filter(None, (waits["reason"], waits.get("message", ""))))
            return f"{pod['metadata']['name']}: {words}"
    return ""


def _last_step(api: Api, seen: Seen) -> int | None:
    """Return the last training step in the log's end of the run's first pod; nothing where it cannot be read."""
    pod = newest_pod(seen.pods, 0)
    if pod is None or _phase(pod) == "Pending":
        return None
    path = f"{core(seen.namespace, 'pods', pod['metadata']['name'])}/log"
    try:
        lines = list(api.lines(path, seconds=5, container=CONTAINER, tailLines=str(_TAIL)))
    except ApiError:  # a node that does not answer must not hide what is known of the run
        return None
    steps = (parse_step(line.decode("utf-8", "replace")) for line in reversed(lines))
    return next((step.number for step in steps if step), None)


def exported(found: Iterable[Row], damaged: Iterable[Damaged] = ()) -> dict[str, list[dict[str, object]]]:
    """Return the rows as data: `runs` as `renderer report --ledger` reads them, and the JobSets without an entry."""
    found = list(found)
    listed = [(row, row.seen.entry) for row in found if row.seen.entry]
    entries = export(entry for _, entry in listed)["runs"]
    runs = [{**entry, **_data(row)} for entry, (row, _) in zip(entries, listed, strict=True)]
    unlisted = [_data(row) for row in found if row.seen.entry is None]
    return {"runs": runs, "unlisted": unlisted, "warnings": [{**item.data} for item in damaged]}


def _data(row: Row) -> dict[str, object]:
    restarts, counted, most = row.restarts
    return {
        "name": row.seen.name,
        "experiment": row.seen.experiment,
        "environment": row.seen.environment,
        "namespace": row.seen.namespace,
        "owner": row.seen.owner,
        "status": row.status,
        "why": row.why,
        "pods": row.pods,
        "expected_pods": row.expected,
        "restarts": restarts,
        "restarts_counted": counted,
        "max_restarts": most,
        "queue": row.place.queue if row.place else "",
        "queue_position": row.place.position if row.place else None,
        "queue_waiting": row.place.waiting if row.place else None,
        "step": row.step,
        "created": row.seen.created,
    }
