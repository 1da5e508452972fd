"""What apply takes for granted: which cluster it is, and which commit was applied last."""

from __future__ import annotations

import pytest

from renderer.cluster.api import core, jobsets
from renderer.cluster.ledger import State
from renderer.names import object_name
from tests.cluster.applied import Applied
from tests.repository import MODEL

pytestmark = pytest.mark.cluster


@pytest.fixture
def fresh(applied: Applied, control: str) -> Applied:
    """Nothing was applied yet."""
    applied.api.delete(core(control, "configmaps", "marker-test"))
    return applied


def test_without_a_marker_apply_asks(fresh: Applied) -> None:
    fresh.merge()
    for options in ((), ("--dry-run",)):
        ran = fresh.run(*options)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == (
            "command line: nothing was applied to test yet: do the runs of HEAD live already?\n"
            "    renderer apply --environment test --adopt records them as launched and creates nothing\n"
            "    renderer apply --environment test --launch-all launches all of them\n"
        )
    assert (fresh.store.entries(), fresh.sandbox.jobsets()) == ([], [])


def test_adopt_records_what_lives_and_creates_nothing(fresh: Applied) -> None:
    fresh.write("dead")
    fresh.write("stopped", launch={"state": "stopped"})
    commit = fresh.merge("alive")
    made = fresh.merges.renderer("manifests", f"{MODEL}/alive")
    assert fresh.sandbox.plane.kubectl("apply", "--server-side", "-f", "-", stdin=made.text).returncode == 0
    assert fresh.apply("--dry-run", "--adopt") == [
        ("recorded", "alive", "adopted"),
        ("recorded", "dead", "adopted; its JobSet does not live"),
    ]
    assert (fresh.store.entries(), fresh.store.read_marker()) == ([], None)
    fresh.apply("--adopt")
    (jobset,) = fresh.sandbox.jobsets()
    found = {entry.experiment.partition("/")[2]: entry for entry in fresh.store.entries()}
    assert {name: (entry.state, entry.uid) for name, entry in found.items()} == {
        "alive": (State.LAUNCHED, jobset["metadata"]["uid"]),
        "dead": (State.LAUNCHED, ""),
    }
    assert fresh.store.read_marker() == commit
    assert fresh.apply() == []
    fresh.remove("alive")
    assert fresh.apply() == [("stopped", "alive", "its file was removed")]
    assert fresh.sandbox.jobsets() == []


def test_an_adopted_run_keeps_its_directory(fresh: Applied) -> None:
    fresh.merge("alive", run_name="shared")
    made = fresh.merges.renderer("manifests", f"{MODEL}/alive")
    assert fresh.sandbox.plane.kubectl("apply", "--server-side", "-f", "-", stdin=made.text).returncode == 0
    fresh.apply("--adopt")
    fresh.merge("other", run_name="shared", steps=7)
    assert [found[:2] for found in fresh.apply(code=1)] == [("refused", "other")]


def test_launch_all_launches_every_run(fresh: Applied) -> None:
    fresh.write("stopped", launch={"state": "stopped"})
    fresh.write("second")
    fresh.merge("first")
    assert [found[:2] for found in fresh.apply("--launch-all")] == [("launched", "first"), ("launched", "second")]
    assert len(fresh.started()) == 2


def test_what_was_launched_is_not_launched_again_when_the_marker_was_lost(applied: Applied, control: str) -> None:
    applied.merge()
    applied.apply()
    applied.api.delete(core(control, "configmaps", "marker-test"))
    assert applied.apply("--launch-all") == []
    assert len(applied.started()) == 1


@pytest.mark.parametrize("option", ["--adopt", "--launch-all"])
def test_the_question_is_answered_once(applied: Applied, option: str) -> None:
    marker = str(applied.store.read_marker())
    ran = applied.run(option)
    said = f"command line: {marker[:12]} was applied to test before: {option} is for the first apply\n"
    assert (ran.code, ran.out, ran.err) == (1, "", said)


def test_adopt_and_launch_all_exclude_each_other(applied: Applied) -> None:
    ran = applied.run("--adopt", "--launch-all")
    assert ran.code == 2
    assert "Error: choose one of --adopt and --launch-all\n" in ran.err


