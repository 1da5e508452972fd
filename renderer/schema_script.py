"""Runs in the interpreter that has MaxText: prints what its config classes and model files say, as JSON.

It is handed to that interpreter as text, so it imports nothing of the renderer.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

BEGIN, END = "<<<maxtext-schema", "maxtext-schema>>>"
"""MaxText and jax print on stdout too: the JSON stands between these lines."""

MODULES = ("maxtext.configs.types", "MaxText.configs.types")
"""Where the config classes are: now, and up to v1.5.0."""

WORDS = (
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maximum",
    "minimum",
    "type",
)
"""The JSON Schema words that say what a value must be; titles and descriptions are left out."""


def entry(node: Any, definitions: dict[str, Any]) -> Any:
    """Return `node` of a JSON Schema with its references replaced by what they stand for."""
    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]] | node
    result = {word: node[word] for word in WORDS if word in node}
    if "items" in result:
        result["items"] = entry(result["items"], definitions)
    if "anyOf" in result:
        result["anyOf"] = [entry(choice, definitions) for choice in result["anyOf"]]
    return result


def class_default(node: dict[str, Any]) -> dict[str, Any]:
    """Return the default the class states, the home directory written as `~`; an enum class states none."""
    if "default" not in node or "$ref" in node:
        return {}
    value, home = node["default"], f"{Path.home()}{os.sep}"
    inside = isinstance(value, str) and value.startswith(home)
    return {"default": f"~{os.sep}{value[len(home) :]}" if inside else value}


def keys(config: Any, base: dict[str, Any]) -> dict[str, Any]:
    """Return what each key of the config class takes, with its defaults."""
    schema = config.model_json_schema()
    result = {}
    for name, node in sorted(schema["properties"].items()):
        found = entry(node, schema.get("$defs", {})) | class_default(node)
        if name in base and ("default" not in found or found["default"] != base[name]):
            found["base_yml"] = base[name]
        result[name] = dict(sorted(found.items()))
    return result


def objects(config: Any) -> dict[str, Any]:
    """Return the keys that hold a map with keys of its own (lora, dpo), and what each of those takes."""
    schema = config.model_json_schema()
    definitions = schema.get("$defs", {})
    result = {}
    for name, node in sorted(schema["properties"].items()):
        members = definitions.get(node.get("$ref", "").rpartition("/")[2], {}).get("properties")
        if members:
            result[name] = {key: entry(member, definitions) for key, member in sorted(members.items())}
    return result


def read_base(path: Path) -> dict[str, Any]:
    """Return the keys of base.yml as MaxText reads them."""
    omegaconf = importlib.import_module("omegaconf").OmegaConf
    return dict(omegaconf.to_container(omegaconf.load(path)))


def read_model(path: Path) -> dict[str, Any]:
    """Return the keys of a model file as PyYAML takes them: 1e-6 stays text, as in the recorded snapshots."""
    return dict(sorted(importlib.import_module("yaml").safe_load(path.read_text("utf-8")).items()))


def snapshot() -> dict[str, Any]:
    """Return everything the renderer keeps about the MaxText of this interpreter."""
    module = next(name for name in MODULES if importlib.util.find_spec(name.partition(".")[0]))
    config = importlib.import_module(module).MaxTextConfig
    folder = Path(str(sys.modules[module].__file__)).parent
    base = read_base(folder / "base.yml")
    return {
        "version": importlib.metadata.version("maxtext"),
        "only_in_base_yml": sorted(base.keys() - config.model_fields.keys() - {"base_config"}),
        "keys": keys(config, base),
        "models": dict(sorted((path.stem, read_model(path)) for path in (folder / "models").glob("*.yml"))),
        "objects": objects(config),
    }


if __name__ == "__main__":
    text = json.dumps(snapshot())
    sys.stdout.write(f"\n{BEGIN}\n{text}\n{END}\n")
    sys.stdout.flush()
