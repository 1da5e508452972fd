"""JSON Schemas of the files people write, so that an editor completes and checks them while they are typed.

They are first help, drawn over all models and MaxText versions together; `renderer validate` knows the one that counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from renderer.extensions import Schemas
from renderer.key_types import Form, Key, Kind
from renderer.keys import CHECKS_KEYS, DEPLOY_KEYS, LAUNCH_KEYS
from renderer.launch import REQUIRED
from renderer.layers import Repository
from renderer.location import COMMAND_LINE
from renderer.problem import Problem, RefusedError
from renderer.schema import Entry, load, versions

Schema = dict[str, Any]

OWNED = frozenset({"base_config", "model_name", "override_model_config"})
"""MaxText's keys that the renderer writes."""

_REMOVE = {"$ref": "#/definitions/remove"}
_DEFINITIONS = {"remove": {"const": "", "description": "!remove: takes out what the lower layers set."}}
"""`!remove` is an empty text to an editor's YAML reader."""
_DRAFT = "http://json-schema.org/draft-07/schema#"
_WORDS = ("type", "enum", "const", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


def schemas(repository: Repository) -> dict[str, str]:
    """Return the text of every schema file by its path under the root. Raises RefusedError for wrong extensions."""
    launch = {name: _key(key) for name, key in LAUNCH_KEYS.items()}
    deploy = {name: _removable(_key(key)) for name, key in DEPLOY_KEYS.items()}
    promises = {name: _key(key) for name, key in CHECKS_KEYS.items()}
    experiment = {
        "launch": {**_mapping(launch, "Which run this is; the only place for selectors."), "required": list(REQUIRED)},
        "deploy": {"$ref": "preset.json#/properties/deploy"},
        "maxtext": {"$ref": "dataset.json"},
        "checks": _nullable(_mapping(promises, "Promises that are held at render time.")),
    }
    preset = {
        "deploy": _nullable(_mapping(deploy, "The JobSet's keys.")),
        "maxtext": {"$ref": "dataset.json"},
    }
    files = {
        "experiment": {**_mapping(experiment, "An experiment: one run."), "required": ["launch"]},
        "preset": _nullable(_mapping(preset, "A preset: a layer of every run that selects it.")),
        "dataset": _nullable(_mapping(_maxtext_keys(repository), "MaxText's own keys, as in its base.yml.")),
    }
    return {f"schemas/{name}.json": _text(schema) for name, schema in files.items()}


def _text(schema: Schema) -> str:
    """Return `schema` with one property a line, so that a change reads as a diff."""
    head = {"$schema": _DRAFT, **schema, "definitions": _DEFINITIONS}
    properties = head.pop("properties")
    lines = [f"{_dump(name)}: {_dump(properties[name])}" for name in properties]
    rest = [f"{_dump(name)}: {_dump(value)}" for name, value in head.items()]
    return "{\n" + ",\n".join(rest) + ',\n"properties": {\n' + ",\n".join(lines) + "\n}\n}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _mapping(properties: Mapping[str, Schema], description: str) -> Schema:
    return {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": dict(properties),
    }


def _nullable(schema: Schema) -> Schema:
    """An empty namespace is an absent one."""
    return {**schema, "type": ["object", "null"]}


def _removable(schema: Schema) -> Schema:
    """Return `schema` with the empty text allowed beside what it allows."""
    if "anyOf" not in schema and schema.get("type") == "string" and not {"enum", "pattern"} & schema.keys():
        return schema
    told: Schema = {word: schema[word] for word in ("description", "default") if word in schema}
    rest = {word: value for word, value in schema.items() if word not in told}
    return {**told, "anyOf": [*rest.get("anyOf", [rest]), _REMOVE]}


def _key(key: Key) -> Schema:
    """Return the schema of one key of a closed table."""
    schema: Schema = {"description": key.description}
    if key.default is not None:
        schema["default"] = key.default
    if key.kind is Kind.TEXT:
        schema |= {"type": "string", **_form(key.form)}
    elif key.kind is Kind.BOOLEAN:
        schema |= {"type": "boolean"}
    elif key.kind is Kind.TEXT_LIST:
        schema |= {"type": "array", "items": {"type": "string", **_form(key.form)}}
    elif key.kind is Kind.TEXT_MAP:
        names = {"propertyNames": _form(key.form)} if key.form else {}
        values = _removable({"type": "string", **_form(key.value_form)})
        schema |= {"type": ["object", "null"], "additionalProperties": values, **names}
    else:
        kind = "integer" if key.kind is Kind.INTEGER else "number"
        schema |= {"type": kind, "minimum": key.minimum, "maximum": key.maximum}
    return schema


def _form(form: Form | None) -> Schema:
    """Return the pattern of a form, as enum where it is a choice of words, which editors complete."""
    if form is None:
        return {}
    words = form.pattern.replace("\\", "").split("|")
    if all(word.replace("-", "").isalnum() for word in words):
        return {"enum": words}
    return {"pattern": f"^(?:{form.pattern})$", "patternErrorMessage": f"must be {form.words}"}


def _maxtext_keys(repository: Repository) -> dict[str, Schema]:
    """Return every key of every version, typed as the newest one that has it says, and what forks add."""
    keys: dict[str, Entry] = {}
    for version in versions():
        keys |= load(version).keys
    for model in repository.models():
        keys = _with_extensions(keys, repository, model)
    return {name: _removable(_entry(keys[name], _described(name))) for name in sorted(keys) if name not in OWNED}


def _described(name: str) -> str:
    """Return which MaxText versions know a key; what it does, MaxText's own documentation says."""
    known = [version for version in versions() if name in load(version).keys]
    return f"MaxText's {name}, in {', '.join(known)}." if known else f"{name}, an extension of a fork."


def _with_extensions(keys: Mapping[str, Entry], repository: Repository, model: str) -> dict[str, Entry]:
    """Return `keys` with the further keys and values of a fork, from the newest version's view of it."""
    problems: list[Problem] = []
    extended = Schemas(repository).snapshot(model, versions()[-1], COMMAND_LINE, problems)
    if problems or extended is None:
        raise RefusedError(problems)
    before = load(versions()[-1]).keys
    changed = {name: entry for name, entry in extended.keys.items() if before.get(name) is not entry}
    return {**keys, **{name: _union(keys.get(name), entry) for name, entry in changed.items()}}


def _union(one: Entry | None, other: Entry) -> Entry:
    if one is None or "enum" not in one or "enum" not in other:
        return other
    return {**other, "enum": list(dict.fromkeys([*one["enum"], *other["enum"]]))}


def _entry(entry: Entry, description: str) -> Schema:
    """Return a snapshot's entry in the words of draft 7, which editors know."""
    schema: Schema = {word: entry[word] for word in _WORDS if word in entry}
    if description or "description" in entry:
        schema["description"] = entry.get("description", description)
    default = entry.get("base_yml", entry.get("default"))
    if default is not None:
        schema["default"] = default
    if "anyOf" in entry:
        schema["anyOf"] = [_entry(choice, "") for choice in entry["anyOf"]]
    if "prefixItems" in entry:
        items = [_entry(item, "") for item in entry["prefixItems"]]
        schema |= {"items": items, "minItems": len(items), "maxItems": len(items)}
    elif "items" in entry:
        schema["items"] = _entry(entry["items"], "")
    if "properties" in entry:
        schema["properties"] = {name: _entry(member, "") for name, member in entry["properties"].items()}
        schema["additionalProperties"] = False
    return schema