def test_another_cluster_is_not_touched(applied: Applied) -> None:
    identity = applied.sandbox.plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    other = "00000000-0000-4000-8000-000000000009"
    applied.merges.content.edit("presets/clusters.yml", identity, other)
    applied.merge()
    ran = applied.run()
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"presets/clusters.yml:12:3: the kubeconfig's cluster has the identity {identity}, test-tpu7x has {other}\n"
        "    use the credentials of the environment's cluster; nothing was changed\n"
        "    if this is the cluster, correct identity in presets/clusters.yml and commit it: "
        "the file counts as committed\n"
    )
    assert applied.store.entries() == []


def test_only_committed_settings_count(applied: Applied) -> None:
    applied.merge()
    applied.merges.content.write("presets/clusters.yml", "clusters: 7\n")
    applied.write("not-committed")
    assert [found[:2] for found in applied.apply()] == [("launched", "run")]


def test_a_commit_that_was_applied_before_does_nothing(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    marker = applied.store.read_marker()
    applied.merges.git("checkout", "--quiet", "HEAD~1")
    ran = applied.run()
    assert (ran.code, ran.err) == (0, "")
    assert "was applied before; " in ran.out
    assert (applied.store.read_marker(), applied.states()) == (marker, ["launched"])


def test_a_rewritten_branch_stops_apply(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    marker = str(applied.store.read_marker())
    applied.merges.git("checkout", "--quiet", "-b", "rewritten", "HEAD~1")
    head = applied.merge("other")
    ran = applied.run()
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(
        f"command line: the last applied commit {marker[:12]} and HEAD {head[:12]} do not lead to each other; "
        "nothing was changed\n    apply a commit that contains the last applied one\n"
    )
    assert applied.states() == ["launched"]


def test_a_shallow_clone_stops_apply(applied: Applied, tmp_path_factory: pytest.TempPathFactory) -> None:
    applied.merge()
    clone = tmp_path_factory.mktemp("clone")
    applied.merges.git("clone", "--quiet", "--depth=1", f"file://{applied.merges.content.root}", str(clone))
    ended = applied.merges.renderer("--root", str(clone), "apply", "--environment", "test")
    assert ended.code == 1
    assert ended.text.startswith("command line: this clone is shallow: what was applied before cannot be told\n")


def test_a_cluster_without_a_place_for_the_ledger(applied: Applied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("renderer.cluster.ledger.CONTROL", "none-such")
    ran = applied.run("--adopt")
    assert (ran.code, ran.err) == (
        1,
        "command line: the cluster has no namespace none-such for the ledger\n    kubectl create namespace none-such\n",
    )


def test_what_is_no_entry_of_the_ledger_stops_apply(applied: Applied, control: str) -> None:
    applied.merge()
    applied.apply()
    name = applied.only().name
    applied.api.merge(core(control, "configmaps", name), {"data": {"state": "odd"}})
    applied.merge("other")
    ran = applied.run()
    assert (ran.code, ran.err) == (
        1,
        f"cluster: ConfigMap {name} in {control} is no entry of the ledger: 'odd' is not a valid State\n"
        f"    kubectl get configmap {name} -n {control} -o yaml\n"
        f"    put back what was changed: kubectl edit configmap {name} -n {control}\n"
        f"    or, if no run was ever recorded in it: kubectl label configmap {name} -n {control} renderer/ledger-\n",
    )
    assert len(applied.started()) == 1


def test_names_are_those_of_the_ledger(applied: Applied) -> None:
    applied.merge(launch={"attempt": 3})
    applied.apply()
    entry = applied.only()
    assert entry.name == object_name(entry.run_name, 3)
    assert applied.api.get(jobsets(entry.namespace, entry.name))


def test_a_run_that_was_made_by_hand_after_its_adoption_is_known_by_its_content(fresh: Applied) -> None:
    fresh.merge()
    assert fresh.run("--adopt").code == 0
    made = fresh.merges.renderer("manifests", f"{MODEL}/run")
    assert fresh.sandbox.plane.kubectl("apply", "--server-side", "-f", "-", stdin=made.text).returncode == 0
    fresh.sandbox.release(fresh.only().name)
    fresh.remove()
    assert fresh.apply() == [("stopped", "run", "its file was removed")]
    assert (fresh.sandbox.jobsets(), fresh.states()) == ([], ["stopped"])
