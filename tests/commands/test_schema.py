"""`renderer schema` lists snapshots, and says why an interpreter cannot give one."""

from __future__ import annotations

import sys

from content import Content

from renderer.schema import versions


def test_without_a_command_it_lists_the_snapshots(content: Content) -> None:
    assert content.run("schema").out.splitlines() == list(versions())


def test_an_interpreter_without_maxtext_is_refused(content: Content) -> None:
    code, out, err = content.run("schema", "update", "--python", sys.executable)
    assert (code, out) == (1, "")
    assert err.startswith(f"{sys.executable}: {sys.executable} could not read its MaxText (exit 1)")
