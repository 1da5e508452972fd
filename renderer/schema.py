"""What each MaxText version accepts (keys, types, limits, defaults, model files), as shipped snapshots."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from renderer.schema_shapes import with_numbers, with_shapes

FOLDER = Path(__file__).with_name("schemas")

ORDER = ("v1.5.0", "a0fceb5", "cf051eb", "df1b359", "0.2.5")
"""The shipped snapshots, oldest first. A snapshot that is not named here counts as newer than these."""

PINS = {
    "maxtext-tutorial-v1.5.0": "v1.5.0",
    "98a3d4c": "v1.5.0",
    "maxtext-tutorial-v1.1.0-1109-gcf051eb03": "cf051eb",
}
"""The tags and commits the public recipes pin, and the snapshot of each (98a3d4c is identical to v1.5.0)."""

RENAMES = {
    "fsdp_shard_on_exp": "shard_exp_on_fsdp",
    "cosine_learning_rate_final_fraction": "learning_rate_final_fraction",
    "index_head_dim": "indexer_head_dim",
    "index_n_heads": "indexer_n_heads",
    "index_topk": "indexer_topk",
    "use_sparse_indexer": "use_indexer",
}
"""Keys that went on under another name with the same type and default, where MaxText itself shows it: the
same words about it, or the same line of a model file, before and after."""

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
WORDS = (
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maximum",
    "minimum",
    "type",
)
"""What the entry of a fork's key may say."""

_NULL_TEXTS = ("None", "none", "NONE")
_RELEASE = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")

Entry = Mapping[str, Any]
"""One key: JSON Schema words (type, anyOf, enum, const, minimum, exclusiveMinimum, maximum, items), the
`default` of the config class, and `base_yml` where base.yml sets another value."""


class UnknownVersionError(ValueError):
    """No snapshot describes this MaxText version; the text lists the known ones."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one MaxText version accepts. Read only: it is shared by all callers."""

    version: str
    keys: Mapping[str, Entry]
    models: Mapping[str, Mapping[str, Any]]

    def base_default(self, key: str) -> Any:
        """Return what MaxText uses for `key` when nothing sets it: base.yml's value, else the class default.

        Raises KeyError for an unknown key.
        """
        entry = self.keys[key]
        value = entry["base_yml"] if "base_yml" in entry else entry.get("default")
        return None if isinstance(value, str) and value in _NULL_TEXTS and is_nullable(entry) else value


def is_nullable(entry: Entry) -> bool:
    """Return whether the key takes null."""
    return any(choice.get("type") == "null" for choice in entry.get("anyOf", ()))


def versions() -> tuple[str, ...]:
    """Return the names of all snapshots, oldest first."""
    names = {path.stem for path in FOLDER.glob("*.json")}
    return (*(name for name in ORDER if name in names), *sorted(names.difference(ORDER)))


def load(version: str) -> Snapshot:
    """Return the snapshot that describes `version`: a snapshot's name, or a tag or commit that a recipe pins.

    Raises UnknownVersionError, a ValueError that lists the known versions.
    """
    return _load(PINS.get(version, version))


@cache
def _load(name: str) -> Snapshot:
    known = versions()
    if name not in known:
        raise UnknownVersionError(f"unknown MaxText version {name}; known: {', '.join((*known, *PINS))}")
    data = json.loads((FOLDER / f"{name}.json").read_bytes())
    keys = with_shapes(data["keys"], data.get("objects", {}), shipped=name in ORDER)
    return Snapshot(data["version"], keys, with_numbers(data["models"], keys))


def with_extensions(snapshot: Snapshot, keys: Mapping[str, Entry], enums: Mapping[str, Iterable[Any]]) -> Snapshot:
    """Return `snapshot` with the further `keys` of a fork and further values in the `enums` of keys it has.

    Raises ValueError where an extension redefines a key, says nothing about its type, or adds values to a key
    that is not an enum.
    """
    merged: dict[str, Entry] = dict(snapshot.keys)
    for key, entry in keys.items():
        if key in merged:
            raise ValueError(f"{key} is a key of MaxText {snapshot.version} already")
        merged[key] = _extension(key, entry)
    for key, values in enums.items():
        if key not in merged:
            raise ValueError(f"{key} is not a key of MaxText {snapshot.version}")
        merged[key] = _with_values(key, merged[key], list(values))
    return replace(snapshot, keys=merged)


def _extension(key: str, entry: Entry) -> Entry:
    """Return the entry of a fork's key: a misspelt word in it would accept anything."""
    kind = entry.get("type")
    if "enum" not in entry and "anyOf" not in entry and kind not in TYPES:
        raise ValueError(f"{key} needs a type, one of {', '.join(TYPES)}, or an enum")
    unknown = sorted(set(entry).difference(WORDS))
    if unknown:
        raise ValueError(f"{key}: unknown {', '.join(unknown)}; known: {', '.join(WORDS)}")
    return entry


def _with_values(key: str, entry: Entry, values: list[Any]) -> Entry:
    if "enum" in entry:
        return {**entry, "enum": [*entry["enum"], *(value for value in values if value not in entry["enum"])]}
    choices = entry.get("anyOf", ())
    if not any("enum" in choice for choice in choices):
        raise ValueError(f"{key} has no list of values to extend")
    return {
        **entry,
        "anyOf": [_with_values(key, choice, values) if "enum" in choice else choice for choice in choices],
    }


def known_elsewhere(snapshot: Snapshot, key: str) -> str:
    """Return what other versions say about a `key` that `snapshot` lacks, or nothing.

    It is `renamed to Y`, `named X in this version`, `known from version V` or `known until version V`.
    """
    renamed = RENAMES.get(key)
    if renamed in snapshot.keys:
        return f"renamed to {renamed}"
    former = next((old for old, new in RENAMES.items() if new == key and old in snapshot.keys), "")
    if former:
        return f"named {former} in this version"
    having = [name for name in versions() if key in load(name).keys]
    if not having:
        return ""
    order = versions()
    here = order.index(snapshot.version) if snapshot.version in order else len(order)
    later = [name for name in having if order.index(name) > here]
    return f"known from version {later[0]}" if later else f"known until version {having[-1]}"


def nearest(word: str, candidates: Iterable[str], n: int = 3) -> list[str]:
    """Return at most `n` candidates spelt like `word`, the nearest first."""
    return difflib.get_close_matches(word, list(candidates), n)


def trainer_module(version: str) -> str:
    """Return the module that `python -m` starts to train with this version (as the public recipes do)."""
    return "MaxText.train" if PINS.get(version, version) == "v1.5.0" else "maxtext.trainers.pre_train.train"


def deps_command(version: str) -> str:
    """Return the command of this version that installs what its package leaves out (0.2.5 renamed it)."""
    name = PINS.get(version, version)
    older = name in ORDER and ORDER.index(name) < ORDER.index("0.2.5")
    return "install_maxtext_tpu_github_deps" if older else "install_tpu_pre_train_extra_deps"


def is_released(version: str) -> bool:
    """Return whether `version` names a release on PyPI, not a tag or commit."""
    return _RELEASE.fullmatch(version) is not None
