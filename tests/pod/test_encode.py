"""Arguments come back from OmegaConf, which MaxText reads its command line with, as the values they were."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from pod.derivations import DerivationError, encode

AWKWARD = [
    *(
        "",
        " ",
        " lead",
        "trail ",
        "1e-4",
        "1e5",
        "1.0",
        "012",
        "0x1F",
        "1_000",
        "12:30",
        "2026-01-01",
        "inf",
        ".nan",
    ),
    *("on", "off", "yes", "no", "y", "n", "true", "True", "null", "Null", "~", "none", "???"),
    *("a,b", "fixed,-224,224", '{"a": 1}', "[1, 2]", "{", "]", "a: b", "a:", "- a", "-", "---", "...", "? a"),
    *("#x", "x #y", "*x", "&x", "!x", "%x", "@x", "`x", "|", ">", "a=b", "=", "==x", "$x", "$(x)", "{x}"),
    *(
        '"',
        "'",
        '"quoted"',
        "it's",
        "\\",
        "\\n",
        'a\\"b',
        "c:\\dir",
        "\n",
        "a\nb\n",
        "\t",
        "\r\n",
        "a\x0bb",
        "\x00",
    ),
    *("中文", "é", "🚀", "\u0085", "\u2028", "\u2029", "\ufeff", "\u00a0", "\x7f", "\ufffe", "e\u0301"),
]
SAFE_TEXT = st.text().filter(lambda text: "${" not in text)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | SAFE_TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(SAFE_TEXT, inner), max_leaves=8)


def read_back(argument: str) -> Any:
    return OmegaConf.to_container(OmegaConf.from_cli([argument]), resolve=True)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text(text: str) -> None:
    assert read_back(f"key={encode(text)}") == {"key": text}


@given(VALUES)
def test_any_value(value: Any) -> None:
    assert same(read_back(f"key={encode(value)}"), {"key": value})


def test_texts_as_people_see_them() -> None:
    values: list[Any] = [
        None,
        True,
        3,
        3e-4,
        1e22,
        "a,b",
        "中文",
        [1, "x"],
        {"a": [None]},
        math.inf,
        -math.inf,
    ]
    assert [encode(value) for value in values] == [
        *(
            "null",
            "true",
            "3",
            "0.0003",
            "1e+22",
            '"a,b"',
            '"中文"',
            '[1, "x"]',
            '{"a": [null]}',
            ".inf",
            "-.inf",
        )
    ]


def test_nan() -> None:
    assert math.isnan(read_back(f"key={encode(math.nan)}")["key"])


def test_what_omegaconf_would_expand_is_refused() -> None:
    with pytest.raises(DerivationError, match=r"^a\$\{oc.env:HOME\} would be interpolated by OmegaConf$"):
        encode("a${oc.env:HOME}")


def test_what_yaml_does_not_hold_is_refused() -> None:
    with pytest.raises(DerivationError, match=r"^b'x' cannot be passed as an argument$"):
        encode(b"x")
