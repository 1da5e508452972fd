import pytest
from omegaconf import OmegaConf

from renderer import schema
from renderer.legacy.values import read_argument, typed

TEXTS = (
    *(
        "8.0",
        "-1",
        "True",
        "true",
        "yes",
        "off",
        "n",
        "Y",
        "010",
        "1_000",
        "12:30",
        "2026-01-01",
        "1e-4",
        "1e5",
        "3e-4",
    ),
    *(
        "1.5e3",
        "",
        "#x",
        "x #y",
        '"1e-4"',
        "'on'",
        "[1, 2]",
        "{a: 1}",
        "fixed,-224,224",
        "null",
        "~",
        "None",
        "gs://b/c",
    ),
    *(
        "/tmp/*.x",
        "a b",
        "a: b",
        "0x10",
        "0o17",
        ".5",
        "-.5",
        "1.",
        "+3",
        "[[a, b], [c]]",
        "<stamp>",
        "1e+3",
        "695e0514",
    ),
    *(
        "-",
        "- a",
        ".inf",
        "1_0e3",
        "08",
        "2026-01-01 10:00:00",
        " lead",
        "a=b=c",
        "it's",
        '"a\\nb"',
        "x,y",
        ":x",
        "1:2:3",
    ),
    *("x:", "0.03", "assets/tokenizer.mistral-v3", "-5", "+.5", "no", "NO", "on", "tRUE", "5000000000000"),
)


@pytest.mark.parametrize("text", TEXTS)
def test_arguments_are_read_as_omegaconf_reads_them(text: str) -> None:
    theirs = OmegaConf.to_container(OmegaConf.from_cli([f"key={text}"]))["key"]  # type: ignore[index,call-overload]
    assert (read_argument(text), type(read_argument(text))) == (theirs, type(theirs))


@pytest.mark.parametrize("text", ["*x", "=", "@x", "%x", "!x", "\ttab"])
def test_what_omegaconf_refuses_stays_text(text: str) -> None:
    assert read_argument(text) == text


@pytest.mark.parametrize(
    ("key", "value", "held"),
    [
        ("per_device_batch_size", 8.0, 8),
        ("steps", 30.0, 30),
        ("steps", 30.5, 30.5),
        ("steps", "30", 30),
        ("enable_checkpointing", "True", True),
        ("enable_checkpointing", "n", False),
        ("enable_checkpointing", 1, True),
        ("attention", "flash", "flash"),
        ("run_name", 20260101, 20260101),
        ("mu_dtype", "None", "None"),
        ("learning_rate", 1, 1.0),
    ],
)
def test_values_become_what_the_key_holds(key: str, value: object, held: object) -> None:
    found = typed(schema.load("0.2.5").keys[key], value)
    assert (found, type(found)) == (held, type(held))


def test_an_unknown_key_keeps_its_value() -> None:
    assert typed(None, "x") == "x"
