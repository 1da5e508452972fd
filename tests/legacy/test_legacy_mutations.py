"""500 random single changes of the recordings: each one that means something is reported, none that does not is."""

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from legacy_content import ROOT, TODAY, Shipped

from renderer.legacy import recording, sources
from renderer.legacy.check import compare
from renderer.legacy.pairs import Pair
from renderer.problem import RefusedError
from renderer.schema import Snapshot

COUNT = 500
MAPS = ("maxtext_arguments", "libtpu_init_args", "environment", "launcher_options")


@dataclass(frozen=True)
class Mutation:
    """One change of a recording, and whether it changes what would be launched."""

    what: str
    semantic: bool
    data: Any


Mutate = Callable[[Any, random.Random, Snapshot], Mutation | None]


def other(value: str, chance: random.Random) -> str:
    """Return another value of the same look."""
    if value.lower() in {"true", "false"}:
        return "False" if value.lower() == "true" else "True"
    try:
        return str(int(value) + chance.choice([1, 2, 7]))
    except ValueError:
        return f"{value}x"


def spellings(key: str, value: str, snapshot: Snapshot) -> list[str]:
    """Return other texts of the value that MaxText reads as the same."""
    entry = snapshot.keys.get(key)
    if entry is None:
        return []
    if value in {"True", "False"}:
        return [value.lower(), value.upper(), "yes" if value == "True" else "no", f'"{value}"']
    if value.lstrip("-").isdecimal() and entry.get("type") == "integer":
        return [f"{value}.0", f'"{value}"']
    if entry.get("type") == "string" and value.isalnum() and not value.isdecimal():
        return [f'"{value}"', f"'{value}'", f"{value} # so"]
    return []


