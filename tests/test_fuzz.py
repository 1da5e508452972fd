"""Any bytes as experiment, preset or dataset: a problem in words or a whole render, never a traceback or half a tree.

FUZZ_CASES (2,500 unless set; .ci/run takes 10,000) is the number of inputs over all tests here; each is made from its
own seed, so that FUZZ_SEED=<the seed of a failure> FUZZ_CASES=8 repeats it.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from content import SHIPPED, Content, make_content

CASES = int(os.environ.get("FUZZ_CASES", "2500"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
CHUNKS = 8
RENDERED_RUN = "experiments/ling3-flash/run.yml"
FILES = (
    RENDERED_RUN,
    "presets/ling3-flash/model.yml",
    "presets/ling3-flash/topology/64chips/8k.yml",
    "presets/ling3-flash/environment/test.yml",
    "presets/ling3-flash/extensions.yml",
    "datasets/fin_35p.yml",
)
EXPERIMENTS = sorted(SHIPPED.glob("experiments/*/*.yml"))

SYNTAX = (
    ": ",
    "- ",
    "? ",
    "&a ",
    "*a",
    "!remove",
    "!!int ",
    "!!binary ",
    "!x ",
    "%YAML 1.1\n",
    "---\n",
    "...\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    "|\n",
    ">-\n",
    "|+\n\n\n",
    "'",
    '"',
    "#",
    "<<: ",
    "\t",
    "\r",
    "\r\n",
    "\ufeff",
    "\x00",
    "\x85",
    "\u2028",
    "\\ud800",
    '"\\ud800"',
    '"\\0"',
    "\n\n",
    "  ",
    "~",
    "null",
    "=",
    "@",
    "`",
    "${x}",
    "$(X)",
    "<name>",
    "\x1b[31m",
    "é",
    "\U0001f600",
    "\ud7ff",
    "\udfff",
)
VALUES = (
    "null",
    "~",
    "",
    "true",
    "false",
    "yes",
    "n",
    "0",
    "-1",
    "00",
    "010",
    "0x1F",
    "0o17",
    "1_000",
    "12:30",
    "1e5",
    "3e-4",
    "1e-320",
    "1e308",
    "1e999",
    ".inf",
    "-.inf",
    ".nan",
    "9" * 18,
    "9" * 400,
    "-" + "9" * 19,
    "1." + "0" * 400,
    "0.1",
    "-0",
    "-0.0",
    "+1",
    "2026-01-01",
    "[]",
    "{}",
    "[1, 2]",
    "[[1], [2]]",
    "[a, b]",
    '["a"]',
    "{a: 1}",
    "{a: {b: {c: 1}}}",
    "{1: 2}",
    "{null: 1}",
    "!remove",
    "[!remove]",
    '""',
    '" "',
    '"x"',
    "'x'",
    '"0"',
    "|\n    a\n    b",
    '"\\u0000"',
    '"\\uFFFF"',
    '"\\U0001F600"',
    '"../../x"',
    '"/"',
    '"."',
    '".."',
    "a" * 300,
    '"' + "b/" * 3000 + '"',
    "D1",
    "[D1, D9]",
    "prod",
    "test",
    "4x4x4",
    "4x4x8",
    "gs://x/y",
    "0.2.5",
    "v1.5.0",
    "fin_35p",
    "datasets/align_smoke.yml",
    "/etc/hostname",
    "experiments",
    "datasets/",
    "- a",
    "a: b",
    "*x",
    "&x y",
    "!!str 1",
    "? a",
    "@",
    "%",
)
KEYS = (
    "maxtext",
    "deploy",
    "launch",
    "checks",
    "steps",
    "ENV",
    "VOLUMES",
    "LIBTPU_INIT_ARGS",
    "DATASETS_YAML",
    "MAXTEXT_VERSION",
    "MAXTEXT_MODEL",
    "logical_axis_rules",
    "run_name",
    "model_name",
    "ACCELERATOR",
    "MAX_HOURS",
    "DERIVATIONS",
    "gradient_accumulation_steps",
    "attempt",
    "per_device_batch_size",
    "ici_fsdp_parallelism",
    "dcn_data_parallelism",
    "learning_rate_schedule_steps",
    "warmup_steps_fraction",
    "base_output_directory",
    "scan_layers",
    "global_batch",
    "resume",
    "name",
    "image",
    "commit",
    "1",
    "null",
    "",
    "a b",
    '"a\\nb"',
    "'x: y'",
    "k" * 1000,
    "? [a]\n",
    "[a]",
    "{a}",
    "é",
    "<<",
    "on",
    "__class__",
    "enums",
    "keys",
    "dataset_type",
    "opt_type",
    "load_parameters_path",
)

Mutation = Callable[[random.Random, str], str]


def _insert(rng: random.Random, text: str, new: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + new + text[at:]


def insert_syntax(rng: random.Random, text: str) -> str:
    return _insert(rng, text, rng.choice(SYNTAX))


def delete(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + text[at + rng.choice((1, 1, 2, 10, 100)) :]


def double(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = rng.randrange(len(lines))
    return "".join([*lines[:at], lines[at], *lines[rng.randint(0, at) :]])


def indent(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = rng.randrange(len(lines))
    lines[at] = rng.choice((lines[at].lstrip(" "), f"  {lines[at]}", f" {lines[at]}"))
    return "".join(lines)


def set_value(rng: random.Random, text: str) -> str:
    """Give one key of the file another value, most likely of another type."""
    places = list(re.finditer(r"(?m)^( *[^#\n]+?:)(?: .*)?$", text))
    if not places:
        return text
    place = rng.choice(places)
    return f"{text[: place.start()]}{place[1]} {rng.choice(VALUES)}{text[place.end() :]}"


def add_key(rng: random.Random, text: str) -> str:
    """Write one more key, known or not, after some line at that line's depth."""
    lines = text.splitlines(keepends=True) or [""]
    at = rng.randrange(len(lines))
    depth = len(lines[at]) - len(lines[at].lstrip(" "))
    lines.insert(at + 1, f"{' ' * depth}{rng.choice(KEYS)}: {rng.choice(VALUES)}\n")
    return "".join(lines)


