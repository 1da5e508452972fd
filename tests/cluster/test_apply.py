"""What merges come to on a real control plane: each run is launched once, and stopped when it should be."""

from __future__ import annotations

import pytest

from renderer.cluster.api import core, jobsets
from renderer.cluster.ledger import State, Store
from tests.cluster.applied import Applied
from tests.repository import MODEL

pytestmark = pytest.mark.cluster


def test_a_merge_is_launched_once(applied: Applied) -> None:
    commit = applied.merge()
    assert applied.apply() == [("launched", "run", "new experiment")]
    entry = applied.only()
    jobset = applied.sandbox.jobset(entry.name)
    assert (entry.state, entry.uid, entry.commit) == (State.LAUNCHED, jobset["metadata"]["uid"], commit)
    assert jobset["spec"].get("suspend") is False
    assert applied.store.read_marker() == commit
    assert applied.apply() == []
    applied.merges.commit()
    assert applied.apply() == []
    assert applied.only() == entry
    assert applied.started() == [entry.name]


def test_a_run_that_finished_and_was_removed_is_not_launched_again(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    applied.api.delete(jobsets(applied.sandbox.namespace, applied.only().name))
    applied.merge("other")
    assert applied.apply() == [("launched", "other", "new experiment")]
    applied.write(launch={"owner": "another-team"})
    applied.merges.commit()
    assert applied.apply() == []
    assert applied.states() == ["launched", "launched"]


def test_the_event_says_who_launched_what(applied: Applied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTOR", "someone")
    applied.write()
    applied.merges.git("add", "--all")
    applied.merges.git("commit", "--quiet", "--message", "A new run (#12)")
    applied.apply()
    entry = applied.only()
    event = applied.api.get(core(applied.sandbox.namespace, "events", f"{entry.name}.launched"))
    assert event is not None
    assert event["message"] == f"launched by someone, commit {entry.commit}, pull request 12"
    assert (event["reason"], event["involvedObject"]["uid"]) == ("Launched", entry.uid)
    assert (entry.actor, entry.pull_request) == ("someone", "12")


def test_changed_content_stops_the_old_run_first(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    old = applied.only()
    applied.merge(steps=7)
    assert [found[:2] for found in applied.apply()] == [("launched", "run"), ("stopped", "run")]
    assert applied.states() == ["stopped", "launched"]
    assert old.name not in [item["metadata"]["name"] for item in applied.sandbox.jobsets()]
    assert not applied.api.get(core(applied.sandbox.namespace, "configmaps", f"run-{old.name}"))
    assert applied.sandbox.pods(old.name) == []


def test_keep_lets_both_run(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    applied.merge(launch={"supersede": "keep"}, steps=7)
    assert [found[:2] for found in applied.apply()] == [("launched", "run")]
    assert len(applied.started()) == 2


def test_state_stopped_stops_and_its_end_does_not_start(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    applied.merge(launch={"state": "stopped"})
    assert applied.apply() == [("stopped", "run", "state: stopped")]
    assert (applied.states(), applied.sandbox.jobsets()) == (["stopped"], [])
    applied.merge()
    assert applied.apply() == []
    applied.merge(launch={"attempt": 2})
    assert applied.apply() == [("launched", "run", "attempt raised from 1 to 2")]


def test_a_removed_file_stops_every_live_run(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    applied.merge(launch={"supersede": "keep"}, steps=7)
    applied.apply()
    applied.remove()
    assert [found[0] for found in applied.apply()] == ["stopped", "stopped"]
    assert applied.sandbox.jobsets() == []


def test_an_attempt_is_refused_while_the_earlier_one_lives(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    first = applied.only()
    applied.merge(launch={"attempt": 2})
    assert applied.apply(code=1) == [("refused", "run", "refused while run-4c-(digest) lives")]
    assert applied.states() == ["launched", "refused"]
    applied.merge("other")
    assert [found[:2] for found in applied.apply()] == [("launched", "other")]
    applied.api.delete(jobsets(applied.sandbox.namespace, first.name))
    assert applied.apply() == [("launched", "run", "an earlier launch did not get through")]
    assert applied.entries()[f"{first.name}-a2"].state is State.LAUNCHED


def test_a_refused_run_is_tried_again_when_its_file_changes(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    applied.merge(launch={"attempt": 2})
    applied.apply(code=1)
    applied.finish(next(name for name, entry in applied.entries().items() if entry.state is State.LAUNCHED))
    applied.merge("other")
    assert [found[:2] for found in applied.apply()] == [("launched", "other")]
    applied.merge(launch={"attempt": 2, "owner": "another"})
    assert applied.apply() == [("launched", "run", "an earlier launch did not get through")]


def test_reverted_content_is_not_launched_again(applied: Applied) -> None:
    applied.merge()
    applied.apply()
    applied.merge(steps=7)
    applied.apply()
    applied.merge()
    assert applied.apply() == [("stopped", "run", "its content was reverted")]
    assert applied.states() == ["stopped", "stopped"]


def test_a_switch_of_the_environment_stops_there_and_launches_here(applied: Applied) -> None:
    assert applied.run("--adopt", environment="prod").code == 0
    applied.merge()
    applied.apply()
    test = applied.only()
    applied.merge(launch={"environment": "prod"})
    assert applied.apply() == [("stopped", "run", "moved to prod")]
    ran = applied.run(environment="prod")
    assert (ran.code, ran.err) == (0, "")
    (prod,) = Store(applied.api, "prod").entries()
    assert applied.started() == [prod.name] != [test.name]
    assert applied.run(environment="prod").code == 0
    assert applied.apply() == []
    assert applied.started() == [prod.name]


def test_paused_launches_wait_and_stops_do_not(applied: Applied) -> None:
    applied.merge("old")
    applied.apply()
    applied.merge()
    applied.remove("old")
    applied.policy("paused: maintenance\n")
    assert applied.apply(code=1) == [
        ("stopped", "old", "its file was removed"),
        ("pending", "run", "launches are paused: maintenance"),
    ]
    assert applied.sandbox.jobsets() == []
    assert sorted((entry.state.value, entry.reason) for entry in applied.store.entries()) == [
        ("pending", "launches are paused: maintenance"),
        ("stopped", "its file was removed"),
    ]
    applied.policy("")
    assert applied.apply() == [("launched", "run", "an earlier launch did not get through")]


def test_more_than_the_policy_allows_does_nothing(applied: Applied) -> None:
    applied.policy("merge:\n  launches: 1\n")
    applied.apply()
    applied.write("other")
    applied.merge()
    ran = applied.run()
    assert (ran.code, ran.err) == (1, "")
    assert "nothing was done: this would launch 2 runs, at most 1 is allowed." in ran.out
    assert applied.store.entries() == []


def test_a_pending_run_that_is_not_wanted_any_more_is_not_launched(applied: Applied) -> None:
    applied.policy("paused: maintenance\n")
    applied.merge()
    applied.apply(code=1)
    applied.remove()
    applied.policy("")
    assert applied.apply() == [("stopped", "run", "its file was removed; no run of it is known to live")]
    assert applied.states() == ["stopped"]


def test_what_was_edited_by_hand_is_refused_by_name(applied: Applied) -> None:
    applied.merge()
    applied.merge("sound")
    path = f"rendered/test/{MODEL}/run/run.yml"
    applied.merges.content.edit(path, "steps: 20", "steps: 21")
    applied.merges.commit()
    reason = f"{path}: edited by hand after it was rendered; run renderer render"
    assert applied.apply(code=1) == [("launched", "sound", "new experiment"), ("refused", "run", reason)]
    applied.merges.content.edit(path, "steps: 21", "steps: 20")
    applied.merges.commit()
    assert applied.apply() == [("launched", "run", "an earlier launch did not get through")]


def test_a_pod_script_that_was_edited_is_named(applied: Applied) -> None:
    applied.merge()
    (script,) = applied.merges.content.root.glob("rendered/_pod/*/bootstrap.sh")
    script.write_text(script.read_text() + "# more\n")
    applied.merges.commit()
    ((verdict, _, reason),) = applied.apply(code=1)
    assert verdict == "refused"
    assert reason.startswith(f"rendered/_pod/{script.parent.name}: holds other files than were rendered: ")


def test_two_runs_never_write_to_one_directory_at_once(applied: Applied) -> None:
    applied.merge("first", run_name="shared")
    applied.apply()
    first = applied.only()
    applied.merge("second", run_name="shared", steps=7)
    place = "gs://example-maxtext-test/runs/shared"
    reason = f"first-4c-(digest) writes to {place} and has not ended"
    assert applied.apply(code=1) == [("refused", "second", reason)]
    assert applied.started() == [first.name]
    applied.finish(first.name)
    assert applied.apply() == [("launched", "second", "an earlier launch did not get through")]


def test_a_run_takes_over_the_directory_of_the_run_it_replaces(applied: Applied) -> None:
    applied.merge(run_name="shared")
    applied.apply()
    applied.merge(run_name="shared", steps=7)
    assert [found[:2] for found in applied.apply()] == [("launched", "run"), ("stopped", "run")]


def test_a_dry_run_writes_nothing(applied: Applied) -> None:
    applied.merge()
    before = applied.store.read_marker()
    assert applied.apply("--dry-run") == [("launched", "run", "new experiment")]
    assert (applied.store.entries(), applied.sandbox.jobsets(), applied.store.read_marker()) == ([], [], before)
    assert "a dry run, nothing was changed; there would be 1 launched." in applied.run("--dry-run").out
    applied.apply()
    applied.remove()
    assert applied.apply("--dry-run") == [("stopped", "run", "its file was removed")]
    assert applied.states() == ["launched"]


def test_a_run_that_the_cluster_cannot_take_is_refused_and_blocks_no_other(applied: Applied) -> None:
    applied.merges.content.experiment(
        "poor",
        model=MODEL,
        launch={"chips": 4, "image": "maxtext-0.2.5", "branch": None},
        deploy={"PRIORITY_CLASS": "none-such"},
    )
    assert applied.merges.content.run("render").code == 0
    applied.merge("sound")
    assert applied.apply(code=1) == [
        ("launched", "sound", "new experiment"),
        ("refused", "poor", "PriorityClass none-such does not exist"),
    ]
    assert sorted(applied.states()) == ["launched", "refused"]


def test_a_foreign_jobset_of_the_name_is_not_touched(applied: Applied) -> None:
    applied.merge()
    name = applied.merges.content.root / f"rendered/test/{MODEL}/run/jobset.yml"
    text = name.read_text().replace('renderer/content-digest: "', 'renderer/content-digest: "0')
    made = applied.sandbox.plane.kubectl("create", "-f", "-", stdin=text)
    assert made.returncode == 0, made.stderr
    ((verdict, _, reason),) = applied.apply(code=1)
    assert (verdict, reason.split(" is called ")[0]) == ("refused", "another JobSet")
    assert len(applied.sandbox.jobsets()) == 1


def test_a_broken_off_apply_is_made_up_for_by_a_later_commit(applied: Applied) -> None:
    """The run was launched, but the marker did not move; the next merge removes the file."""
    before = applied.store.read_marker()
    commit = applied.merge()
    applied.apply()
    assert applied.store.move_marker(commit, str(before))
    applied.remove()
    assert applied.apply() == [("stopped", "run", "its file was removed")]
    assert applied.sandbox.jobsets() == []


def test_a_broken_off_apply_is_superseded_by_a_later_commit(applied: Applied) -> None:
    before = applied.store.read_marker()
    commit = applied.merge()
    applied.apply()
    assert applied.store.move_marker(commit, str(before))
    applied.merge(steps=7)
    assert [found[:2] for found in applied.apply()] == [("launched", "run"), ("stopped", "run")]
    assert len(applied.started()) == 1


def test_an_older_commit_does_not_undo_a_newer_one_that_broke_off(applied: Applied) -> None:
    before = applied.store.read_marker()
    applied.merge()
    newer = applied.merge(steps=7)
    applied.apply()
    assert applied.store.move_marker(newer, str(before))
    applied.merges.git("checkout", "--quiet", "HEAD~1")
    ((verdict, _, reason),) = applied.apply(code=1)
    assert verdict == "failed"
    assert "which is no ancestor of" in reason
    assert len(applied.started()) == 1
    assert applied.store.read_marker() == before
