"""`renderer status`, `logs`, `stop`, `drift` and `cleanup` on runs that `renderer apply` launched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import merges as repositories
from tests.cluster.api import Object, core, jobsets, wait_for
from tests.cluster.merges import Merges, make_merges
from tests.cluster.node_logs import node_logs
from tests.cluster.queues import add_queue
from tests.cluster.runs import variant
from tests.cluster.sandbox import Sandbox
from tests.content import Ran
from tests.repository import MODEL

pytestmark = pytest.mark.cluster

TOPOLOGY, CHIPS = "2x2x1", 4


@dataclass(frozen=True, slots=True)
class Watched:
    """A repository whose merges are applied, and the namespace of its runs."""

    merges: Merges
    sandbox: Sandbox

    def run(self, *words: str) -> Ran:
        return self.merges.content.run(*words)

    def apply(self) -> None:
        ran = self.run("apply", "--environment", "test")
        assert ran.code == 0, ran.out + ran.err

    def launch(self, *names: str) -> list[str]:
        """Merge and apply experiments. Return their runs' object names."""
        self.merges.add(names)
        self.apply()
        return [self.merges.names[name] for name in names]

    def running(self, name: str) -> str:
        """Merge, apply and wait for a run on nodes of its own."""
        self.sandbox.pool(TOPOLOGY)
        (run,) = self.launch(name)
        self.sandbox.wait_running(run, 1)
        return run

    def finish(self, run: str) -> None:
        for pod in self.sandbox.pods(run):
            self.sandbox.end(pod, 0)
        self.sandbox.wait_condition(run, "Completed")

    def status(self, *names: str) -> dict[str, Object]:
        """Return the rows by run, also those in no ledger."""
        ran = self.run("status", *names, "--format", "json")
        assert ran.code == 0, ran.err
        data = json.loads(ran.out)
        return {row["name"]: row for row in data["runs"] + data["unlisted"]}

    def names(self, kind: str) -> set[str]:
        """Return the names of the namespace's objects of a kind, without Kubernetes' own."""
        found = self.sandbox.plane.api.items(core(self.sandbox.namespace, kind))
        return {item["metadata"]["name"] for item in found} - {"kube-root-ca.crt"}


def _watched(
    sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch, deploy: dict[str, object] | None = None
) -> Watched:
    monkeypatch.setattr(repositories, "empty_ledger", lambda _plane: None)  # this test's ledger is its own, and empty
    found = Watched(make_merges(folder / "content", sandbox.plane, sandbox.namespace, deploy), sandbox)
    ran = found.run("apply", "--environment", "test", "--adopt")
    assert ran.code == 0, ran.out + ran.err
    return found


