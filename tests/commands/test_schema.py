"""`renderer schema` lists snapshots, and says why an interpreter cannot give one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from content import Content

from renderer import schema_update
from renderer.commands import schema
from renderer.schema import versions


def test_without_a_command_it_lists_the_snapshots(content: Content) -> None:
    assert content.run("schema").out.splitlines() == list(versions())


def test_what_was_written_is_named_with_its_folder(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"version": "9.9.9", "keys": {"steps": {}}, "models": {}}
    monkeypatch.setattr(schema, "snapshot_from", lambda _: data)
    monkeypatch.setattr(schema, "write", lambda data, name: schema_update.write(data, name, tmp_path / "schemas"))
    words = ("schema", "update", "--python", sys.executable, "--name", "trial")
    assert content.run(*words).out == f"wrote {tmp_path}/schemas/trial.json: 1 key, 0 models\n"
    monkeypatch.chdir(tmp_path)
    assert content.run(*words).out == "wrote schemas/trial.json: 1 key, 0 models\n"


def test_an_interpreter_without_maxtext_is_refused(content: Content) -> None:
    code, out, err = content.run("schema", "update", "--python", sys.executable)
    assert (code, out) == (1, "")
    assert err.startswith(f"{sys.executable}: {sys.executable} could not read its MaxText (exit 1)")
