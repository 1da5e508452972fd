"""Any one value of a preset changed: the check names exactly that key."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from legacy_content import ROOT, TODAY, Shipped

from renderer.configure import Configurator
from renderer.layers import Layer, Repository, Selection
from renderer.legacy import ours
from renderer.legacy.check import compare
from renderer.legacy.import_presets import PLACEHOLDER
from renderer.problem import RefusedError
from renderer.yaml_io import Node

NOTHING: frozenset[str] = frozenset()
DERIVED_FROM = {
    "per_device_batch_size": {"maxtext.mlpwi_0", "maxtext.mlpwi_1", "maxtext.moe_topk_indices"},
    "remat_policy": {"maxtext.mlpwi_0", "maxtext.mlpwi_1", "maxtext.moe_topk_indices"},
    "steps": {"maxtext.warmup_steps_fraction", "maxtext.learning_rate_schedule_steps"},
}
"""What D1 and D2 make of a key, besides the key itself."""
DEPLOY = {
    "ACCELERATOR": {"job.accelerator"},
    "MAXTEXT_VERSION": {"program.version"},
    "IMAGE_REPOSITORY": {"job.image"},
    "GIT_REPOSITORY": {"job.repository"},
    "GITHUB_TOKEN_SECRET": {"job.secret"},
    "K8S_NAMESPACE": {"job.namespace"},
    "K8S_MAX_RESTARTS": {"job.max_restarts"},
    "GCS_BUCKET": {"job.bucket"},
    "PRIORITY_CLASS": {"job.priority"},
    "WARMUP_ITERS": {"maxtext.warmup_steps_fraction", "maxtext.learning_rate_schedule_steps"},
    "LOAD_PARAMETERS_PATH_SCANNED": {"maxtext.load_parameters_path"},
    "HF_OUTPUT_DIRECTORY": {"job.watcher.HF_OUTPUT_DIRECTORY"},
    "HF_WATCHER_IMAGE": {"job.watcher.image"},
    "HF_SERVICE_ACCOUNT": {"job.watcher.service_account"},
    "ENABLE_HF_CONVERSION": {"job.watcher.image"},
}
"""The path that names a deploy key; the first of several where one is enough."""
MAPS = {"LIBTPU_INIT_ARGS": "flags", "ENV": "env", "VOLUMES": "job.volumes"}


def other(value: Any, key: str) -> Any:
    """Return another value that the checks let pass as far as they can."""
    if key == "MAXTEXT_VERSION":
        return {"0.2.5": "df1b359", "a0fceb5": "cf051eb"}[value]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return [*value, "x"] if isinstance(value, list) else f"{value}x"


def leaves(layer: Layer) -> Iterator[tuple[str, str, Node]]:
    """Yield (namespace, dotted key, node) of every value in a preset file."""
    for namespace, entries in (("deploy", layer.deploy), ("maxtext", layer.maxtext)):
        for key, node in entries.items():
            if isinstance(node.value, dict):
                for name, child in node.value.items():
                    yield namespace, f"{key}/{name}", child
            else:
                yield namespace, key, node


def expected(namespace: str, key: str) -> tuple[set[str], set[str]]:
    """Return the paths of which one must be named, and all that may be."""
    if namespace == "maxtext":
        return {f"maxtext.{key}"}, {f"maxtext.{key}"} | DERIVED_FROM.get(key, set())
    name, _, entry = key.partition("/")
    if entry:
        return {f"{MAPS[name]}.{entry}"}, {f"{MAPS[name]}.{entry}"}
    may = DEPLOY.get(name, set())
    if name == "ENABLE_HF_CONVERSION":
        may = {f"job.watcher.{field}" for field in ("image", "service_account", *_WATCHER)}
    return DEPLOY.get(name, set()), may


_WATCHER = ("HF_OUTPUT_DIRECTORY", "HF_INTERVAL_SECONDS", "MODEL_NAME")
# What an experiment's own mode or size leaves without effect, or refuses before anything is compared.
WITHOUT_EFFECT = {"LOAD_PARAMETERS_PATH_UNSCANNED", "DERIVATIONS"}


@pytest.mark.parametrize(
    "experiment",
    ["ling3-flash/align-smoke-64", "ling3-flash/lr3e4-fineweb", "llama3.1-70b/llama70b-128k-bf16-256"],
)
def test_the_check_names_exactly_the_changed_key(shipped: Shipped, experiment: str) -> None:
    pair, repository = shipped.pairs[experiment], Repository(ROOT)
    recorded, path = shipped.recorded(pair), ROOT / f"experiments/{experiment}.yml"
    before = ours.read(Configurator(repository), path)
    selection = before.configuration.launch.selection
    named = 0
    for namespace, key, node in _values(repository, selection):
        kept, node.value = node.value, other(node.value, key)
        try:
            found = _compare(repository, path, pair, recorded)
        finally:
            node.value = kept
        if found is None:
            continue  # refused: an impossible topology, or a value that the experiment replaces
        must, may = expected(namespace, key)
        if key == "MAXTEXT_VERSION":  # another MaxText has other defaults, so more may be named
            assert must <= found
            continue
        assert found <= may, (key, found)
        if must and not found & must:
            assert _has_no_effect(repository, path, node, key, before, recorded.resolved.states), key
        named += bool(found)
    assert named > 25


def _values(repository: Repository, selection: Selection) -> list[tuple[str, str, Node]]:
    files = repository.preset_files(selection)
    layers = [repository.preset(name, file, []) for name, file in files.items()]
    return [item for layer in layers for item in leaves(layer) if item[1] not in WITHOUT_EFFECT | {"DATASETS_YAML"}]


def _compare(repository: Repository, path: Path, pair: Any, recorded: Any) -> set[str] | None:
    """Return the paths that are named once the value is changed, also those whose waiver no longer fits."""
    try:
        mine = ours.resolve(_configuration(repository, path))
    except (RefusedError, ValueError, KeyError):
        return None
    outcome = compare(pair, recorded, mine, TODAY)
    return {found.path for found in outcome.differences}


def _configuration(repository: Repository, path: Path) -> Any:
    problems: list[Any] = []
    configurator = Configurator(repository)
    configuration = configurator.configure(configurator.read(path, problems), problems)
    if configuration is None:
        raise RefusedError(problems)
    return configuration


def _has_no_effect(
    repository: Repository, path: Path, node: Node, key: str, before: ours.Ours, states: frozenset[str]
) -> bool:
    """Whether nothing of what the recording can say changes: a layer replaces the value, or the mode ignores it."""
    kept, node.value = node.value, other(node.value, key)
    try:
        after = ours.resolve(_configuration(repository, path)).resolved
    finally:
        node.value = kept
    return after.values(states) == before.resolved.values(states)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("X_OWNER_X", True),
        ("gs://X_A_X/b", True),
        ("AX_B_X", True),
        ("X_X_X", True),
        ("X__X", False),
        ("X_A", False),
        ("<your bucket>", True),
        ("a < b > c", False),
    ],
)
def test_what_a_recording_leaves_open(text: str, found: bool) -> None:
    assert bool(PLACEHOLDER.search(text)) is found


@pytest.mark.parametrize("part", ["X_U", "X_", "_X", "<a"])
def test_a_placeholder_is_found_in_time_in_proportion_to_the_text(part: str) -> None:
    started = time.process_time()
    PLACEHOLDER.search(part * 50_000)
    assert time.process_time() - started < 2
