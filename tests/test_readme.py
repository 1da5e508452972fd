"""The README's commands do what it says, on a copy of the shipped content."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from renderer.cli import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for folder in ("presets", "datasets", "experiments"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("my-first.yml"))
    return tmp_path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = ["bash", "-c", command]
    return subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_first_experiment(clone: Path) -> None:
    script = next(block for block in blocks("sh") if "renderer new" in block)
    done = run(f"set -e\n{script}", clone)
    assert (done.returncode, done.stderr) == (0, "")
    assert (clone / "rendered/test/ling3-flash/my-first/jobset.yml").is_file()
    assert "wrote experiments/ling3-flash/my-first.yml" in done.stdout


def test_wrong_value_prints_what_the_readme_shows(clone: Path) -> None:
    shown = blocks("console")[0].splitlines()
    done = run(shown[0].removeprefix("$ "), clone)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == shown[1]


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake ([a-z-]+)", "".join(blocks("sh"))))
    assert targets == {"render", "test"}
    assert targets <= set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))


def test_command_table_is_complete() -> None:
    listed = set(re.findall(r"^\| `renderer ([a-z]+)", README, flags=re.MULTILINE))
    assert listed == set(COMMANDS)


def test_every_page_is_linked() -> None:
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").iterdir()}
    assert set(re.findall(r"\]\((docs/[^)#]+)\)", README)) == pages


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), f"{page.name}: {link}"
