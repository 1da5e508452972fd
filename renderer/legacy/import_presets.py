"""The layers an import stands on: which presets a recording belongs to, and new ones where there are none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.accelerators import chips_of, find_slice
from renderer.layers import NAME, Repository
from renderer.legacy import import_text
from renderer.legacy.resolved import ALLOW_OVERRIDES, Resolved
from renderer.location import Location
from renderer.problem import refuse
from renderer.schema import load
from renderer.yaml_io import plain, read_file

PLACEHOLDER = re.compile(r"(?<![A-Z0-9_])(?>[A-Z0-9_]*?X_)[A-Z0-9_]+_X|<[A-Za-z][^<>]*>")
"""What a recording holds in place of a value that belongs to whoever runs it."""
NOT_WRITTEN = frozenset({"model_name", "run_name", "base_output_directory", ALLOW_OVERRIDES})
"""Keys that no preset of an import holds: the launch decides them."""

_TOPOLOGY = re.compile(r"(?:ici|dcn)_\w+_parallelism|allow_split_physical_axes|per_device_batch_size|sa_block_\w+")
_TOPOLOGY_KEYS = frozenset({"gradient_accumulation_steps", "max_target_length"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where an import goes: the preset model, the size, the contexts to try, and preset files to make first."""

    model: str
    chips: int
    contexts: tuple[str, ...]
    new_files: Mapping[str, bytes]


def find(recorded: Resolved, repository: Repository) -> Place:
    """Return where a recording belongs. Raises RefusedError if it says no model or no topology that exists."""
    wanted = recorded.maxtext.get("model_name")
    topology, accelerator = str(recorded.job.get("topology")), str(recorded.job.get("accelerator", "tpu7x"))
    found = find_slice(accelerator, topology)
    if found is None:
        hint = "say which: --topology, such as 4x4x4"
        refuse("import-topology", Location(recorded.source), f"no topology {topology} of {accelerator}", hint=hint)
    if not isinstance(wanted, str) or not re.fullmatch(NAME, wanted):
        refuse("import-model", Location(recorded.source), "names no model: model_name is missing")
    model = _preset(wanted, repository)
    chips, context = chips_of(topology) or 0, _context(recorded)
    if model is None:
        return Place(wanted, chips, (context,), _presets(wanted, chips, context, recorded) | _unknown(wanted, recorded))
    contexts = tuple(name for size, name in repository.topologies(model) if size == chips)
    if contexts:
        return Place(model, chips, contexts, {})
    layer = repository.preset("model", f"presets/{model}/model.yml", [])
    pinned = "MAXTEXT_VERSION" in layer.deploy
    return Place(model, chips, (context,), _topology(model, chips, context, recorded, version=not pinned))


def _unknown(model: str, recorded: Resolved) -> dict[str, bytes]:
    """Return the extensions of a model that its MaxText does not have: it must be a fork's."""
    if model in load(recorded.version).models:
        return {}
    head = f"{model}: no MaxText {recorded.version} that is public has this model, so it is a fork's."
    return {f"presets/{model}/extensions.yml": import_text.file(head, {"enums": {"model_name": [model]}}, {})}


def _preset(wanted: str, repository: Repository) -> str | None:
    """Return the preset of the model called `wanted` in MaxText: of that name, or one that uses it, or its family."""
    models = repository.models()
    if wanted in models:
        return wanted
    for model in models:
        if any(
            _uses(repository, path, wanted) for path in sorted((repository.root / "presets" / model).rglob("*.yml"))
        ):
            return model
    families = [model for model in models if wanted.startswith(f"{model}-")]
    return max(families, key=len, default=None)


def _uses(repository: Repository, path: Any, wanted: str) -> bool:
    data: Any = plain(read_file(path, repository.label(path), []))
    deploy = data.get("deploy") if isinstance(data, dict) else None
    return isinstance(deploy, dict) and deploy.get("MAXTEXT_MODEL") == wanted


def _context(recorded: Resolved) -> str:
    length = recorded.maxtext.get("max_target_length")
    if not isinstance(length, int) or length < 1:
        return "default"
    return f"{length // 1024}k" if length % 1024 == 0 else str(length)


def _is_topology(key: str) -> bool:
    return key in _TOPOLOGY_KEYS or _TOPOLOGY.fullmatch(key) is not None


def _keys(recorded: Resolved, *, topology: bool) -> dict[str, Any]:
    held = {key: item for key, item in recorded.maxtext.items() if key not in NOT_WRITTEN}
    return {
        key: item
        for key, item in held.items()
        if _is_topology(key) is topology and not (isinstance(item, str) and PLACEHOLDER.search(item))
    }


def _topology(model: str, chips: int, context: str, recorded: Resolved, *, version: bool = False) -> dict[str, bytes]:
    found = find_slice(str(recorded.job.get("accelerator", "tpu7x")), str(recorded.job["topology"]))
    deploy: dict[str, Any] = {"MAXTEXT_VERSION": recorded.version} if version else {}
    deploy |= {"TPU_TOPOLOGY": recorded.job["topology"], "COMPLETIONS": found.hosts if found else None}
    maxtext = _keys(recorded, topology=True)
    # Its default -1 takes what the other axes leave; the checks want that written.
    maxtext.setdefault("ici_fsdp_parallelism", -1)
    head = f"{model} on {chips} chips, {context} context: imported from {Path(recorded.source).name}."
    path = f"presets/{model}/topology/{chips}chips/{context}.yml"
    return {path: import_text.file(head, {"deploy": deploy, "maxtext": maxtext}, {})}


def _presets(model: str, chips: int, context: str, recorded: Resolved) -> dict[str, bytes]:
    deploy: dict[str, Any] = {
        "ACCELERATOR": recorded.job.get("accelerator", "tpu7x"),
        "MAXTEXT_VERSION": recorded.version,
        "IMAGE_REPOSITORY": import_text.EXAMPLE,
        "GIT_REPOSITORY": recorded.job.get("repository") or "github.com/AI-Hypercomputer/maxtext.git",
        "K8S_MAX_RESTARTS": recorded.job.get("max_restarts") or 0,
        "PRIORITY_CLASS": recorded.job.get("priority"),
        "ENV": {name: text for name, text in recorded.env.items() if not PLACEHOLDER.search(text)},
        "LIBTPU_INIT_ARGS": dict(recorded.flags),
    }
    deploy = {key: item for key, item in deploy.items() if item not in (None, {})}
    head = f"{model}: imported from {Path(recorded.source).name}. What a split needs stands in topology/."
    note = {"IMAGE_REPOSITORY": "example: your image repository"}
    sections = {"deploy": deploy, "maxtext": _keys(recorded, topology=False)}
    files = {f"presets/{model}/model.yml": import_text.file(head, sections, note)}
    for environment, namespace in (("prod", "maxtext-prod"), ("test", "default")):
        files[f"presets/{model}/environment/{environment}.yml"] = _environment(model, environment, namespace)
    return files | _topology(model, chips, context, recorded)


def _environment(model: str, environment: str, namespace: str) -> bytes:
    bucket = f"example-maxtext-{environment}"
    notes = {
        "K8S_NAMESPACE": f"example: the namespace of your {environment} runs",
        "GCS_BUCKET": "example: your bucket; base_output_directory below must lie in it",
        "base_output_directory": "example: see GCS_BUCKET",
    }
    sections = {
        "deploy": {"K8S_NAMESPACE": namespace, "GCS_BUCKET": bucket},
        "maxtext": {"base_output_directory": f"gs://{bucket}/{model}"},
    }
    return import_text.file(f"{model} in {environment}: namespace and bucket.", sections, notes)
