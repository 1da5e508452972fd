"""What MaxText demands of a few keys outside its config classes, which the snapshots therefore do not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPEN = "open"
"""Marks an entry that is narrower here than in the config class."""

_RULE = {
    "type": "array",
    "prefixItems": [
        {"type": "string"},
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    ],
}
_RULES = {"type": "array", "items": _RULE}

UNTYPED: Mapping[str, Mapping[str, Any]] = {
    "logical_axis_rules": _RULES,
    "logical_axis_rules_for_eval": _RULES,
    "data_sharding": {"type": "array", "items": {}},
}
"""Keys of type Any: the loader takes rules apart as lists of a name and its mesh axes."""

VALIDATED: Mapping[str, Mapping[str, Any]] = {
    "context_parallel_strategy": {"type": "string", "enum": ["all_gather", "ring", "ulysses", "usp"]},
    "distill_alpha_end": {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]},
    "distill_beta_end": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
    "distill_temperature_end": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]},
    "elastic_backup_kind": {"type": "string", "enum": ["snapshot", "checkpoint"]},
    "first_phase_ragged_buffer_factor": {"type": "number", "minimum": 0},
    "mu_dtype": {
        "type": "string",
        "enum": ["", "bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"],
    },
    "num_vocab_tiling": {"type": "integer", "minimum": 1},
    "retry_dropless_first_steps": {"type": "integer", "minimum": 0},
    "te_comm_gemm_overlap": {"type": "string", "enum": ["disabled", "mlp", "full"]},
}
"""Limits on single keys in the validators of MaxText 0.2.5 (configs/types.py), and numpy's on mu_dtype. Later
versions may take more, so they hold for the shipped snapshots only."""


def with_shapes(keys: Mapping[str, Any], objects: Mapping[str, Any], *, shipped: bool) -> dict[str, Any]:
    """Return `keys` with the members of maps that have keys of their own (`objects`), and the types above."""
    result = dict(keys)
    for key, members in objects.items():
        result[key] = {**result[key], "properties": members}
    for key, shape in (*UNTYPED.items(), *(VALIDATED.items() if shipped else ())):
        if key in result and (shipped or "type" not in result[key]):
            defaults = {name: value for name, value in result[key].items() if name in {"default", "base_yml"}}
            result[key] = {**shape, **defaults, OPEN: True}
    return result


def with_numbers(models: Mapping[str, dict[str, Any]], keys: Mapping[str, Any]) -> Mapping[str, dict[str, Any]]:
    """Return `models` with numbers as MaxText reads them: 1e-6 is text to PyYAML, which read the files."""
    for model in models.values():
        for key, value in model.items():
            if type(value) is str and value[:1].isdecimal() and keys.get(key, {}).get("type") == "number":
                model[key] = float(value)
    return models