def drop(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    part = chance.choice(MAPS)
    key = chance.choice(list(data[part]))
    del data[part][key]
    return Mutation(f"drop {part}.{key}", True, data)


def change(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    part = chance.choice(MAPS)
    key = chance.choice(list(data[part]))
    data[part][key] = other(data[part][key], chance)
    return Mutation(f"change {part}.{key} to {data[part][key]}", True, data)


def change_field(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    key = chance.choice(["accelerator", "topology", "after_training"])
    data[key] = {"accelerator": "v5p", "topology": "2x4x4"}.get(key, data[key] + " ; true")
    return Mutation(f"change {key}", True, data)


def change_program(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    index = chance.randrange(1, len(data["program"]))
    data["program"][index] += "x"
    return Mutation(f"change program {index}", True, data)


def change_version(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    data["maxtext_pins_in_readme"] = [chance.choice(["0.2.5", "v9", "df1b359x"])]
    return Mutation("change version", True, data)


def add(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    part = chance.choice(MAPS[:3])
    unused = [key for key in snapshot.keys if key not in data[part] and not key.startswith("override")]
    key = chance.choice(unused) if part == "maxtext_arguments" else "xla_tpu_new_flag" if "lib" in part else "NEW"
    data[part][key] = "1"
    return Mutation(f"add {part}.{key}", True, data)


def add_command(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    data["pod_commands_before_training"].append("export X=1")
    return Mutation("add a command", True, data)


def reorder(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    part = chance.choice([*MAPS, ""])
    items = list((data[part] if part else data).items())
    chance.shuffle(items)
    if not part:
        return Mutation("reorder the whole", False, dict(items))
    data[part] = dict(items)
    return Mutation(f"reorder {part}", False, data)


def respell(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    arguments = data["maxtext_arguments"]
    found = {key: spellings(key, value, snapshot) for key, value in arguments.items()}
    key = chance.choice([key for key, texts in found.items() if texts])
    arguments[key] = chance.choice(found[key])
    return Mutation(f"respell {key} as {arguments[key]}", False, data)


def retype(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    """Give a number or boolean another type that MaxText does not take for the same."""
    arguments = data["maxtext_arguments"]
    keys = [key for key, value in arguments.items() if value.lstrip("-").replace(".", "").isdecimal()]
    key = chance.choice(keys)
    arguments[key] = chance.choice([f"[{arguments[key]}]", "{a: 1}", "null", "text"])
    return Mutation(f"retype {key} as {arguments[key]}", True, data)


def label(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    data["recipe"] += "-renamed"
    return Mutation("rename the recipe", False, data)


RECIPE: tuple[Mutate, ...] = (drop, drop, change, change, change_field, change_program, change_version, add, add)
RECIPE += (add_command, reorder, reorder, respell, respell, retype, label)


def argument_drop(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    """A dropped argument whose value is MaxText's own default, and which we leave to MaxText too, changes nothing."""
    words = data["pod"]["trainer"]
    index = chance.randrange(4, len(words))
    key = words.pop(index).partition("=")[0]
    return Mutation(f"drop {key}", key not in DEFAULTS, data)


def argument_change(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    words = data["pod"]["trainer"]
    index = chance.randrange(4, len(words))
    key, _, value = words[index].partition("=")
    if key == "run_name":
        return None  # the launcher's own name, of which only the beginning is compared
    words[index] = f"{key}={other(value, chance)}"
    return Mutation(f"change {words[index]}", True, data)


def arguments_reorder(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    words = data["pod"]["trainer"]
    tail = words[4:]
    chance.shuffle(tail)
    words[4:] = tail
    return Mutation("reorder arguments", False, data)


def manifest_change(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    places = list(_scalars(data["objects"][-1]["spec"]))
    holder, key = chance.choice([place for place in places if place[1] in COMPARED])
    value = holder[key]
    holder[key] = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}x"
    return Mutation(f"change {key} to {holder[key]}", True, data)


def manifest_reorder(data: Any, chance: random.Random, snapshot: Snapshot) -> Mutation | None:
    pod = data["objects"][-1]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    chance.shuffle(pod["volumes"])
    chance.shuffle(pod["containers"][0]["volumeMounts"])
    chance.shuffle(pod["containers"][0]["env"])
    return Mutation("reorder volumes, mounts and variables", False, data)


RECORDING: tuple[Mutate, ...] = (argument_drop, argument_change, arguments_reorder, manifest_change, manifest_reorder)
COMPARED = frozenset(
    {"maxRestarts", "replicas", "completions", "parallelism", "backoffLimit", "image", "mountPath", "claimName"}
    | {"cloud.google.com/gke-tpu-topology", "cloud.google.com/gke-tpu-accelerator", "google.com/tpu"}
    | {"terminationGracePeriodSeconds"}
)
DEFAULTS = frozenset(
    {"adam_b1", "adam_b2", "checkpoint_period", "data_shuffle_seed", "dtype", "enable_tensorboard", "eod_mask_loss"}
    | {"eval_steps", "learning_rate", "gradient_clipping_threshold", "ici_fsdp_transpose_parallelism", "weight_dtype"}
    | {"ici_pipeline_parallelism", "ici_sequence_parallelism", "init_weights_seed", "learning_rate_final_fraction"}
    | {"log_period", "monitor_goodput", "muon_beta", "muon_weight_decay", "packing", "profiler_steps", "scan_layers"}
    | {"shard_exp_on_fsdp", "skip_first_n_steps_for_profiler"}
)


def _scalars(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, dict | list):
            yield from _scalars(item)
        else:
            yield value, key


def reported(shipped: Shipped, pair: Pair, data: Any) -> bool:
    mine = shipped.ours(pair)
    try:
        recorded = sources.from_data(data, pair.recording, pair.version, mine.configuration.snapshot)
    except RefusedError:
        return True
    return not compare(pair, recorded, mine, TODAY).equal


@pytest.mark.parametrize("seed", [20260729])
def test_every_change_that_means_something_is_reported(shipped: Shipped, seed: int) -> None:
    chance = random.Random(seed)
    texts = {
        pair: (ROOT / "tests/legacy" / pair.recording).read_text(encoding="utf-8") for pair in shipped.pairs.values()
    }
    originals = {pair: recording.load(text) for pair, text in texts.items()}
    wrong, made = [], Counter[str]()
    while made.total() < COUNT:
        pair = chance.choice(list(originals))
        data = copy.deepcopy(originals[pair])
        mutate = chance.choice(RECIPE if "recipe" in data else RECORDING)
        mutation = mutate(data, chance, shipped.ours(pair).configuration.snapshot)
        if mutation is None or json.dumps(mutation.data) == json.dumps(originals[pair]):
            continue
        if pair.experiment == "ling3-flash/lr3e4-fineweb" and mutation.what in {
            "drop learning_rate",
            "drop eod_mask_loss",
        }:
            continue  # defaults in the other recording, values of its own in this one
        made["semantic" if mutation.semantic else "not semantic"] += 1
        if reported(shipped, pair, mutation.data) != mutation.semantic:
            wrong.append(f"{pair.experiment}: {mutation.what}: {'not reported' if mutation.semantic else 'reported'}")
    assert not wrong
    assert made["semantic"] > 300
    assert made["not semantic"] > 75
