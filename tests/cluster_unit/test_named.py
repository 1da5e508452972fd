"""Finding runs by what people call them."""

from __future__ import annotations

from pathlib import Path

import pytest

from renderer.cluster.damage import Damaged
from renderer.cluster.named import every, latest
from renderer.cluster.observe import Seen, View
from renderer.problem import RefusedError
from tests.cluster_unit.seen import entry, jobset, seen

ROOT = Path("/content")
FIRST = seen(entry("run-64c-11111111", created="2026-11-01T00:00:00Z"))
SECOND = seen(entry("run-64c-11111111-a2", created="2026-11-02T00:00:00Z", attempt=2))
OTHER = seen(entry("other-64c-22222222", experiment="m/short", file="experiments/m/other.yml"))
STRAY = seen(None, jobset("stray-64c-33333333"))
RUNS = View((SECOND, FIRST, OTHER, STRAY))
UNREADABLE = Damaged(
    "ConfigMap", "control", "run-64c-44444444", "is no entry of the ledger: it has no digest", "mend it"
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("run-64c-11111111", FIRST),
        ("m/run", SECOND),
        ("experiments/m/run.yml", SECOND),
        ("/content/experiments/m/run.yml", SECOND),
        ("m/short", OTHER),
        ("m/other", OTHER),
        ("stray-64c-33333333", STRAY),
    ],
)
def test_a_run_is_found_by_each_of_its_names(name: str, found: object) -> None:
    assert latest(RUNS, name, ROOT) == found


def test_an_experiment_has_all_its_runs() -> None:
    assert every(View((FIRST, SECOND, OTHER)), ["m/run", "run-64c-11111111"], ROOT) == [FIRST, SECOND]


def test_unknown_names_are_told_together_with_the_nearest() -> None:
    with pytest.raises(RefusedError) as error:
        every(RUNS, ["m/ran", "xyz"], ROOT)
    assert str(error.value) == (
        "command line: no run or experiment m/ran is known to the cluster\n"
        "    nearest: m/run\n"
        "command line: no run or experiment xyz is known to the cluster\n"
        "    known: m/run, m/short, other-64c-22222222, run-64c-11111111, run-64c-11111111-a2, stray-64c-33333333"
    )


def test_a_living_run_whose_entry_cannot_be_read_is_its_experiments_latest() -> None:
    living = Seen(None, jobset("run-64c-44444444"), unreadable=UNREADABLE)
    ended = seen(entry("run-64c-55555555", created="2026-12-01T00:00:00Z"))
    runs = View((FIRST, ended, living), damaged=(UNREADABLE,))
    assert latest(runs, "m/run", ROOT) == latest(runs, "run-64c-44444444", ROOT) == living


def test_a_run_of_which_only_an_unreadable_entry_is_left_is_not_called_unknown() -> None:
    with pytest.raises(RefusedError) as error:
        latest(View((FIRST,), damaged=(UNREADABLE,)), "run-64c-44444444", ROOT)
    assert str(error.value) == (
        "command line: nothing is known of run-64c-44444444 while its entry in the ledger cannot be read\n    mend it"
    )
