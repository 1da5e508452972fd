"""Small commands start fast: heavy libraries are left alone until something needs them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from content import SHIPPED, Content

HEAVY = {
    "kubernetes",
    "jax",
    "numpy",
    "rich",
    "deepdiff",
    "ruamel",
    "jinja2",
    "jsonschema_rs",
    "detect_secrets",
    "omegaconf",
    "yaml",
    "difflib",
}
RUN = "import sys; from renderer.cli import main; code = main(sys.argv[1:]); "


def python(code: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SHIPPED), "NO_COLOR": "1"}
    command = [sys.executable, *options, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)


def loaded(*arguments: str) -> set[str]:
    """Return the top-level modules that a command has loaded when it is done."""
    out = python(RUN + "print('modules', *sys.modules)", *arguments).stdout
    return {name.split(".")[0] for name in out.splitlines()[-1].split()[1:]}


def test_help_loads_nothing_heavy() -> None:
    assert loaded("--help") & HEAVY == set()


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (
            ("render", "ling3-flash/run"),
            {"kubernetes", "jax", "numpy", "deepdiff", "detect_secrets", "omegaconf", "yaml"},
        ),
        (
            ("explain", "ling3-flash/run", "steps"),
            {"kubernetes", "jax", "numpy", "deepdiff", "detect_secrets", "jsonschema_rs", "omegaconf", "yaml"},
        ),
        (
            ("format", "--check"),
            {"kubernetes", "jax", "numpy", "deepdiff", "detect_secrets", "jsonschema_rs", "omegaconf", "yaml", "rich"},
        ),
        (
            ("preview", "ling3-flash/run"),
            {"kubernetes", "jax", "numpy", "deepdiff", "detect_secrets", "omegaconf", "yaml", "rich"},
        ),
    ],
)
def test_a_command_loads_what_it_needs_only(arguments: tuple[str, ...], spared: set[str], content: Content) -> None:
    content.experiment()
    assert loaded("--root", str(content.root), *arguments) & spared == set()


def best(code: str, *arguments: str) -> float:
    """Return the least processor time of several runs, in seconds: other work on the machine counts least there."""
    measure = (
        "import resource; usage = resource.getrusage(resource.RUSAGE_SELF); print('\\n', "
        "usage.ru_utime + usage.ru_stime)"
    )
    times = []
    for _ in range(5):
        start = time.monotonic()
        out = python(code + measure, *arguments).stdout
        times.append(min(float(out.split()[-1]), time.monotonic() - start))
    return min(times)


def test_budgets(content: Content) -> None:
    """0.15 s for --help and 0.4 s for one render, interpreter included; more on a machine whose Python starts slowly.

    A bare interpreter starts in about 0.02 s where these budgets were set.
    """
    content.experiment()
    slowness = max(1.0, best("") / 0.02)
    assert best(RUN, "--help") < 0.15 * slowness
    assert best(RUN, "--root", str(content.root), "render", "ling3-flash/run") < 0.4 * slowness
