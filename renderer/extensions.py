"""A model's own additions to MaxText's schema: presets/<model>/extensions.yml, for forks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from renderer.content_files import exists, read_optional
from renderer.layers import Repository
from renderer.location import Location
from renderer.problem import Problem
from renderer.scalars import is_text
from renderer.schema import Entry, Snapshot, UnknownVersionError, load, with_extensions
from renderer.yaml_io import Node, plain


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
        return exists(self._repository.root / self._file(model))

    def _extend(self, model: str, snapshot: Snapshot, problems: list[Problem]) -> Snapshot:
        file = self._file(model)
        node = read_optional(self._repository.root, file, problems)
        if node is None:
            return snapshot
        unknown = [key for key in node.value if key not in {"keys", "enums"}]
        problems.extend(Problem("extension", Location(file), key, "unknown: write keys: or enums:") for key in unknown)
        keys = dict(_entries(node, "keys", dict, "a mapping such as {type: string}", problems))
        enums = dict(_entries(node, "enums", list, "a list of further values", problems))
        named = {key: plain(item) for key, item in keys.items() if _is_key(key, item, problems)}
        try:
            return with_extensions(snapshot, cast("dict[str, Entry]", named), {k: v.value for k, v in enums.items()})
        except (ValueError, TypeError, AttributeError) as error:
            problems.append(Problem("extension", Location(file), "", str(error)))
            return snapshot

    def _file(self, model: str) -> str:
        return f"presets/{model}/extensions.yml"


_KEY = re.compile(r"[a-z][a-z0-9_]*")


def _entries(
    root: Node, section: str, kind: type, expected: str, problems: list[Problem]
) -> Iterator[tuple[str, Node]]:
    """Yield what stands under `section` and is of the right kind; append the rest to `problems`."""
    node = root.value.get(section)
    if node is None or node.value is None:
        return
    if not isinstance(node.value, dict):
        problems.append(Problem("extension", node.at, section, "must be a mapping of keys"))
        return
    for key, item in node.value.items():
        if isinstance(item.value, kind):
            yield key, item
        else:
            problems.append(Problem("extension", item.at, f"{section}.{key}", f"must be {expected}"))


def _is_key(key: str, node: Node, problems: list[Problem]) -> bool:
    """Return whether every reader takes `key` for a key: it is written into run.yml as it is."""
    if _KEY.fullmatch(key) and is_text(key):
        return True
    message = "is a boolean or null to some readers: the fork has to name it otherwise"
    if not _KEY.fullmatch(key):
        message = "is not the name of a key: small letters, digits and _, a letter first"
    problems.append(Problem("extension", node.key_at, f"keys.{key}", message))
    return False
