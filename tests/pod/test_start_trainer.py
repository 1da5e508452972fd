"""The start-up shim over stand-ins for MaxText's layouts: which failures end with exit code 2, and which never."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SHIM = Path(__file__).parents[2] / "pod/start_trainer.py"
HANDLER = """
import sys
def _handle_config_exception(e):
    sys.stderr.write(f"MAXTEXT CONFIG ERROR: {e}\\n")
    if "unittest" not in sys.modules:
        sys.exit(2)
    raise e
def initialize(argv):
    try:
        return load(argv)
    except Exception as e:
        _handle_config_exception(e)
        raise e
"""
OLD = """
def initialize(argv):
    return load(argv)
"""
LOAD = """
import builtins
def maybe_initialize_jax_distributed_system():
    raise ValueError("no coordinator")
def load(argv):
    what = argv[1]
    if what == "cluster":
        maybe_initialize_jax_distributed_system()
    if what in {"ValueError", "TypeError", "KeyError", "RuntimeError", "NotImplementedError", "OSError", "MemoryError"}:
        raise getattr(builtins, what)(what)
    return what
"""
TRAIN = """
import sys
{imports}
def main(argv):
    what = pyconfig.initialize(argv)
    print("argv", argv[1:], "path", sys.path[0], "name", __name__)
    train_utils.validate_train_config(what)
    maxtext_utils.create_device_mesh(what)
    if what == "later":
        raise ValueError("not about the configuration")
if __name__ == "__main__":
    sys.exit(main(sys.argv))
"""
CHECKS = {
    "train_utils": 'def validate_train_config(what):\n    assert what != "check", "need a run_name"\n',
    "maxtext_utils": 'def create_device_mesh(what):\n    assert what != "mesh", "Number of devices does not match"\n',
}


def install(site: Path, layout: str) -> str:
    """Write a stand-in of one of MaxText's layouts into `site`; return its trainer's module."""
    package = site / layout.partition("-")[0]
    new = layout.startswith("maxtext")
    folders = ("configs", "utils", "trainers") if new else ()
    for folder in (package, *(package / name for name in folders)):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    loader = LOAD + (OLD if layout.endswith("-old") else HANDLER)
    (package / ("configs/pyconfig.py" if new else "pyconfig.py")).write_text(loader)
    for name, text in CHECKS.items():
        (package / ("utils" if new else ".") / f"{name}.py").write_text(text)
    names = ("maxtext.configs", "maxtext.utils") if new else ("MaxText", "MaxText")
    imports = f"from {names[0]} import pyconfig\nfrom {names[1]} import maxtext_utils, train_utils"
    (package / ("trainers/train.py" if new else "train.py")).write_text(TRAIN.format(imports=imports))
    return "maxtext.trainers.train" if new else "MaxText.train"


LAYOUTS = ["maxtext", "MaxText", "MaxText-old"]


def start(tmp_path: Path, module: str, *words: str, preload: str = "unittest") -> subprocess.CompletedProcess[str]:
    """Start the shim in a Python that has `preload` loaded, as jax loads unittest."""
    code = f"import {preload}, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, str(SHIM), module, *words]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("fine", 0),
        ("ValueError", 2),
        ("TypeError", 2),
        ("KeyError", 2),
        ("NotImplementedError", 2),
        ("check", 2),
        ("mesh", 2),
        ("RuntimeError", 1),
        ("OSError", 1),
        ("MemoryError", 1),
        ("cluster", 1),
        ("later", 1),
    ],
)
def test_exit_codes(tmp_path: Path, layout: str, what: str, code: int) -> None:
    module = install(tmp_path, layout)
    assert start(tmp_path, module, what).returncode == code


@pytest.mark.parametrize("preload", ["unittest", "sys"])
def test_maxtexts_own_words_are_kept(tmp_path: Path, preload: str) -> None:
    result = start(tmp_path, install(tmp_path, "maxtext"), "mesh", preload=preload)
    assert (result.returncode, result.stderr) == (2, "MAXTEXT CONFIG ERROR: Number of devices does not match\n")


def test_without_maxtexts_handler_the_error_is_said_in_one_line(tmp_path: Path) -> None:
    result = start(tmp_path, install(tmp_path, "MaxText-old"), "KeyError")
    assert (result.returncode, result.stderr) == (2, "CONFIG ERROR: KeyError: 'KeyError'\n")


def test_the_trainer_runs_as_python_m_would_run_it(tmp_path: Path) -> None:
    module = install(tmp_path, "maxtext")
    command = [sys.executable, str(SHIM), module, "fine", "a=1"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == f"argv ['fine', 'a=1'] path {tmp_path} name __main__\n"


def test_a_package_of_another_kind_just_runs(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/train.py").write_text("raise SystemExit(5)\n")
    assert start(tmp_path, "other.train").returncode == 5


def test_a_missing_trainer_is_no_configuration_error(tmp_path: Path) -> None:
    assert start(tmp_path, "nowhere.train").returncode == 1


def test_a_broken_import_inside_maxtext_shows_itself(tmp_path: Path) -> None:
    module = install(tmp_path, "maxtext")
    (tmp_path / "maxtext/configs/pyconfig.py").write_text("import not_installed_anywhere\n")
    result = start(tmp_path, module, "fine")
    assert result.returncode == 1
    assert "No module named 'not_installed_anywhere'" in result.stderr
