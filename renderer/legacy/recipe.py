"""Reads a recorded xpk recipe (a closed JSON form) as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from renderer.accelerators import find_slice
from renderer.legacy.resolved import XPK_FIELDS, Resolved, arguments, program
from renderer.legacy.versions import snapshot_of
from renderer.location import Location
from renderer.problem import refuse
from renderer.schema import Snapshot

TEXT, TEXTS, MAP = "text", "a list of texts", "a mapping of names to texts"
FORM = {
    "recipe": TEXT,
    "accelerator": TEXT,
    "topology": TEXT,
    "maxtext_pins_in_readme": TEXTS,
    "launcher_options": MAP,
    "environment": MAP,
    "pod_commands_before_training": TEXTS,
    "program": TEXTS,
    "maxtext_arguments": MAP,
    "libtpu_init_args": MAP,
    "after_training": TEXT,
}
"""The keys of a recorded recipe; each must be there."""

_OPTIONS = {
    "--priority": "priority",
    "--max-restarts": "max_restarts",
    "--device-type": "device_type",
    "--tpu-type": "device_type",
    "--num-slices": "slices",
    "--docker-image": "image",
    "--base-docker-image": "image",
    "--enable-debug-logs": "debug_logs",
    "--workload": "name",
    "--storage": "storage",
}
"""The options of `xpk workload create` that say something about the run, and the job field each becomes."""


def is_recipe(data: object) -> bool:
    """Return whether parsed JSON claims to be a recorded recipe."""
    return isinstance(data, dict) and "recipe" in data and "launcher_options" in data


def resolve(
    data: Mapping[str, Any], source: str, version: str | None = None, extended: Snapshot | None = None
) -> Resolved:
    """Return what the recipe launches. Raises RefusedError for another form, another program or contradictions.

    `version` is the MaxText to read it with where the recipe's own pin is none we know; `extended` a fork's snapshot.
    """
    _check_form(data, source)
    module, config, extra = program(data["program"][1:], source)
    if extra:
        refuse("legacy-form", Location(source), f"program holds an argument: {extra[0]}")
    if len(data["maxtext_pins_in_readme"]) != 1:
        refuse("legacy-form", Location(source), "maxtext_pins_in_readme must name one MaxText")
    pin = version or data["maxtext_pins_in_readme"][0]
    snapshot = snapshot_of(pin, source, extended)
    texts = [f"{key}={value}" for key, value in data["maxtext_arguments"].items()]
    return Resolved(
        source=source,
        version=pin,
        module=module,
        config=config,
        maxtext=arguments(texts, snapshot, source),
        flags=dict(data["libtpu_init_args"]),
        env=dict(data["environment"]),
        job=_job(data, source),
        states=XPK_FIELDS,
    )


def _check_form(data: Mapping[str, Any], source: str) -> None:
    for key in (*FORM, *data):
        if key not in FORM:
            refuse("legacy-form", Location(source), "unknown key", path=key, hint=f"known: {', '.join(FORM)}")
        if key not in data or not _fits(FORM[key], data[key]):
            found = json.dumps(data[key])[:60] if key in data else "nothing"
            refuse("legacy-form", Location(source), f"must be {FORM[key]}, not {found}", path=key)


def _fits(form: str, value: object) -> bool:
    if form == TEXT:
        return isinstance(value, str)
    if form == TEXTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _job(data: Mapping[str, Any], source: str) -> dict[str, Any]:
    accelerator, topology = data["accelerator"], data["topology"]
    job = xpk_job(data["launcher_options"], source)
    if job.pop("device_type", None) != f"{accelerator}-{topology}":
        message = f"launcher_options contradict accelerator and topology, {accelerator}-{topology}"
        refuse("legacy-form", Location(source), message)
    found = find_slice(accelerator, topology)
    return {
        **job,
        "accelerator": accelerator,
        "topology": topology,
        "completions": found.hosts if found else None,
        "before": " && ".join(data["pod_commands_before_training"]),
        "after": data["after_training"],
    }


def xpk_job(options: Mapping[str, str], source: str) -> dict[str, Any]:
    """Return the job fields that options of `xpk workload create` set. Raises RefusedError for unknown ones."""
    job: dict[str, Any] = {}
    for option, text in options.items():
        field = _OPTIONS.get(option)
        if field is None:
            known = ", ".join(_OPTIONS)
            refuse("legacy-option", Location(source), f"unknown option {option} of xpk", hint=f"known: {known}")
        if field in job:
            refuse("legacy-option", Location(source), f"{option} and another option both set {field}")
        job[field] = _option_value(field, text, source)
    if "--base-docker-image" in options:
        job["image_is_base"] = True
    return job


def _option_value(field: str, text: str, source: str) -> Any:
    if field in {"max_restarts", "slices"}:
        return int(text) if text.isdecimal() else _not_a_number(field, text, source)
    if field == "debug_logs":
        return True if text == "" else text
    return text


def _not_a_number(field: str, text: str, source: str) -> NoReturn:
    refuse("legacy-option", Location(source), f"{field} must be a number, not {text or 'nothing'}")
