"""A model's own additions to MaxText's schema: presets/<model>/extensions.yml, for forks."""

from __future__ import annotations

from typing import Any

from renderer.layers import Repository
from renderer.location import Location
from renderer.problem import Problem
from renderer.schema import Snapshot, UnknownVersionError, load, with_extensions
from renderer.yaml_io import plain, read_file


class Schemas:
    """The snapshot each (model, MaxText version) is checked against, read once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[tuple[str, str], tuple[Snapshot, list[Problem]]] = {}

    def snapshot(self, model: str, version: str, place: Location, problems: list[Problem]) -> Snapshot | None:
        """Return the snapshot with the model's extensions; an unknown version is a problem at `place`."""
        if (model, version) not in self._known:
            try:
                plain_snapshot = load(version)
            except UnknownVersionError as error:
                problems.append(Problem("maxtext-version", place, "deploy.MAXTEXT_VERSION", str(error)))
                return None
            found: list[Problem] = []
            self._known[model, version] = self._extend(model, plain_snapshot, found), found
        snapshot, found = self._known[model, version]
        problems.extend(found)
        return snapshot

    def has_extensions(self, model: str) -> bool:
        """Return whether the model runs on a fork with keys of its own."""
        return (self._repository.root / self._file(model)).is_file()

    def _extend(self, model: str, snapshot: Snapshot, problems: list[Problem]) -> Snapshot:
        if not self.has_extensions(model):
            return snapshot
        file = self._file(model)
        data: Any = plain(read_file(self._repository.root / file, file, problems))
        unknown = [key for key in data if key not in {"keys", "enums"}]
        problems.extend(Problem("extension", Location(file), key, "unknown: write keys: or enums:") for key in unknown)
        try:
            return with_extensions(snapshot, data.get("keys") or {}, data.get("enums") or {})
        except (ValueError, TypeError, AttributeError) as error:
            problems.append(Problem("extension", Location(file), "", str(error)))
            return snapshot

    def _file(self, model: str) -> str:
        return f"presets/{model}/extensions.yml"
