"""Real inputs that broke tools of this kind, each with everything that must come of it.

A folder of tests/cases/ is one test: `input/` is laid over `base/`, `command` (default: render) is run, `expected/`
holds exit code and output, and jobset.yml and run.yml where a run came of it. To add one, add a folder and run
UPDATE_CASES=1 pytest tests/test_cases_yaml.py; then read what it wrote.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest
from content import Ran, run, settled, tree

from renderer.manifest_yaml import load

FOLDER = Path(__file__).with_name("cases")
CASES = sorted(path.parent for path in FOLDER.glob("*/input"))


def come_of(case: Path, root: Path) -> tuple[Ran, dict[str, str]]:
    """Run a case in `root`; return what it printed, and each expected file's text."""
    for folder in (FOLDER / "base", case / "input"):
        shutil.copytree(folder, root, dirs_exist_ok=True)
    command = case / "command"
    ran = run(root, *shlex.split(command.read_text() if command.exists() else "render tiny/case"))
    text = f"exit {ran.code}\n{ran.err}" + (settled(ran.out) if command.exists() else "")
    rendered = tree(root, "rendered/test/tiny/case")
    found = {
        Path(path).name: settled(data.decode()) for path, data in rendered.items() if not path.endswith("derive.json")
    }
    return ran, {"output.txt": text, **found}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Path, tmp_path: Path) -> None:
    _, found = come_of(case, tmp_path)
    expected = case / "expected"
    if os.environ.get("UPDATE_CASES"):
        shutil.rmtree(expected, ignore_errors=True)
        expected.mkdir()
        for name, text in found.items():
            (expected / name).write_bytes(text.encode())
    assert found == {path.name: path.read_bytes().decode() for path in expected.iterdir()}


def test_every_case_of_the_list_is_here() -> None:
    assert {int(case.name[:2]) for case in CASES} == set(range(1, 25))


def test_crlf_and_byte_order_mark_give_the_very_bytes_of_lf(tmp_path: Path) -> None:
    runs = []
    for number, name in enumerate(("09-lf", "09-crlf-and-a-byte-order-mark")):
        root = tmp_path / str(number)
        assert come_of(FOLDER / name, root)[0].code == 0
        runs.append(tree(root))
    assert runs[0] == runs[1]


def test_the_same_layer_twice_is_the_layer_once(tmp_path: Path) -> None:
    """[D1] stays [D1], and a flag stays one flag."""
    case = FOLDER / "16-the-same-layer-twice"
    assert come_of(case, tmp_path)[0].code == 0
    derive = load((tmp_path / "rendered/test/tiny/case/derive.json").read_text())
    assert derive["derivations"] == ["D1"]
