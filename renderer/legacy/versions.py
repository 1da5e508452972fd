"""Which schema snapshot a recording is read with."""

from __future__ import annotations

from functools import cache

from renderer.location import Location
from renderer.problem import refuse
from renderer.schema import Snapshot, UnknownVersionError, load, trainer_module, versions


def snapshot_of(pin: str, source: str, extended: Snapshot | None = None) -> Snapshot:
    """Return the snapshot that describes the MaxText called `pin`: `extended`, a fork's, where it is of that version.

    Raises RefusedError for an unknown pin.
    """
    try:
        snapshot = load(pin)
    except UnknownVersionError as error:
        hint = "say which of them to read it with: --maxtext-version, or version: in checks.yml"
        refuse("legacy-version", Location(source), str(error), hint=hint)
    return extended if extended and extended.version == snapshot.version else snapshot


def newest_that_knows(keys: frozenset[str], module: str) -> str:
    """Return the newest snapshot that is started as `module` and knows all of `keys`, else the one that knows most."""
    started = [name for name in versions() if trainer_module(name) == module]
    return max(reversed(started or versions()), key=lambda name: len(keys & _keys(name)))


@cache
def _keys(name: str) -> frozenset[str]:
    return frozenset(load(name).keys)
