"""The renderer with a wrong launch protocol, to see that the tests find it: python -m tests.cluster.mutants NAME ..."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from renderer.cli import main
from renderer.cluster import lease
from renderer.cluster.api import jobsets
from renderer.cluster.launch import Launch, Launcher
from renderer.cluster.ledger import Entry, State
from tests.cluster.hasty import hurry

_RIGHT_HOLD, _RIGHT_RELEASE = Launcher._hold, Launcher._release


def mutated(name: str) -> tuple[str, ...]:
    """Return what to run Python with for a mutation of this name."""
    assert name in MUTATIONS, name
    return ("-m", "tests.cluster.mutants", name)


def _create_again(self: Launcher, entry: Entry, launch: Launch, *, resumed: bool) -> Entry:
    if lease.find_jobset(self._api, entry) is None:
        again = self._store.change(entry, state=State.PENDING, uid="")
        assert again
        return again
    return _RIGHT_RELEASE(self, entry, launch, resumed=resumed)


def _release_first(self: Launcher, entry: Entry, launch: Launch) -> Entry:
    create = self._create

    def create_and_release(*arguments: object) -> str:
        uid = create(launch.objects)
        self._api.merge(jobsets(entry.namespace, entry.name), {"spec": {"suspend": False}})
        return uid

    self._create = create_and_release  # type: ignore[method-assign, assignment]
    return _RIGHT_HOLD(self, entry, launch)


def _record_first(self: Launcher, entry: Entry, launch: Launch, *, resumed: bool) -> Entry:
    launched = self._store.change(entry, state=State.LAUNCHED)
    assert launched
    self._api.merge(jobsets(entry.namespace, entry.name), {"spec": {"suspend": False}})
    return launched


MUTATIONS: Mapping[str, tuple[str, Callable[..., object]]] = {
    "creates again what is held and gone": ("_release", _create_again),
    "releases before recording": ("_hold", _release_first),
    "records before releasing": ("_release", _record_first),
}


if __name__ == "__main__":
    hurry()
    setattr(Launcher, *MUTATIONS[sys.argv.pop(1)])
    sys.exit(main())
