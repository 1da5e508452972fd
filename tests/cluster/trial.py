"""Merges launched through faults, and the count of what was launched by the API server's own record."""

from __future__ import annotations

import http
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from renderer.manifests import HOLD_QUEUE
from tests.cluster.api import ApiError, Object, core, jobsets, wait_for
from tests.cluster.faults import NthRequest, NthWrite, kept_up, sometimes
from tests.cluster.hasty import READ_SECONDS
from tests.cluster.merges import APPLY, CONTROL, HASTY, Ended, Merges, finish
from tests.cluster.plane import ControlPlane
from tests.cluster.proxy import Fault, Plan, Proxy, faultless, proxy
from tests.cluster.sandbox import QUEUE, Sandbox, recorded_jobs


@dataclass(slots=True)
class Trial:
    """Launches from `merges` in a sandbox; `chance` decides what goes wrong, `lines` tell what did.

    `program` is what runs instead of the renderer: HASTY, and for a test of the tests a wrong one.
    """

    merges: Merges
    sandbox: Sandbox
    chance: random.Random
    folder: Path
    program: tuple[str, ...] = HASTY
    commits: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    batch: int = 0

    def merge(self, count: int, changed: int = 0) -> None:
        """Merge `count` new runs, and in place of `changed` earlier ones others that supersede them."""
        names = self.merges.names
        old = self.chance.sample(sorted(names), min(changed, len(names)))
        self.replaced += [names[name] for name in old]
        new = [f"r{number:04}" for number in range(len(names), len(names) + count)]
        self.commits.append(self.merges.add([*old, *new]))
        self.batch = len(old) + count

    @property
    def runs(self) -> int:
        """How many runs were merged, those included that were superseded later."""
        return len(self.merges.names) + len(self.replaced)

    def sweep(self, steps: Iterable[int], *, remove: bool = False, supersede: bool = False) -> bool:
        """Launch runs one by one, each killed after another write, and then without any fault.

        Between the two, what was started finishes and is removed, if so wished. Return whether the last step was one
        that a launch no longer has. With `supersede`, each takes the place of the one before.
        """
        for number in steps:
            self.merge(*((0, 1) if supersede and self.merges.names else (1, 0)))
            step = NthWrite(number, Fault.KILL_AFTER)
            self.apply(step, f"killed after write {number}")
            if remove:
                self.finish_started()
            self.recover()
            if not step.happened:
                return True
        return False

    def round(self, go_wrong: Callable[[Trial], None], count: int) -> None:
        """Merge `count` runs and let the apply that launches them go wrong in one way, and what follows in others."""
        self.merge(count, changed=self.chance.choice((0, 0, 1, 2)))
        go_wrong(self)
        if self.chance.random() < 0.5:
            self.finish_started()
        if self.chance.random() < 0.3:
            self._old_workflow()

    def verify(self) -> None:
        """Check that every run was started once, by the API server's record, and that the ledger says the same.

        A run that was superseded was started once or, if nothing of it was started by then, not at all.
        """
        wait_for("the start of what is released", lambda: not self._under_way(), 300)
        started = launched(self.sandbox.plane, self.merges.namespace)
        entries = {item["data"]["name"]: item["data"] for item in self._ledger()}
        there = {jobset["metadata"]["name"] for jobset in self.sandbox.jobsets()}
        now = set(self.merges.names.values())
        wrong = [f"{name} is not a run" for name in (started.keys() | entries.keys() | there) - now - {*self.replaced}]
        for name in [*now, *self.replaced]:
            uids, entry = sorted(started.get(name, ())), entries.get(name, {"state": "absent", "uid": ""})
            if len(uids) > 1 or (name in now and not uids):
                wrong.append(f"{name} was started {len(uids)} times: {', '.join(uids)}")
            if name in now and (entry["state"], [entry["uid"]]) != ("launched", uids):
                wrong.append(f"{name}: the ledger says {entry['state']} {entry['uid']}, the record {', '.join(uids)}")
            if name not in now and (entry["state"] not in {"launched", "stopped"} or name in there):
                wrong.append(f"{name} was superseded: the ledger says {entry['state']}, its JobSet is {name in there}")
        assert not wrong, "\n".join(wrong)

    def _ledger(self) -> list[Object]:
        return self.sandbox.plane.api.items(core(CONTROL, "configmaps"), labelSelector="renderer/ledger=run")

    def apply(self, plan: Plan, words: str) -> Ended:
        """Run one apply through the proxy to its end."""
        with self._proxy(plan) as found:
            ended = finish(self._start(found))
        self._note(words, ended, found)
        return ended

    def recover(self) -> None:
        """Run an apply without any fault, which must succeed."""
        ended = self.apply(faultless, "clean")
        assert ended.code == 0, f"the clean apply ended with {ended.code}:\n{ended.text[-4000:]}"

    def finish_started(self) -> None:
        """Let what is under way start, and remove every run that was started, as JobSet does with finished ones."""
        wait_for("the start of what is released", lambda: not self._under_way(), 120)
        started = {uid for uid, job in self._jobs().items() if not job["spec"].get("suspend")}
        ended = [jobset for jobset in self.sandbox.jobsets() if jobset["metadata"]["uid"] in started]
        for jobset in ended:
            self._remove(jobset["metadata"]["name"])
        self.lines.append(f"  {len(ended)} runs finished and were removed")

    def _remove(self, name: str) -> None:
        """Delete a JobSet, unless it is gone by now: what an apply stopped stays listed until its Jobs have ended."""
        try:
            self.sandbox.plane.api.delete(jobsets(self.merges.namespace, name), propagationPolicy="Background")
        except ApiError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def _under_way(self) -> list[str]:
        """Return the JobSets that are released, and whose Job is not started."""
        jobs = self._jobs()
        return [
            jobset["metadata"]["name"]
            for jobset in self.sandbox.jobsets()
            if _released(jobset)
            and not jobset["metadata"].get("deletionTimestamp")
            and jobs.get(jobset["metadata"]["uid"], {"spec": {"suspend": True}})["spec"].get("suspend")
        ]

    def _jobs(self) -> dict[str, Object]:
        return {job["metadata"]["ownerReferences"][0]["uid"]: job for job in self.sandbox.jobs()}

    def network(self) -> None:
        """Requests and answers are lost, late, throttled or answered with errors, before and after they took effect."""
        self.apply(sometimes(self._seed(), 0.2), "bad network")

    def outage(self) -> None:
        """Some objects cannot be written however often it is tried, with or without effect."""
        fault = self.chance.choice([Fault.REFUSED, Fault.LOST, Fault.UNAVAILABLE, Fault.FAILED, Fault.FAILED_AFTER])
        self.apply(kept_up(self._seed(), 0.15, fault), f"{fault.name} kept up")

    def killed_at_request(self) -> None:
        """The process is killed at some request, before or after it took effect, on a bad network."""
        number = self._request()
        fault = self.chance.choice([Fault.KILL_BEFORE, Fault.KILL_AFTER])
        plan = NthRequest(number, fault, sometimes(self._seed(), 0.05))
        self.apply(plan, f"{fault.name} at request {number}")

    def killed_at_time(self) -> None:
        """The process is killed at some moment."""
        seconds = self.chance.uniform(0.5, 2 + 0.1 * self.batch)
        with self._proxy(faultless) as found:
            process = self._start(found)
            timer = threading.Timer(seconds, process.kill)
            timer.start()
            ended = finish(process)
            timer.cancel()
        self._note(f"killed after {seconds:.2f} s", ended, found)

    def restart(self) -> None:
        """The API server crashes and starts again."""
        with self._proxy(faultless) as found:
            process = self._start(found)
            number = self._request()
            wait_for(f"request {number}", lambda: len(found.seen) >= number or process.poll() is not None)
            self.sandbox.plane.restart_api_server()
            ended = finish(process)
        self._note(f"API server restarted at request {number}", ended, found)

    def two_at_once(self) -> None:
        """Two jobs apply the same commit, both on a bad network."""
        with self._proxy(sometimes(self._seed(), 0.1)) as one, self._proxy(sometimes(self._seed(), 0.1)) as two:
            processes = self._start(one), self._start(two)
            ended = [finish(process) for process in processes]
        self._note("two at once: one", ended[0], one)
        self._note("two at once: two", ended[1], two)

    def two_commits_at_once(self) -> None:
        """One job applies the commit before, another the newest, at once."""
        with self._proxy(sometimes(self._seed(), 0.05)) as one, self._proxy(faultless) as two:
            older = self._checkout(self.commits[-2:][0])
            processes = self._start(one, older), self._start(two)
            ended = [finish(process) for process in processes]
        self._note("two commits at once: older", ended[0], one)
        self._note("two commits at once: newer", ended[1], two)

    def _old_workflow(self) -> None:
        """The workflow of some earlier merge is run again."""
        root = self._checkout(self.chance.choice(self.commits))
        with self._proxy(faultless) as found:
            ended = finish(self._start(found, root))
        self._note("old workflow", ended, found)

    def _checkout(self, commit: str) -> Path:
        folder = self.folder / commit
        return folder if folder.exists() else self.merges.checkout(commit, folder)

    @contextmanager
    def _proxy(self, plan: Plan) -> Iterator[Proxy]:
        with proxy(self.sandbox.plane.api, plan, silence=READ_SECONDS + 0.5) as found:
            yield found

    def _start(self, found: Proxy, root: Path | None = None) -> subprocess.Popen[str]:
        name = f"kubeconfig-{found.address.rpartition(':')[2]}"
        kubeconfig = found.kubeconfig(self.folder / name)
        process = self.merges.start(*APPLY, kubeconfig=kubeconfig, root=root, program=self.program)
        found.kill = process.kill
        return process

    def _request(self) -> int:
        """Return the number of some request of an apply that launches the last batch."""
        return self.chance.randint(1, 20 + 12 * self.batch)

    def _seed(self) -> int:
        return self.chance.getrandbits(32)

    def _note(self, words: str, ended: Ended, found: Proxy) -> None:
        faults = Counter(fault.name for _, fault in found.seen if fault)
        told = ", ".join(f"{count} {name}" for name, count in sorted(faults.items())) or "no fault"
        self.lines.append(f"{words}: exit {ended.code} after {len(found.seen)} requests, {told}")
        if ended.code not in {0, -signal.SIGKILL}:
            self.lines += [f"    {line}" for line in ended.text.splitlines() if line.strip()][:3]
        assert ended.code in {0, 1, -signal.SIGKILL}, ended.text[-4000:]


def launched(plane: ControlPlane, namespace: str) -> dict[str, set[str]]:
    """Return the uids of the JobSets whose Job was ever unsuspended, by the JobSet's name, from the server's record."""
    found: dict[str, set[str]] = {}
    for job in recorded_jobs(plane):
        if job["metadata"].get("namespace") == namespace and not job["spec"].get("suspend"):
            (owner,) = job["metadata"]["ownerReferences"]
            found.setdefault(owner["name"], set()).add(owner["uid"])
    return found


def _released(jobset: Object) -> bool:
    queue = jobset["metadata"]["labels"].get(QUEUE, "")
    return not jobset["spec"].get("suspend") or queue not in {"", HOLD_QUEUE}


KINDS: tuple[Callable[[Trial], None], ...] = (
    Trial.network,
    Trial.outage,
    Trial.killed_at_request,
    Trial.killed_at_time,
    Trial.restart,
    Trial.two_at_once,
    Trial.two_commits_at_once,
)
"""What can go wrong in a round."""
