"""The same layers give the same bytes: on any machine, for any user, and without touching what does not change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from renderer.cli import main

ROOT = Path(__file__).parents[1]

MACHINES: dict[str, dict[str, str]] = {
    "plain": {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "USER": "one"},
    "ascii": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Asia/Shanghai"},
    "german": {"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "TZ": "Europe/Berlin", "PYTHONHASHSEED": "1"},
    "turkish": {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "TZ": "America/St_Johns", "PYTHONHASHSEED": "77"},
    "no variables": {},
}


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    """Return a folder with a copy of the shipped layers, nothing rendered."""
    for name in ("presets", "datasets", "experiments"):
        shutil.copytree(ROOT / name, tmp_path / "layers" / name)
    return tmp_path / "layers"


def render_elsewhere(layers: Path, folder: Path, environment: dict[str, str], umask: int) -> dict[str, bytes]:
    """Render a copy of the layers in a process of its own; return every file under rendered/."""
    copy_in_reverse(layers, folder)
    home = folder.with_name(f"{folder.name} home")
    home.mkdir()
    command = [sys.executable, "-m", "renderer", "--root", str(folder), "render"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home), **environment}
    done = subprocess.run(command, cwd=home, env=environment, umask=umask, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert list(home.iterdir()) == []
    return files(folder / "rendered")


def copy_in_reverse(layers: Path, folder: Path) -> None:
    """Copy the layers, the last file first, dated long ago: neither order nor dates of a folder may matter."""
    for path in sorted((path for path in layers.rglob("*") if path.is_file()), reverse=True):
        copy = folder / path.relative_to(layers)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        os.utime(copy, (1, 1))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def traces(folder: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of the last change of everything below `folder`."""
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_every_machine_renders_the_same_bytes(layers: Path, tmp_path: Path) -> None:
    assert main(["--root", str(layers), "render"]) == 0
    expected = files(layers / "rendered")
    shutil.rmtree(layers / "rendered")
    folders = ("a", "deep/er/b", "with space", "ünï-🚀", "-dash")
    for (name, environment), folder, umask in zip(
        MACHINES.items(), folders, (0o022, 0o077, 0, 0o027, 0o002), strict=True
    ):
        assert render_elsewhere(layers, tmp_path / folder, environment, umask) == expected, name


def test_a_second_render_writes_nothing(layers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(layers), "render"]) == 0
    before = traces(layers)
    assert main(["--root", str(layers), "render"]) == 0
    assert traces(layers) == before
    assert capsys.readouterr().out.endswith("nothing to write: rendered/ is up to date\n")


def test_a_changed_experiment_leaves_the_files_of_others_alone(layers: Path) -> None:
    assert main(["--root", str(layers), "render"]) == 0
    folder = layers / "rendered/prod/ling3-flash/lr3e4-fineweb"
    before = {path: trace for path, trace in traces(layers / "rendered").items() if Path(path).is_file()}
    source = layers / "experiments/ling3-flash/lr3e4-fineweb.yml"
    source.write_text(source.read_text("utf-8").replace("steps: 50000", "steps: 50001"), "utf-8")
    assert main(["--root", str(layers), "render"]) == 0
    after = traces(layers / "rendered")
    changed = {path for path, trace in before.items() if after.get(path) != trace}
    assert {Path(path).parent for path in changed} == {folder}
    assert {Path(path).name for path in changed} == {"jobset.yml", "run.yml", "watcher.yml"}
