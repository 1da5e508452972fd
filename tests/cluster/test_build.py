"""Which programs are used, and what a build that cannot work says. Nothing is built here."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tests.cluster import build
from tests.cluster.build import UNITS, Unit, missing, program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of built programs."""
    monkeypatch.setattr(build, "HOME", tmp_path)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def test_everything_is_missing_at_first(home: Path) -> None:
    assert [unit.name for unit in missing()] == ["etcd", "jobset", "kwok", "kubernetes", "kueue"]
    assert program("etcd") is None


def test_a_complete_folder_counts_as_built(home: Path) -> None:
    folder = home / "etcd-v3.6.13"
    folder.mkdir()
    (folder / "etcd").touch()
    assert program("etcd") == folder / "etcd"
    assert "etcd" not in [unit.name for unit in missing()]


def test_another_version_is_built_anew(home: Path) -> None:
    (home / "etcd-v3.6.12").mkdir()
    (home / "etcd-v3.6.12/etcd").touch()
    assert program("etcd") is None


def test_programs_in_kubebuilder_assets_come_first(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):  # what setup-envtest installs
        (assets / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert program("kube-apiserver") == assets / "kube-apiserver"
    assert [unit.name for unit in missing()] == ["jobset", "kwok", "kubernetes", "kueue"]


def test_kubernetes_is_built_with_the_releases_of_its_staging_folders() -> None:
    kubernetes = next(unit for unit in UNITS if unit.name == "kubernetes")
    original = "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/other v1 => v2\n)\n"
    assert build._go_mod(kubernetes, original) == (
        "module control-plane/kubernetes\n\ngo 1.26.0\nreplace k8s.io/api => k8s.io/api v0.36.3\n"
    )


def test_a_patch_is_built_from_a_copy(tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.mkdir()
    (original / "main.go").write_text('path := "/etc/x"\n')
    unit = Unit("x", "example.com/x", "v1.0.0", {"x": ""}, patch=("main.go", '"/etc/x"', 'os.Getenv("X")'))
    build._patch(unit, original, tmp_path / "patched")
    assert (tmp_path / "patched/main.go").read_text() == 'path := os.Getenv("X")\n'
    assert build._go_mod(unit, "") == ("module control-plane/x\n\ngo 1.26.0\nreplace example.com/x => ./patched\n")


def test_a_patch_that_no_longer_fits_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text("package main\n")
    unit = Unit("x", "example.com/x", "v1.0.0", {"x": ""}, patch=("main.go", '"/etc/x"', "nowhere"))
    with pytest.raises(click.ClickException, match="no longer has") as refusal:
        build._patch(unit, tmp_path, tmp_path / "patched")
    assert refusal.value.message == 'example.com/x v1.0.0: main.go no longer has "/etc/x" once'