@pytest.fixture
def watched(control: str, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return _watched(sandbox, tmp_path, monkeypatch)


@pytest.fixture
def queued(
    control_with_kueue: str, sandbox_with_kueue: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Watched:
    add_queue(sandbox_with_kueue, "training", TOPOLOGY, CHIPS)
    return _watched(sandbox_with_kueue, tmp_path, monkeypatch, {"QUEUE": "training"})


def test_status_tells_what_runs_what_waits_and_what_nobody_launched(watched: Watched) -> None:
    assert watched.run("status", "--environment", "test").out == "no runs\n"
    running = watched.running("first")
    (waiting,) = watched.launch("second")
    stray = watched.sandbox.hold(variant(TOPOLOGY, namespace=watched.sandbox.namespace, name="stray"))
    wait_for("the scheduler's answer", lambda: watched.status()[waiting]["why"])
    rows = watched.status()
    assert (rows[running]["status"], rows[running]["pods"], rows[running]["why"]) == ("running", {"Running": 1}, "")
    assert (rows[waiting]["status"], rows[waiting]["pods"]) == ("starting", {"Pending": 1})
    assert "nodes are available" in rows[waiting]["why"]
    assert (rows[stray]["status"], "state" in rows[stray]) == ("held", False)
    assert rows[stray]["why"] == (
        "in no ledger: apply did not launch it; held in renderer-hold, a queue that does not exist"
    )
    assert list(watched.status(f"{MODEL}/first")) == [running]
    assert list(watched.status(f"experiments/{MODEL}/second.yml", running)) == [waiting, running]
    unknown = watched.run("status", f"{MODEL}/firts")
    assert (unknown.code, unknown.err.splitlines()[0]) == (
        1,
        f"command line: no run or experiment {MODEL}/firts is known to the cluster",
    )
    head, *lines = watched.run("status").out.splitlines()
    assert head.split() == ["RUN", "ENV", "STATUS", "PODS", "RESTARTS", "STEP", "AGE", "WHY"]
    assert next(line for line in lines if running in line).split()[:6] == [
        running,
        "test",
        "running",
        "1/1",
        "Running",
        "0/0",
    ]


def test_the_report_reads_what_status_prints(watched: Watched, tmp_path: Path) -> None:
    run = watched.running("first")
    ledger = tmp_path / "ledger.json"
    ledger.write_text(watched.run("status", "--format", "json").out)
    base = watched.merges.git("rev-parse", "HEAD")
    watched.merges.content.edit(f"experiments/{MODEL}/first.yml", '"image"', '"state": "stopped"\n  "image"')
    watched.merges.commit()
    report = watched.run("report", "--base", base, "--ledger", str(ledger))
    assert report.code == 0, report.err
    assert run in report.out
    assert "ledger.json" in report.out


def test_with_quota_for_one_the_other_says_why_it_waits(queued: Watched) -> None:
    queued.sandbox.pool(TOPOLOGY)
    (first,) = queued.launch("first")
    queued.sandbox.wait_running(first, 1)
    (second,) = queued.launch("second")
    (third,) = queued.launch("third")
    flavor = f"{queued.sandbox.namespace}-training"
    why = (
        "couldn't assign flavors to pod set slice-job: insufficient unused quota for google.com/tpu in flavor "
        f"{flavor}, {CHIPS} more needed"
    )
    wait_for("Kueue's words", lambda: queued.status()[second]["why"] == why)
    rows = queued.status()
    assert rows[first]["status"] == "running"
    assert [(rows[run]["status"], rows[run]["queue_position"]) for run in (second, third)] == [
        ("queued", 1),
        ("queued", 2),
    ]
    line = next(line for line in queued.run("status").out.splitlines() if line.startswith(second))
    assert line.endswith(f"1 of 2 in queue training: {why}")
    assert queued.run("drift", "--environment", "test").out == "3 living runs compared, no drift\n"


def test_the_last_step_and_the_log(watched: Watched, tmp_path: Path) -> None:
    run = watched.running("first")
    pod = watched.sandbox.pods(run)[0]
    with node_logs(watched.sandbox, tmp_path) as nodes:
        log = nodes.of(pod)
        log.write(
            "completed step: 41, seconds: 1.0, loss: 2.0", "completed step: 42, seconds: 1.0, loss: 2.0", "saving"
        )
        assert watched.status()[run]["step"] == 42
        assert watched.run("logs", f"{MODEL}/first").out.splitlines()[-1] == "saving"
        absent = watched.run("logs", run, "--index", "3")
        assert (absent.code, absent.err) == (
            1,
            f"renderer: {run} has no pod with index 3; --index can be 0 now\n",
        )
        watched.finish(run)
        followed = watched.run("logs", run, "--follow")
    assert (followed.code, followed.out.splitlines()[-1]) == (0, "saving")
    assert followed.err.splitlines() == [
        f"renderer: log of {pod['metadata']['name']}",
        f"renderer: {run} has finished",
    ]


def test_a_run_is_stopped_for_good(watched: Watched) -> None:
    run = watched.running("first")
    unasked = watched.run("stop", run)
    assert (unasked.code, watched.status()[run]["status"]) == (2, "running")
    assert "add --yes" in unasked.err
    stopped = watched.run("stop", f"{MODEL}/first", "--yes")
    assert (stopped.code, stopped.out) == (0, f"{run} is stopped: stopped by admin with renderer stop\n")
    assert f"`state: stopped` under launch: in experiments/{MODEL}/first.yml" in stopped.err
    row = watched.status()[run]
    assert (row["state"], row["status"], row["why"]) == ("stopped", "stopped", "stopped by admin with renderer stop")
    assert watched.sandbox.jobsets() == []
    watched.apply()
    watched.launch("second")
    assert watched.status()[run]["status"] == "stopped"
    again = watched.run("stop", run, "--yes")
    assert (again.code, again.out) == (
        0,
        f"{run} does not run: it is stopped: stopped by admin with renderer stop\n",
    )
    gone = watched.run("logs", run)
    assert gone.code == 1
    assert "has no log in the cluster" in gone.err


def test_a_run_in_no_ledger_is_not_stopped(watched: Watched) -> None:
    stray = watched.sandbox.hold(variant(TOPOLOGY, namespace=watched.sandbox.namespace, name="stray"))
    # Its namespace is known from the ledger, so something must have been launched there.
    watched.running("first")
    ran = watched.run("stop", stray, "--yes")
    assert ran.code == 1
    assert ran.err == (
        f"cluster: {stray} is in no ledger: apply did not launch it\n"
        f"    kubectl delete jobset {stray} -n {watched.sandbox.namespace}\n"
    )


def test_what_was_applied_is_no_drift_and_each_change_is(watched: Watched) -> None:
    run = watched.running("first")
    assert tuple(watched.run("drift")) == (0, "1 living run compared, no drift\n", "")
    api, namespace = watched.sandbox.plane.api, watched.sandbox.namespace
    kubectl = watched.sandbox.plane.kubectl
    assert kubectl("label", "jobset", run, "-n", namespace, "note=mine").returncode == 0
    assert kubectl("label", "jobset", run, "-n", namespace, "--overwrite", "renderer/chips=8").returncode == 0
    config_map = api.get(core(namespace, "configmaps", f"run-{run}"))
    api.delete(core(namespace, "configmaps", f"run-{run}"))
    data = {**config_map["data"], "run.yml": config_map["data"]["run.yml"].replace("\nsteps: 20\n", "\nsteps: 30\n")}
    api.create(core(namespace, "configmaps"), {"metadata": {"name": f"run-{run}"}, "data": data})
    stray = watched.sandbox.hold(variant(TOPOLOGY, namespace=namespace, name="stray"))
    ran = watched.run("drift", "--environment", "test")
    assert ran.code == 1
    lines = [line.partition(" (by kubectl-label")[0] for line in ran.out.splitlines()]
    assert lines == [
        f'{run}: JobSet: metadata.labels.renderer/chips: "4" in git, "8" in the cluster',
        f'{run}: JobSet: metadata.labels.note: nothing in git, "mine" in the cluster',
        f"{run}: ConfigMap run-{run}: run.yml: steps: 20 in git, 30 in the cluster",
        f"{stray}: JobSet: no ledger knows it: apply did not launch it",
        "1 living run compared, 2 runs with drift",
    ]
    found = json.loads(watched.run("drift", "--format", "json").out)
    assert [drift["run"] for drift in found["drift"]] == [run, run, run, stray]
    assert found["notes"] == found["unknown"] == []


def test_a_vanished_run_and_an_unstopped_one_are_drift(watched: Watched) -> None:
    first, second = watched.running("first"), watched.running("second")
    watched.sandbox.plane.api.delete(jobsets(watched.sandbox.namespace, first))
    wait_for("its end", lambda: len(watched.sandbox.jobsets()) == 1)
    watched.merges.content.edit(f"experiments/{MODEL}/second.yml", '"image"', '"state": "stopped"\n  "image"')
    marker = watched.merges.git("rev-parse", "--short=8", "HEAD")
    head = watched.merges.commit()
    ran = watched.run("drift")
    assert (ran.code, ran.out.splitlines()) == (
        1,
        [
            f"note: test was applied up to {marker}, HEAD is {head[:8]}: what the next apply changes counts as drift "
            "until then",
            f"{first}: JobSet: is gone, nothing shows that it finished, and it has no time to live",
            f"{second}: experiment: experiments/{MODEL}/second.yml says state: stopped, but the run lives",
            "1 living run compared, 2 runs with drift",
        ],
    )
    watched.apply()
    assert watched.run("stop", first, "--yes").code == 0
    assert watched.run("drift").out == "0 living runs compared, no drift\n"


def test_what_ended_runs_left_is_removed_and_never_launched_again(watched: Watched) -> None:
    assert watched.run("cleanup").out == "nothing is left of ended runs\n"
    first, second = watched.running("first"), watched.running("second")
    watched.finish(first)
    listed = watched.run("cleanup")
    assert listed.code == 2
    assert listed.out.splitlines() == [
        f"JobSet {first} in {watched.sandbox.namespace}: the run has finished",
        f"ConfigMap run-{first} in {watched.sandbox.namespace}: the run has finished",
    ]
    cleaned = watched.run("cleanup", "--environment", "test", "--yes")
    assert cleaned.code == 0, cleaned.err
    assert cleaned.out.splitlines()[2:] == [
        f"deleted JobSet {first}",
        f"deleted ConfigMap run-{first}",
        "2 objects deleted; the ledger keeps its entries",
    ]
    scripts = {name for name in watched.names("configmaps") if name.startswith("pod-")}
    assert watched.names("configmaps") == {f"run-{second}", *scripts}
    row = watched.status()[first]
    assert (row["state"], row["status"]) == ("launched", "finished")
    assert row["why"].startswith("is over since ")
    assert watched.run("drift").out == "1 living run compared, no drift\n"
    watched.apply()
    assert watched.status()[first]["status"] == "finished"
    watched.finish(second)
    last = watched.run("cleanup", "--yes")
    assert last.out.splitlines()[-7:] == [
        "# Node pools that no run of the renderer uses now; if nothing else does, delete them:",
        f"gcloud container node-pools delete tpu7x-{TOPOLOGY} \\",
        "  --cluster=tpu-test \\",
        "  --region=us-central1 \\",
        "  --project=example-project \\",
        "  --quiet",
        "gcloud container node-pools list --cluster=tpu-test --region=us-central1 --project=example-project",
    ]
    assert watched.names("configmaps") == set()


def test_another_cluster_is_not_touched(watched: Watched) -> None:
    run = watched.running("first")
    path = watched.merges.content.root / "presets/clusters.yml"
    identity = watched.sandbox.plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    path.write_text(path.read_text().replace(identity, "00000000-0000-4000-8000-000000000009"))
    for words in (
        ["stop", run, "--yes"],
        ["cleanup", "--environment", "test", "--yes"],
        ["drift", "--environment", "test"],
    ):
        ran = watched.run(*words)
        assert (ran.code, ran.out) == (1, "")
        assert f"the kubeconfig's cluster has the identity {identity}" in ran.err
    assert watched.status()[run]["status"] == "running"


@dataclass(frozen=True, slots=True)
class Damage:
    """A run that is as it should be, one whose entry in the ledger lost its digest, and other hands' objects."""

    good: str
    bad: str
    digest: str
    warnings: tuple[str, ...]


@pytest.fixture
def damage(watched: Watched, control: str) -> Damage:
    good, bad = watched.running("first"), watched.running("second")
    api, namespace = watched.sandbox.plane.api, watched.sandbox.namespace
    digest = api.get(core(control, "configmaps", bad))["data"]["digest"]
    api.patch(core(control, "configmaps", bad), {"data": {"digest": None}})
    foreign = {"name": "settings", "labels": {"renderer/ledger": "run", "renderer/environment": "test"}}
    api.create(core(control, "configmaps"), {"metadata": foreign})
    labels = {"renderer/environment": "test", "renderer/experiment": "odd", "renderer/model": "m"}
    about = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    api.create(jobsets(namespace), {**about, "metadata": {"name": "odd", "labels": labels}})
    copy = {"name": "copy", "labels": {"jobset.sigs.k8s.io/jobset-name": good}}
    container = {"name": "shell", "image": "shell"}
    api.create(core(namespace, "pods"), {"metadata": copy, "spec": {"containers": [container]}})
    entries = [(bad, "it has no digest"), ("settings", "it has no experiment")]
    warnings = [
        f"warning: ConfigMap {name} in {control} is no entry of the ledger: {reason}; "
        f"see kubectl get configmap {name} -n {control} -o yaml"
        for name, reason in entries
    ]
    odd = f"warning: JobSet odd in {namespace} is not as apply makes them: it has no replicatedJobs with pods; "
    return Damage(good, bad, digest, (*warnings, f"{odd}see kubectl get jobset odd -n {namespace} -o yaml"))


def test_damaged_objects_hide_no_other(watched: Watched, damage: Damage, control: str) -> None:
    ran = watched.run("status", "--format", "json")
    assert (ran.code, tuple(ran.err.splitlines())) == (0, damage.warnings)
    data = json.loads(ran.out)
    rows = {row["name"]: (row["status"], row["why"]) for row in data["runs"] + data["unlisted"]}
    assert rows == {
        damage.good: ("running", ""),
        damage.bad: ("running", "its entry in the ledger cannot be read"),
        "odd": ("unknown", "in no ledger: apply did not launch it; its JobSet does not say which pods it has"),
    }
    assert [(item["kind"], item["name"]) for item in data["warnings"]] == [
        ("ConfigMap", damage.bad),
        ("ConfigMap", "settings"),
        ("JobSet", "odd"),
    ]
    drift = watched.run("drift")
    assert (drift.code, tuple(drift.err.splitlines())) == (1, damage.warnings)
    assert drift.out.splitlines() == [
        "odd: JobSet: no ledger knows it: apply did not launch it",
        f"not known: {damage.bad}: cannot be compared: its entry in the ledger cannot be read",
        "1 living run compared, 1 run with drift",
    ]
    unknown = watched.run("status", "settings")
    assert (unknown.code, unknown.err.splitlines()[3:]) == (
        1,
        [
            "command line: nothing is known of settings while its entry in the ledger cannot be read",
            f"    put back what was changed: kubectl edit configmap settings -n {control}",
            "    or, if no run was ever recorded in it: "
            f"kubectl label configmap settings -n {control} renderer/ledger-",
        ],
    )


def test_a_marker_without_a_commit_stops_apply_alone(watched: Watched, control: str) -> None:
    watched.running("first")
    watched.sandbox.plane.api.patch(core(control, "configmaps", "marker-test"), {"data": {"commit": None}})
    show = f"kubectl get configmap marker-test -n {control} -o yaml"
    drift = watched.run("drift", "--environment", "test")
    assert tuple(drift) == (
        0,
        "1 living run compared, no drift\n",
        f"warning: ConfigMap marker-test in {control} names no commit; see {show}\n",
    )
    ran = watched.run("apply", "--environment", "test")
    assert (ran.code, ran.err.splitlines()) == (
        1,
        [
            f"cluster: ConfigMap marker-test in {control} names no commit",
            f"    {show}",
            f"    put the last applied commit back, as data.commit: kubectl edit configmap marker-test -n {control}",
        ],
    )


def test_a_run_is_stopped_beside_one_whose_entry_is_damaged(watched: Watched, damage: Damage, control: str) -> None:
    for name in (damage.bad, f"{MODEL}/second"):
        refused = watched.run("stop", name, "--yes")
        assert (refused.code, refused.out, refused.err.splitlines()[3:]) == (
            1,
            "",
            [
                f"cluster: {damage.bad} cannot be stopped while its entry in the ledger cannot be read",
                f"    put back what was changed: kubectl edit configmap {damage.bad} -n {control}",
                "    or, if no run was ever recorded in it: "
                f"kubectl label configmap {damage.bad} -n {control} renderer/ledger-",
            ],
        )
    watched.sandbox.plane.api.delete(core(watched.sandbox.namespace, "pods", "copy"))
    stopped = watched.run("stop", damage.good, "--yes")
    assert (stopped.code, stopped.out) == (0, f"{damage.good} is stopped: stopped by admin with renderer stop\n")
    assert sorted(found["metadata"]["name"] for found in watched.sandbox.jobsets()) == sorted([damage.bad, "odd"])


def test_nothing_is_launched_or_cleaned_up_beside_what_may_be_any_run(
    watched: Watched, damage: Damage, control: str
) -> None:
    api = watched.sandbox.plane.api
    watched.finish(damage.bad)
    before = watched.names("configmaps"), len(watched.sandbox.jobsets())
    watched.merges.add(["third"])
    for words in (["apply", "--environment", "test"], ["apply", "--environment", "test", "--dry-run"]):
        ran = watched.run(*words)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.splitlines() == [
            f"cluster: ConfigMap {damage.bad} in {control} is no entry of the ledger: it has no digest",
            f"    kubectl get configmap {damage.bad} -n {control} -o yaml",
            f"    put back what was changed: kubectl edit configmap {damage.bad} -n {control}",
            "    or, if no run was ever recorded in it: "
            f"kubectl label configmap {damage.bad} -n {control} renderer/ledger-",
            f"cluster: ConfigMap settings in {control} is no entry of the ledger: it has no experiment",
            f"    kubectl get configmap settings -n {control} -o yaml",
            f"    put back what was changed: kubectl edit configmap settings -n {control}",
            "    or, if no run was ever recorded in it: "
            f"kubectl label configmap settings -n {control} renderer/ledger-",
        ]
    cleaned = watched.run("cleanup", "--yes")
    assert (cleaned.code, cleaned.out, tuple(cleaned.err.splitlines())) == (
        0,
        "nothing is left of ended runs\n",
        damage.warnings,
    )
    assert (watched.names("configmaps"), len(watched.sandbox.jobsets())) == before
    api.patch(core(control, "configmaps", damage.bad), {"data": {"digest": damage.digest}})
    kubectl = watched.sandbox.plane.kubectl("label", "configmap", "settings", "-n", control, "renderer/ledger-")
    assert kubectl.returncode == 0, kubectl.stderr
    watched.apply()
    assert watched.status()[watched.merges.names["third"]]["state"] == "launched"
