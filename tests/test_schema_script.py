from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from renderer.schema_script import class_default, entry, keys, objects, read_model

SCHEMA: dict[str, Any] = {
    "$defs": {
        "Place": {"enum": ["remat", "device"], "title": "Place", "type": "string"},
        "LoRA": {"properties": {"rank": {"minimum": 0, "title": "Rank", "type": "integer"}}, "type": "object"},
    },
    "properties": {
        "steps": {"default": 5, "description": "How long.", "minimum": -1, "title": "Steps", "type": "integer"},
        "out": {"$ref": "#/$defs/Place", "default": "remat"},
        "lora": {"$ref": "#/$defs/LoRA"},
        "quant": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None},
        "axes": {"items": {"title": "Axis", "type": "string"}, "type": "array"},
    },
}
CONFIG = SimpleNamespace(
    model_json_schema=lambda: SCHEMA,
    model_fields={
        "steps": SimpleNamespace(description=" How\n  long. "),
        "out": SimpleNamespace(description=None),
        "lora": SimpleNamespace(description="Adapters."),
    },
)


def test_references_are_replaced_and_only_the_words_about_values_kept() -> None:
    properties, definitions = SCHEMA["properties"], SCHEMA["$defs"]
    assert entry(properties["steps"], definitions) == {"minimum": -1, "type": "integer"}
    assert entry(properties["out"], definitions) == {"enum": ["remat", "device"], "type": "string"}
    assert entry(properties["lora"], definitions) == {"type": "object"}
    assert entry(properties["axes"], definitions) == {"items": {"type": "string"}, "type": "array"}
    assert entry(properties["quant"], definitions) == {
        "anyOf": [{"enum": ["remat", "device"], "type": "string"}, {"type": "null"}]
    }


def test_keys_hold_the_class_default_and_what_base_yml_changes() -> None:
    assert keys(CONFIG, {"steps": 5, "out": "device", "axes": [], "quant": "", "base_config": "x"}) == {
        "axes": {"base_yml": [], "items": {"type": "string"}, "type": "array"},
        "lora": {"type": "object"},
        "out": {"base_yml": "device", "enum": ["remat", "device"], "type": "string"},
        "quant": {
            "anyOf": [{"enum": ["remat", "device"], "type": "string"}, {"type": "null"}],
            "base_yml": "",
            "default": None,
        },
        "steps": {"default": 5, "minimum": -1, "type": "integer"},
    }


def test_keys_are_in_alphabetical_order() -> None:
    assert list(keys(CONFIG, {})) == ["axes", "lora", "out", "quant", "steps"]


def test_the_home_directory_is_written_as_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert class_default({"default": "/home/someone/jax_cache"}) == {"default": "~/jax_cache"}
    assert class_default({"default": "/home/someone"}) == {"default": "/home/someone"}
    assert class_default({"type": "array"}) == {}


def test_members_of_maps() -> None:
    assert objects(CONFIG) == {"lora": {"rank": {"minimum": 0, "type": "integer"}}}


def test_a_model_file_is_read_in_alphabetical_order(tmp_path: Path) -> None:
    path = tmp_path / "model.yml"
    path.write_text("vocab_size: 32\nbase_emb_dim: 8\nepsilon: 1e-6\n")
    assert list(read_model(path).items()) == [("base_emb_dim", 8), ("epsilon", "1e-6"), ("vocab_size", 32)]
