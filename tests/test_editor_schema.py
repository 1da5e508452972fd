from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from renderer.editor_schema import OWNED, schemas
from renderer.keys import CHECKS_KEYS, DEPLOY_KEYS, LAUNCH_KEYS
from renderer.layers import Repository
from renderer.maxtext_types import judge
from renderer.schema import load, versions
from renderer.yaml_io import REMOVED, Node, read_file

ROOT = Path(__file__).parents[1]
SHIPPED = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "experiments/*/*.yml",
        "presets/*/*.yml",
        "presets/*/*/*.yml",
        "presets/*/*/*/*.yml",
        "datasets/*.yml",
    )
    for path in ROOT.glob(pattern)
    if path.name != "extensions.yml"
)


def validator(name: str) -> Any:
    return jsonschema_rs.Draft7Validator(
        json.loads((ROOT / f"schemas/{name}.json").read_text()),
        base_uri=f"json-schema:///schemas/{name}.json",
        retriever=lambda uri: json.loads((ROOT / "schemas" / Path(uri).name).read_text()),
    )


VALIDATORS = {name: validator(name) for name in ("experiment", "preset", "dataset")}


def kind(file: str) -> str:
    return {"experiments": "experiment", "presets": "preset", "datasets": "dataset"}[file.split("/", maxsplit=1)[0]]


def data(node: Node) -> Any:
    """Return what an editor's reader makes of a file: `!remove` is an empty text to it."""
    if isinstance(node.value, dict):
        return {key: data(child) for key, child in node.value.items()}
    return "" if node.value is REMOVED else node.value


def accepts(name: str, value: Any) -> bool:
    return bool(VALIDATORS[name].is_valid(value))


def experiment(**sections: Any) -> dict[str, Any]:
    return {"launch": {"model": "m", "chips": 64, "context": "4k", "environment": "test"}, **sections}


@pytest.mark.parametrize("file", SHIPPED)
def test_shipped_files_are_valid(file: str) -> None:
    problems: list[Any] = []
    value = data(read_file(ROOT / file, file, problems))
    assert problems == []
    assert [error.message for error in VALIDATORS[kind(file)].iter_errors(value)] == []


@pytest.mark.parametrize("path", schemas(Repository(ROOT)))
def test_files_are_what_the_code_makes(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == schemas(Repository(ROOT))[path], "run python tools/generate.py"


VALUES = (True, 7, -99, 1.5, "some text", ["a"], [1], {"a": 1}, None)


def test_values_are_judged_as_the_checks_judge_them() -> None:
    entries = {key: entry for key, entry in load("0.2.5").keys.items() if key not in OWNED}
    cases = [(key, value) for key in entries for value in VALUES]
    differing = [case for case in cases if accepts("dataset", dict([case])) != (judge(entries[case[0]], case[1]) == "")]
    assert len(cases) > 7000
    assert differing == []


def test_unknown_keys_are_refused_everywhere() -> None:
    assert accepts("experiment", experiment())
    for section in ("launch", "deploy", "maxtext", "checks"):
        assert not accepts("experiment", experiment(**{section: {**experiment().get(section, {}), "no_such_key": 1}}))
    assert not accepts("experiment", experiment(steps=3))
    assert not accepts("preset", {"launch": {}})
    assert not accepts("dataset", {"maxtext": {}})


def test_keys_of_every_version_are_known_but_for_the_renderers_own() -> None:
    known = set(json.loads((ROOT / "schemas/dataset.json").read_text())["properties"])
    for version in versions():
        assert load(version).keys.keys() - known == OWNED & load(version).keys.keys()
    assert not known & OWNED


def test_forks_keys_and_values_are_known() -> None:
    assert accepts("dataset", {"dataset_type": "lazy", "moe_topk_indices": "device"})
    assert not accepts("dataset", {"dataset_type": "lazier"})


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("launch", {"environment": "staging"}),
        ("launch", {"chips": "64"}),
        ("launch", {"commit": "abc"}),
        ("launch", {"state": "running"}),
        ("deploy", {"ACCELERATOR": "v4"}),
        ("deploy", {"COMPLETIONS": 0}),
        ("deploy", {"ENV": {"A": 1}}),
        ("deploy", {"ENV": {"a-b": "1"}}),
        ("deploy", {"DERIVATIONS": ["D9"]}),
        ("deploy", {"ENABLE_HF_CONVERSION": "true"}),
        ("checks", {"global_batch": 1.5}),
    ],
)
def test_closed_tables_are_judged_as_the_checks_judge_them(section: str, value: dict[str, Any]) -> None:
    whole = experiment()
    whole[section] = {**whole.get(section, {}), **value}
    assert not accepts("experiment", whole)


def test_remove_is_allowed_but_not_under_launch() -> None:
    removed = experiment(maxtext={"steps": ""}, deploy={"K8S_MAX_RESTARTS": "", "ENV": {"A": ""}, "VOLUMES": ""})
    assert accepts("experiment", removed)
    assert not accepts("experiment", {"launch": {**experiment()["launch"], "chips": ""}})


def test_empty_sections_are_absent_ones() -> None:
    assert accepts("experiment", experiment(deploy=None, maxtext=None, checks=None))


def test_every_key_has_a_description() -> None:
    preset = json.loads((ROOT / "schemas/preset.json").read_text())["properties"]["deploy"]["properties"]
    launch = json.loads((ROOT / "schemas/experiment.json").read_text())["properties"]["launch"]["properties"]
    assert {key: value["description"] for key, value in preset.items()} == {
        key.name: key.description for key in DEPLOY_KEYS.values()
    }
    assert {key: value["description"] for key, value in launch.items()} == {
        key.name: key.description for key in LAUNCH_KEYS.values()
    }
    assert list(CHECKS_KEYS) == ["global_batch"]


def test_editors_are_told_which_schema_is_whose() -> None:
    settings = json.loads((ROOT / ".vscode/settings.json").read_text())
    globs = {
        glob: Path(schema).stem
        for schema, patterns in settings["yaml.schemas"].items()
        for glob in ([patterns] if isinstance(patterns, str) else patterns)
    }
    for file in SHIPPED:
        assert {name for glob, name in globs.items() if Path(file).match(glob)} == {kind(file)}
    assert settings["yaml.customTags"] == ["!remove scalar"]
