"""Makes renderer/schemas/kubernetes/jobset-v1alpha2.json, the strict JSON Schema of a JobSet, from JobSet's own CRD.

    python tools/jobset_schema.py [CRD.yaml]

Without an argument the CRD is taken from the Go module proxy. What a JSON Schema cannot say is left out: the CRD's CEL
rules (x-kubernetes-validations) and defaults. Status is left out because a manifest never has one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MODULE = "sigs.k8s.io/jobset@v0.12.0"
CRD = "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"
ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "renderer/schemas/kubernetes/jobset-v1alpha2.json"

Schema = dict[str, Any]

_KEPT = (
    "type",
    "required",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)
_INTEGERS = {"int32": 2**31, "int64": 2**63}
_SHARED_FROM = 300
"""A part that occurs twice is written once from this many characters on."""

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_LABEL_VALUE = r"^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
_LABEL_KEY = r"^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_RULE_NAME = r"^[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
"""What JobSet's webhook takes as the name of a failure policy rule; the CRD only limits its length."""
_METADATA: Schema = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": r"^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$"},
        "namespace": {"type": "string", "pattern": r"^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$"},
        "labels": {
            "type": "object",
            "propertyNames": {"pattern": _LABEL_KEY},
            "additionalProperties": {"type": "string", "pattern": _LABEL_VALUE},
        },
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}
"""The CRD leaves an object's metadata to the API server (apimachinery's ObjectMeta and its validation of labels); the
name is what JobSet's webhook takes, a DNS-1035 label. Left out: what only a server writes."""


def strict(node: Schema) -> Schema:
    """Return a CRD's schema `node` as JSON Schema that refuses unknown fields, as strict decoding does."""
    found = {word: node[word] for word in _KEPT if word in node}
    if node.get("x-kubernetes-int-or-string"):
        found["type"] = ["integer", "string"]
    if node.get("format") in _INTEGERS:
        limit = _INTEGERS[node["format"]]
        found = {"minimum": -limit, "maximum": limit - 1} | found
    if "items" in node:
        found["items"] = strict(node["items"])
        found |= _unique(node)
    if node.get("type") == "object":
        found |= _members(node)
    return found


def _members(node: Schema) -> Schema:
    if node.get("x-kubernetes-preserve-unknown-fields"):
        return {}
    found: Schema = {}
    if "properties" in node:
        found["properties"] = {name: strict(child) for name, child in node["properties"].items()}
    others = node.get("additionalProperties")
    found["additionalProperties"] = strict(others) if isinstance(others, dict) else False
    return found


def _unique(node: Schema) -> Schema:
    """Return the uniqueness of a list's items; `uniqueBy` is our own word: keys and the default of each."""
    kind = node.get("x-kubernetes-list-type")
    if kind == "set":
        return {"uniqueItems": True}
    if kind != "map":
        return {}
    properties = node["items"].get("properties", {})
    keys = node["x-kubernetes-list-map-keys"]
    return {"uniqueBy": {key: properties.get(key, {}).get("default") for key in keys}}


def jobset(crd: Schema) -> Schema:
    """Return the schema of a JobSet manifest from its CRD."""
    version = next(entry for entry in crd["spec"]["versions"] if entry["name"] == "v1alpha2")
    spec = strict(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    rules = spec["properties"]["failurePolicy"]["properties"]["rules"]
    rules["uniqueBy"] = {"name": None}
    rules["items"]["properties"]["name"]["pattern"] = _RULE_NAME
    root: Schema = {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": "jobset.x-k8s.io/v1alpha2"},
            "kind": {"const": "JobSet"},
            "metadata": _METADATA,
            "spec": spec,
        },
    }
    shared = _shared(root)
    definitions = {name: _with_references(part, shared, top=True) for part, name in shared.items()}
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"Made by tools/jobset_schema.py from {MODULE}, {CRD}",
        **_with_references(_key(root), shared),
        "$defs": dict(sorted(definitions.items())),
    }
    return schema


def _key(part: Any) -> str:
    return json.dumps(part, sort_keys=True, separators=(",", ":"))


def _shared(root: Schema) -> dict[str, str]:
    """Return a name for every large part that occurs more than once, by its text."""
    counted = Counter(_key(part) for part in _parts(root))
    repeated = [text for text, count in counted.items() if count > 1 and len(text) >= _SHARED_FROM]
    return {text: f"s{index}" for index, text in enumerate(sorted(repeated), 1)}


def _parts(node: Any) -> Iterator[Schema]:
    if isinstance(node, dict):
        if "type" in node and not isinstance(node["type"], dict):
            yield node
        for child in node.values():
            yield from _parts(child)


def _with_references(text: str, shared: dict[str, str], *, top: bool = False) -> Schema:
    node = json.loads(text)
    return _referring(node, shared, top=top)  # type: ignore[no-any-return]


def _referring(node: Any, shared: dict[str, str], *, top: bool = False) -> Any:
    if isinstance(node, list):
        return [_referring(item, shared) for item in node]
    if not isinstance(node, dict):
        return node
    if not top and (name := shared.get(_key(node))):
        return {"$ref": f"#/$defs/{name}"}
    return {key: _referring(child, shared) for key, child in node.items()}


def _download() -> Path:
    cache = ROOT / ".cache/gomod"
    cache.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"GOMODCACHE": str(cache), "GOFLAGS": "-modcacherw"}
    command = ["go", "mod", "download", "-json", MODULE]
    done = subprocess.run(command, cwd=cache, env=environment, capture_output=True, check=True)  # noqa: S603
    return Path(json.loads(done.stdout)["Dir"]) / CRD


def text_of(crd: Path) -> str:
    """Return the schema file's text for the CRD in the file `crd`."""
    data = yaml.load(crd.read_text("utf-8"), yaml.CSafeLoader)
    return json.dumps(jobset(data), sort_keys=True, separators=(",", ":")) + "\n"


def main(argv: list[str]) -> int:
    """Write the schema file and return 0."""
    crd = Path(argv[0]) if argv else _download()
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(text_of(crd), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
