"""What differs between two runs is found without parsing what they hold alike, and is the same all the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer import compare
from renderer.report.values import as_written, differences
from renderer.scalars import write

DERIVE = json.dumps({"run_name_explicit": True}).encode()


def whole(old: bytes, new: bytes) -> tuple[object, object]:
    """Return what `differences` finds, and what comparing everything finds: words where that is not possible."""
    sides = [{"derive.json": DERIVE, "run.yml": data} for data in (old, new)]
    found: list[object] = []
    for look in (lambda: differences(*sides), lambda: list(compare.differences(*map(as_written, sides)))):
        try:
            found.append([(path, *map(compare.text, values)) for path, *values in look()])
        except ValueError:
            found.append("no YAML")
    return found[0], found[1]


KEYS = st.sampled_from(["a", "b", "c", "steps"])
SCALARS = (
    st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(allow_nan=False) | st.none() | st.text(max_size=4)
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3)


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES))
def test_what_the_renderer_writes(old: dict[str, object], new: dict[str, object]) -> None:
    texts = ("".join(f"{key}: {write(value)}\n" for key, value in data.items()) for data in (old, new))
    found, expected = whole(*(text.encode() or b"{}" for text in texts))
    assert found == expected


@pytest.mark.parametrize(
    "odd",
    [
        'a: "x\n  y"\nb: 2\n',
        'a: "\nb: 1\nc: "\n',
        "a: [1,\nb: 1]\n",
        "a: |\n  b: 1\nb: 1\n",
        "a:\n  b: 1\nb: 1\n",
        "a: {b: 1}\nb: 1\n",
        "b: 2\nb: 1\n",
        "b: 1 # why\n",
        "a: 'x\nb: 1'\n",
        "b:  1\n",
        "b: 1\n---\nb: 1\n",
        '"b": 1\n',
    ],
)
def test_what_a_hand_writes(odd: str) -> None:
    for other in ("b: 1\n", "b: 1\nc: 5\n", odd + "d: 1\n"):
        for old, new in ((odd, other), (other, odd)):
            found, expected = whole(old.encode(), new.encode())
            assert found == expected
