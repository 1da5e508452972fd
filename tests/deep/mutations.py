"""Configurations with one mutation each, to be judged by level 1 and by MaxText's loader."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.manifest_yaml import load
from renderer.scalars import write
from renderer.schema import Snapshot

NOT_OURS = {
    "base_config",
    "compile_topology",
    "compile_topology_num_slices",
    "hardware",
    "override_model_config",
}
"""Keys the renderer or level 2 writes itself, and one that would start jax.distributed."""

SHIPPED = ("qwen3-0.6b/smoke-64", "deepseek3-671b/ds3-4k-bf16-mt025", "llama3.1-70b/llama70b-8k-bf16-mt025")
"""The experiments for the MaxText that judges."""


def _shipped(name: str) -> dict[str, Any]:
    """Return the run.yml of a shipped experiment, quieter."""
    path = Path(__file__).parents[2] / "rendered" / "test" / name / "run.yml"
    run = load(path.read_text("utf-8"))
    return {key: value for key, value in run.items() if key != "base_config"} | {"log_config": False}


BASES: tuple[dict[str, Any], ...] = tuple(map(_shipped, SHIPPED))

SCALARS = ["abc", "", 3, 3.5, 8.0, -1, 0, 1, 1e30, True, False, "8", "3.5", "true", "none", "None", "on"]
OTHERS: list[Any] = [[], [1], ["a"], [["a"]], [["norm", "fsdp"]], [None], {}, {"a": 1}]


@dataclass(frozen=True)
class Case:
    """One mutated configuration: `key` holds `value` because of a mutation of this `kind`."""

    kind: str
    key: str
    value: Any
    config: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind}: {self.config['model_name']}: {self.key}: {write(self.value)}"


def words(entry: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Yield the JSON Schema words with these names, those of every choice included."""
    for choice in (entry, *entry.get("anyOf", ())):
        yield from ((name, choice[name]) for name in names if name in choice)


def unknown(rng: random.Random, snapshot: Snapshot, base: dict[str, Any]) -> tuple[str, Any]:
    return f"{rng.choice(['output', 'enable', 'xla', 'launcher'])}_{rng.randrange(10**6)}", rng.choice(SCALARS)


def misspelt(rng: random.Random, snapshot: Snapshot, base: dict[str, Any]) -> tuple[str, Any]:
    key = rng.choice(sorted(snapshot.keys))
    at = rng.randrange(1, len(key))
    wrong = rng.choice([key[:at] + key[at + 1 :], key[:at] + key[at] + key[at:], key.upper(), f"{key} "])
    return (wrong, snapshot.base_default(key)) if wrong not in snapshot.keys else unknown(rng, snapshot, base)


def wrong_type(rng: random.Random, snapshot: Snapshot, base: dict[str, Any]) -> tuple[str, Any]:
    return rng.choice(sorted(snapshot.keys)), rng.choice(SCALARS + OTHERS)


def out_of_range(rng: random.Random, snapshot: Snapshot, base: dict[str, Any]) -> tuple[str, Any]:
    limits = ("minimum", "exclusiveMinimum", "maximum")
    key = rng.choice([key for key, entry in sorted(snapshot.keys.items()) if any(words(entry, *limits))])
    word, limit = rng.choice(list(words(snapshot.keys[key], *limits)))
    steps = [0, 1, 10**6, 0.5] if word == "maximum" else [0, -1, -(10**6), -0.5]
    return key, limit + rng.choice(steps)


def wrong_enum(rng: random.Random, snapshot: Snapshot, base: dict[str, Any]) -> tuple[str, Any]:
    key = rng.choice([key for key, entry in sorted(snapshot.keys.items()) if any(words(entry, "enum", "const"))])
    _, allowed = rng.choice(list(words(snapshot.keys[key], "enum", "const")))
    value = rng.choice(allowed if isinstance(allowed, list) else [allowed])
    return key, rng.choice([f"{value}x", f"{value}".upper(), f" {value}", 1, value, True, [value]])


def null(rng: random.Random, snapshot: Snapshot, base: dict[str, Any]) -> tuple[str, Any]:
    return rng.choice(sorted(snapshot.keys)), None


def model_conflict(rng: random.Random, snapshot: Snapshot, base: dict[str, Any]) -> tuple[str, Any]:
    key, theirs = rng.choice(sorted(snapshot.models[base["model_name"]].items()))
    if isinstance(theirs, bool):
        return key, not theirs
    if isinstance(theirs, int | float):
        return key, rng.choice([theirs * 2, theirs + 1, str(theirs), -theirs, None])
    return key, rng.choice([theirs, "abc", 1, [theirs], None])


MUTATIONS = (unknown, misspelt, wrong_type, out_of_range, wrong_enum, null, model_conflict)


def cases(count: int, seed: int, snapshot: Snapshot) -> Iterator[Case]:
    """Yield `count` mutated configurations, every kind about as often, the same for the same seed."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        base, mutation = rng.choice(BASES), MUTATIONS[made % len(MUTATIONS)]
        key, value = mutation(rng, snapshot, base)
        if key in NOT_OURS or key.strip() in NOT_OURS:
            continue
        made += 1
        yield Case(mutation.__name__, key, value, base | {key: value})
