"""Level 1 against MaxText's own loader, over configurations mutated from real ones, loaded as the pod would.

The rule for a cross-key refusal, which is level 2's: pydantic names no key for it, because it comes from a validator
of the whole configuration. Level 1 may accept those, and nothing else that the loader refuses.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
from mutations import BASES, Case, cases

from pod.derivations import DerivationError, arguments, derive
from renderer.maxtext_types import refusal
from renderer.maxtext_words import OVERWRITTEN, STRICTER, Refusal
from renderer.scalars import write
from renderer.schema import Snapshot, load

CASES = int(os.environ.get("AGREEMENT_CASES", "1000"))
SEED = int(os.environ.get("AGREEMENT_SEED", "20260601"))
VERSION = "0.2.5"

WITHOUT_TPU = ["compile_topology=tpu7x-128", "compile_topology_num_slices=1"]
CROSS_KEY = re.compile(r"\d+ validation errors? for \w+\n  ")
"""Where pydantic names a key, its line stands here instead of the indented message."""


@dataclass
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    accepted_too_much: list[str] = field(default_factory=list)
    refused_too_much: list[str] = field(default_factory=list)


def level_1(snapshot: Snapshot, config: dict[str, Any]) -> dict[str, Refusal]:
    """Return what level 1 refuses, by key."""
    refused = {}
    for key, value in config.items():
        entry = snapshot.keys.get(key)
        found = refusal(entry, value) if entry else Refusal("", "unknown key")
        if found:
            refused[key] = found
    return refused


def argv(snapshot: Snapshot, case: Case, path: Path) -> list[str]:
    """Write run.yml as the renderer does, and return what the pod gives the trainer. Raises DerivationError."""
    config = {key: value for key, value in case.config.items() if key != "logical_axis_rules"}
    lines = ["base_config: base.yml", *(f"{write(key)}: {write(value)}" for key, value in config.items())]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    rules = case.config.get("logical_axis_rules", [])
    facts = {"model": config["model_name"], "derivations": [], "logical_axis_rules": rules}
    defaults = {key: snapshot.base_default(key) for key in snapshot.keys}
    models = snapshot.models
    overrides = derive(config, facts, model_file=models.get(str(config["model_name"]), {}), defaults=defaults)
    return [str(path), *arguments(overrides), *WITHOUT_TPU, *other_rules(rules)]


def other_rules(rules: Any) -> list[str]:
    """Return the argument for rules that are no list, which the pod would never be given."""
    return [] if isinstance(rules, list) else [f"logical_axis_rules={write(rules)}"]


class Loader(Protocol):
    """The long-lived process that has MaxText loaded (conftest's `resolver`)."""

    def load(self, argv: list[str], **environment: str) -> dict[str, Any]: ...


def compare(tally: Tally, case: Case, refused: dict[str, Refusal], answer: dict[str, Any]) -> None:
    """Count one configuration, and note it where the two disagree without leave."""
    error = f"{answer.get('type')}: {answer.get('error')}"
    if answer["ok"]:
        unexplained = [key for key, found in refused.items() if not found.kind and key not in OVERWRITTEN]
        if unexplained:
            tally.refused_too_much.append(f"{case}: {refused[unexplained[0]].message}")
        for key, found in refused.items():
            tally.counts[f"refused by level 1 alone: {found.kind or 'overwritten'}"] += key not in unexplained
        tally.counts["accepted by both"] += not refused
    elif refused:
        tally.counts["refused by both"] += 1
    elif CROSS_KEY.match(str(answer.get("error"))):
        tally.counts["refused by the loader alone, cross-key (level 2)"] += 1
    else:
        tally.accepted_too_much.append(f"{case}: {error[:300]}")


def judge_all(loader: Loader, snapshot: Snapshot, folder: Path, count: int, seed: int) -> Tally:
    tally = Tally()
    for case in cases(count, seed, snapshot):
        refused = level_1(snapshot, case.config)
        try:
            answer = loader.load(argv(snapshot, case, folder / "run.yml"))
        except DerivationError as error:
            answer = {"ok": False, "type": "DerivationError", "error": str(error)}
        compare(tally, case, refused, answer)
    return tally


@pytest.mark.deep
def test_level_1_agrees_with_the_loader(resolver: Loader, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = judge_all(resolver, load(VERSION), tmp_path, CASES, SEED)
    with capsys.disabled():
        sys.stdout.write(f"\nagreement over {CASES} configurations, seed {SEED}:\n")
        sys.stdout.writelines(f"  {count:5} {what}\n" for what, count in sorted(tally.counts.items()))
        sys.stdout.write(f"  {len(tally.accepted_too_much):5} accepted by level 1, refused by the loader\n")
        sys.stdout.write(f"  {len(tally.refused_too_much):5} refused by level 1 without leave\n")
    assert tally.accepted_too_much == []
    assert tally.refused_too_much == []


@pytest.mark.deep
def test_the_base_configurations_load(resolver: Loader, tmp_path: Path) -> None:
    snapshot = load(VERSION)
    for base in BASES:
        assert level_1(snapshot, base) == {}
        answer = resolver.load(argv(snapshot, Case("none", "steps", base["steps"], base), tmp_path / "run.yml"))
        assert answer["ok"], answer


@pytest.mark.deep
def test_every_kind_of_the_table_is_one_the_loader_takes(resolver: Loader, tmp_path: Path) -> None:
    snapshot = load(VERSION)
    examples: dict[str, tuple[str, Any]] = {
        "quoted-number": ("steps", "8"),
        "whole-float": ("steps", 8.0),
        "quoted-boolean": ("enable_checkpointing", "true"),
        "number-for-boolean": ("enable_checkpointing", 0),
        "boolean-for-number": ("gradient_accumulation_steps", True),
        "scalar-for-list": ("train_data_columns", "text"),
        "none-text": ("metrics_file", "None"),
        "null-filled-in": ("dump_hlo_module_name", None),
        "unknown-member": ("dpo", {"betta": 0.2}),
        "open-type": ("logical_axis_rules", [["norm"]]),
        "overwritten": ("tokenizer_type", "huggingfase"),
    }
    assert set(examples) | {"not-finite", "missing-text"} == set(STRICTER)
    for kind, (key, value) in examples.items():
        config = BASES[0] | {key: value}
        refused = level_1(snapshot, config)
        assert [found.kind or "overwritten" for found in refused.values()] == [kind]
        answer = resolver.load(argv(snapshot, Case(kind, key, value, config), tmp_path / "run.yml"))
        assert answer["ok"], (kind, answer)
