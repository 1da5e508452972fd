"""Which runs count as drift; the comparison of files in ConfigMaps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from renderer.cluster.api import Api, Object
from renderer.cluster.committed_runs import CommittedRuns
from renderer.cluster.damage import Damaged
from renderer.cluster.drift import Result, config_map_differences, find
from renderer.cluster.ledger import State
from renderer.cluster.objects import Objects
from renderer.cluster.observe import Seen
from renderer.runs import Committed
from tests.cluster_unit.seen import ended, entry, jobset, seen

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)  # two hours after the launch
EXPERIMENT = Committed("m/run", "experiments/m/run.yml", "test")


class Repository:
    """Committed runs without a repository."""

    def __init__(self, experiment: Committed | None = EXPERIMENT, ttl: int = 0, *, known: bool = True) -> None:
        self._experiment, self._known = experiment, known
        jobset = {"metadata": {"namespace": "ns"}, "spec": {"ttlSecondsAfterFinished": ttl} if ttl else {}}
        config_map = {"metadata": {"name": "run-x"}, "data": {}}
        self._objects = Objects(jobset, config_map, config_map, None, "", {})

    def experiment(self, _entry: object) -> Committed | None:
        return self._experiment

    def objects(self, _entry: object) -> Objects | str:
        return self._objects if self._known else "its commit is not here"


class Empty:
    """A cluster whose ConfigMaps are all there and empty."""

    def get(self, path: str) -> Object:
        return {"metadata": {"name": path}}


def look(run: Seen, repository: Repository | None = None) -> Result:
    return find(cast("Api", Empty()), [run], cast("CommittedRuns", repository or Repository()), NOW)


def texts(result: Result) -> list[str]:
    return [f"{drift.about}: {drift.text}" for drift in result.found]


@pytest.mark.parametrize(
    "run",
    [
        seen(entry(), jobset()),
        seen(entry(), jobset(ended=ended("Completed"))),
        seen(entry(state=State.PENDING)),
        seen(entry(state=State.PENDING), jobset()),
        seen(entry(state=State.STOPPED)),
        seen(entry(state=State.REFUSED)),
        seen(entry(state=State.STOPPED), jobset(ended=ended("Failed"))),
        seen(entry(reason="is over since 2026-11-29T11:00:00Z: finished")),
        seen(entry(uid="", reason="adopted; its JobSet does not live")),
    ],
)
def test_what_is_as_it_should_be(run: Seen) -> None:
    result = look(run)
    assert (result.found, result.unknown) == ((), ())


@pytest.mark.parametrize(
    ("run", "repository", "text"),
    [
        (seen(None, jobset()), None, "JobSet: no ledger knows it: apply did not launch it"),
        (seen(entry(state=State.STOPPED), jobset()), None, "JobSet: lives, but the ledger says stopped"),
        (
            seen(entry()),
            None,
            "JobSet: is gone, nothing shows that it finished, and it has no time to live",
        ),
        (
            seen(entry()),
            Repository(ttl=86400),
            "JobSet: is gone before its time to live of 86400 s can have passed: it was deleted",
        ),
        (
            seen(entry(), jobset()),
            Repository(replace(EXPERIMENT, stopped=True)),
            "experiment: experiments/m/run.yml says state: stopped, but the run lives",
        ),
        (
            seen(entry(), jobset()),
            Repository(None),
            "experiment: m/run is not at HEAD any more, but the run lives",
        ),
        (
            seen(entry(), jobset()),
            Repository(replace(EXPERIMENT, environment="prod")),
            "experiment: experiments/m/run.yml is for prod now, but the run lives",
        ),
    ],
)
def test_each_kind_of_drift(run: Seen, repository: Repository | None, text: str) -> None:
    assert texts(look(run, repository)) == [text]


def test_a_run_that_its_time_to_live_may_have_removed_is_no_drift() -> None:
    assert look(seen(entry()), Repository(ttl=3600)) == Result((), (), 0)
    late = entry(reason="its JobSet finished or was removed before this was recorded")
    assert look(seen(late), Repository(ttl=86400)) == Result((), (), 0)


def test_what_cannot_be_compared_is_said() -> None:
    for run in (seen(entry(), jobset()), seen(entry())):
        result = look(run, Repository(known=False))
        assert (result.found, result.compared) == ((), 0)
        assert "its commit is not here" in result.unknown[0].text


def test_a_run_whose_entry_cannot_be_read_is_not_called_unlisted() -> None:
    unreadable = Damaged("ConfigMap", "control", "run-64c-11111111", "is no entry of the ledger: it has no digest")
    result = look(Seen(None, jobset(), unreadable=unreadable))
    assert (result.found, result.compared) == ((), 0)
    assert [item.text for item in result.unknown] == ["cannot be compared: its entry in the ledger cannot be read"]


def config_map(**data: str) -> Any:
    return {"metadata": {}, "data": {name.replace("_", "."): text for name, text in data.items()}}


def test_files_are_compared_by_key() -> None:
    mine = config_map(run_yml="# a\nsteps: 20\nlr: 0.1\n", derive_json='{"a": 1}', bootstrap_sh="one\n")
    theirs = config_map(run_yml="# b\nsteps: 30\nlr: 0.1\nmore: 1\n", derive_json='{"a": 1}', bootstrap_sh="three\n")
    assert list(map(str, config_map_differences(mine, theirs))) == [
        'bootstrap.sh: "4 characters" in git, "6 characters" in the cluster',
        "run.yml: more: nothing in git, 1 in the cluster",
        "run.yml: steps: 20 in git, 30 in the cluster",
    ]
    assert list(map(str, config_map_differences(config_map(a="x"), config_map()))) == [
        'a: "1 characters" in git, nothing in the cluster'
    ]


@pytest.mark.parametrize("text", ["1: a\nb: c\n", "? [a]\n: 2\n", "a: *x", "- a", "\x00"])
def test_a_file_that_is_no_mapping_of_names_differs_as_a_whole(text: str) -> None:
    (found,) = config_map_differences(config_map(run_yml="steps: 20\n"), config_map(run_yml=text))
    assert str(found) == f'run.yml: "10 characters" in git, "{len(text)} characters" in the cluster'


def test_nesting_that_no_reader_follows_is_a_difference() -> None:
    (found,) = config_map_differences(config_map(derive_json="{}"), config_map(derive_json="[" * 100_000))
    assert str(found) == 'derive.json: "2 characters" in git, "100000 characters" in the cluster'
