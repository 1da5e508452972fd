"""The ledger on a real API server: what is written is read, and two writers never both win."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from renderer.cluster.api import Api, connect, core
from renderer.cluster.damage import LedgerError
from renderer.cluster.ledger import State, Store, export
from tests.cluster.control import entry
from tests.cluster.sandbox import Sandbox

pytestmark = pytest.mark.cluster


@pytest.fixture
def api(control: str) -> Iterator[Api]:
    found = connect()
    yield found
    found.close()


def test_an_entry_is_read_as_it_was_written(api: Api) -> None:
    store = Store(api, "test")
    written = store.add(entry(reason="a\nb: é", attempt=2, uid="u", commit="c", pull_request="12", actor="me"))
    assert written is not None
    assert store.entry(written.name) == written
    assert store.entries() == [written]
    assert (written.attempt, written.chips, written.state, written.reason) == (2, 64, State.PENDING, "a\nb: é")
    assert written.created == written.changed != ""
    assert store.entry("other-64c-11111111") is None


def test_an_environment_has_a_ledger_of_its_own(api: Api) -> None:
    assert Store(api, "test").add(entry())
    assert Store(api, "prod").entries() == []


def test_an_entry_is_added_once(api: Api) -> None:
    store = Store(api, "test")
    assert store.add(entry())
    assert store.add(entry(owner="another")) is None
    assert [found.owner for found in store.entries()] == [""]


def test_of_two_changes_of_one_version_one_counts(api: Api) -> None:
    store = Store(api, "test")
    first = store.add(entry())
    assert first is not None
    changed = store.change(first, state=State.HELD, uid="1")
    assert changed is not None
    assert (changed.state, changed.uid, changed.created) == (State.HELD, "1", first.created)
    assert store.change(first, state=State.HELD, uid="2") is None
    assert store.entry(first.name) == changed
    assert store.change(changed, state=State.LAUNCHED) is not None


def test_an_entry_that_was_removed_is_not_made_again(api: Api, control: str) -> None:
    store = Store(api, "test")
    first = store.add(entry())
    assert first is not None
    api.delete(core(control, "configmaps", first.name))
    assert store.change(first, state=State.HELD) is None
    assert store.entries() == []


def test_the_marker_moves_by_compare_and_swap(api: Api) -> None:
    store = Store(api, "test")
    assert store.read_marker() is None
    assert not store.move_marker("a", "b")
    assert store.move_marker(None, "a")
    assert store.read_marker() == "a"
    assert store.move_marker("a", "b")
    assert not store.move_marker("a", "c")
    assert store.read_marker() == "b"
    assert store.move_marker("a", "b"), "the same move again, as a retried request makes it"
    assert not store.move_marker(None, "c")
    assert Store(api, "prod").read_marker() is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [({"state": "gone"}, "'gone' is not a valid State"), ({"attempt": "x"}, "invalid literal for int()")],
)
def test_what_is_no_entry_is_named(api: Api, control: str, data: dict[str, str], reason: str) -> None:
    store = Store(api, "test")
    written = store.add(entry())
    assert written is not None
    api.merge(core(control, "configmaps", written.name), {"data": data})
    said = re.escape(f"ConfigMap {written.name} in {control} is no entry of the ledger: {reason}")
    with pytest.raises(LedgerError, match=f"^{said}"):
        store.entries()
    assert store.add(entry("other-64c-22222222"))
    entries, damaged = store.readable()
    assert ([found.name for found in entries], [found.name for found in damaged]) == (
        ["other-64c-22222222"],
        [written.name],
    )


def test_more_entries_than_a_page(api: Api, sandbox: Sandbox, control: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("renderer.cluster.api._PAGE", 2)
    store = Store(api, "test")
    names = [f"run-64c-{index:08d}" for index in range(5)]
    assert all(store.add(entry(name)) for name in names)
    assert [found.name for found in store.entries()] == names


def test_export_is_what_the_report_reads() -> None:
    found = entry(state=State.HELD, uid="u", reason="waits", commit="c", changed="2026-01-01T00:00:00Z")
    assert export([found]) == {
        "runs": [
            {
                "name": "run-64c-11111111",
                "experiment": "m/run",
                "environment": "test",
                "state": "held",
                "namespace": "default",
                "uid": "u",
                "reason": "waits",
                "commit": "c",
                "changed": "2026-01-01T00:00:00Z",
            }
        ]
    }