def nest(rng: random.Random, text: str) -> str:
    depth = rng.choice((5, 31, 33, 1000, 20_000))
    return _insert(rng, text, rng.choice(("[", "{a: ", "- ", "? ")) * depth)


def encode(rng: random.Random, text: str) -> bytes:
    """Return the bytes of a text: mostly UTF-8, at times broken or another encoding, at times with flipped bits."""
    data = bytearray(text.encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace"))
    chance = rng.random()
    if chance < 0.15 and data:
        for _ in range(rng.choice((1, 1, 3, 20))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif chance < 0.17:
        return text.encode("utf-16", "surrogatepass")
    return bytes(data)


MUTATIONS: tuple[Mutation, ...] = (
    insert_syntax,
    delete,
    double,
    indent,
    set_value,
    set_value,
    set_value,
    add_key,
    add_key,
    nest,
)


def mutated(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.1:
        return rng.randbytes(rng.choice((0, 1, 5, 100, 3000)))
    text = data.decode()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(MUTATIONS)(rng, text)
    return encode(rng, text)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """A repository whose one experiment uses every kind of file, rendered."""
    content = make_content(tmp_path_factory.mktemp("fuzz") / "repository")
    shipped = SHIPPED / "experiments/ling3-flash/align-smoke-64.yml"
    content.write(RENDERED_RUN, shipped.read_text().replace("DATASETS_YAML: align_smoke", "DATASETS_YAML: fin_35p"))
    assert content.run("render").code == 0
    return content


def state(root: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of every file under rendered/, and whatever else a render might leave at the root."""
    found = {}
    for folder, folders, files in os.walk(root / "rendered"):
        for name in (*folders, *files):
            path = os.path.join(folder, name)  # noqa: PTH118  pathlib is what would take the time here
            info = os.stat(path)  # noqa: PTH116
            found[path] = (info.st_ino, info.st_mtime_ns)
    return {**found, **dict.fromkeys(os.listdir(root), (0, 0))}  # noqa: PTH208


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_any_bytes_are_refused_in_words_or_rendered_whole(chunk: int, fuzzed: Content) -> None:
    before = state(fuzzed.root)
    refused = 0
    for seed in range(SEED + chunk, SEED + CASES, CHUNKS):
        rng = random.Random(seed)
        file = rng.choice((FILES[0], *FILES))
        path = fuzzed.root / file
        original = path.read_bytes()
        source = rng.choice(EXPERIMENTS).read_bytes() if file == RENDERED_RUN and rng.random() < 0.2 else original
        path.write_bytes(mutated(rng, source))
        try:
            anew = ("--refresh",) if rng.random() < 0.85 else ()  # else what is rendered stands for what was launched
            code, out, err = fuzzed.run("render", *anew, "ling3-flash/run")
        finally:
            path.write_bytes(original)
        assert code in {0, 1}, f"seed {seed}, {file}: exit {code}: {err}"
        if code == 1:
            refused += 1
            assert re.match(r"(?:datasets|experiments|presets|command line)\b", err), f"seed {seed}, {file}: {err}"
            assert out == "", f"seed {seed}, {file}: {out}"
            assert state(fuzzed.root) == before, f"seed {seed}, {file}: refused, but the tree changed"
        else:
            assert out.endswith(("deleted\n", "up to date\n")), f"seed {seed}, {file}: {out}"
            before = state(fuzzed.root)
    assert refused * 2 > CASES / CHUNKS, "the mutations are too tame to show anything"
    assert fuzzed.run("render").code == 0
    assert fuzzed.run("render", "--check") == fuzzed.run("render", "--check")
    assert fuzzed.run("render", "--check").code == 0
