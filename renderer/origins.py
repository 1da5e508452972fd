"""Where values come from, in words: the winner of each key and everything it replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from renderer.configure import Configuration
from renderer.key_types import Key, Kind
from renderer.keys import CHECKS_KEYS, DEPLOY_KEYS, LAUNCH_KEYS
from renderer.location import Location
from renderer.merge import Leaf, Tree, history, leaves
from renderer.mesh import maxtext_model
from renderer.scalars import write
from renderer.schema import nearest


@dataclass(frozen=True, slots=True)
class Assignment:
    """One assignment of a key. `role` is wins, removes, replaced, or default."""

    path: str
    place: Location
    layer: str
    value: str
    role: str

    def __str__(self) -> str:
        why = self.role if self.role == self.layer else f"{self.layer}, {self.role}"
        return f"{self.place.in_line}: {self.path}: {self.value} ({why})"


def assignments(configuration: Configuration, namespace: str, key: str) -> Iterator[Assignment]:
    """Yield every assignment of a dotted key, each leaf's winning one first, MaxText's own value last."""
    tree: Tree = configuration.deploy if namespace == "deploy" else configuration.maxtext
    item = _find(tree, key)
    if isinstance(item, dict):
        for path, leaf in leaves(item, key):
            yield from _one(f"{namespace}.{path}", leaf)
    elif item is not None:
        yield from _one(f"{namespace}.{key}", item)
    if namespace == "maxtext":
        yield from _maxtext_own(configuration, key, assigned=item is not None)


def _find(tree: Tree, key: str) -> Leaf | Tree | None:
    item: Leaf | Tree | None = tree
    for part in key.split("."):
        item = item.get(part) if isinstance(item, dict) else None
    return item


def _one(path: str, leaf: Leaf) -> Iterator[Assignment]:
    for rank, old in enumerate(history(leaf)):
        role = "replaced" if rank else "removes" if old.removed else "wins"
        value = "!remove" if old.removed else write(old.node.value)
        yield Assignment(path, old.node.key_at, old.layer.name, value, role)


def _maxtext_own(configuration: Configuration, key: str, *, assigned: bool) -> Iterator[Assignment]:
    """The model file and base.yml, as the snapshot knows them."""
    snapshot = configuration.snapshot
    model = maxtext_model(configuration)
    if key in snapshot.models.get(model, {}):
        role = "replaced, by D6" if assigned else "wins"
        place = Location(f"MaxText {snapshot.version} configs/models/{model}.yml")
        yield Assignment(f"maxtext.{key}", place, "model file", write(snapshot.models[model][key]), role)
    if key in snapshot.keys:
        place = Location(f"MaxText {snapshot.version} base.yml")
        yield Assignment(f"maxtext.{key}", place, "default", write(snapshot.base_default(key)), "default")


def table_key(namespace: str, key: str) -> Key | None:
    """Return what the table of `launch:`, `deploy:` or `checks:` says of a key, or of the mapping that it lies in."""
    table = _TABLES.get(namespace, {})
    found = table.get(key.partition(".")[0])
    return found if found and (found.name == key or found.kind is Kind.TEXT_MAP) else None


def table_default(namespace: str, key: str) -> Iterator[Assignment]:
    """Yield the value that a key of `launch:`, `deploy:` or `checks:` has where no layer sets it, if it has one."""
    found = table_key(namespace, key)
    if found and found.default is not None:
        place = Location("renderer (docs/keys.md)")
        yield Assignment(f"{namespace}.{key}", place, "default", write(found.default), "default")


_TABLES: Mapping[str, Mapping[str, Key]] = {"launch": LAUNCH_KEYS, "deploy": DEPLOY_KEYS, "checks": CHECKS_KEYS}


def known_keys(configuration: Configuration, key: str) -> list[str]:
    """Return the keys that are spelt like `key`: those the run sets, and those of the tables."""
    names = [f"{namespace}.{name}" for namespace, table in _TABLES.items() for name in table]
    names += [f"deploy.{path}" for path, _ in leaves(configuration.deploy)]
    names += [f"maxtext.{path}" for path, _ in leaves(configuration.maxtext)]
    found = (nearest(spelt, dict.fromkeys(names)) for spelt in (key, f"maxtext.{key}", f"deploy.{key}"))
    return next(filter(None, found), [])
