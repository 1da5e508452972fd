"""What the renderer wrote, read back as plain data."""

from __future__ import annotations

import pytest

from renderer.manifest_yaml import load


def test_load_takes_one_document_only() -> None:
    assert load("a: [1, x, null]\n") == {"a": [1, "x", None]}
    assert load("") is None
    for text in ("a: 1\n---\nb: 2\n", "a: &x 1\nb: *x\n", "a: [", "a: " + "[" * 40, "a: on\n"):
        with pytest.raises(ValueError, match=r"."):
            load(text)
