"""Builds the pod of a recorded launch inside the sandbox, so that its shell text can be run as it is.

Absolute paths of the pod's own folders are moved under the sandbox, in the text that runs and in the scripts it calls;
what is recorded is moved back.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.legacy import manifest
from renderer.location import Location
from renderer.problem import refuse

FOLDERS = ("root", "opt", "app", "deps", "workspace", "etc", "var/log", "tmp")
"""The pod's own top folders. Volumes are elsewhere, and their paths are only values here."""
INJECTED = {"JOB_COMPLETION_INDEX": "0", "TPU_WORKER_ID": "0"}
"""Variables that Kubernetes and GKE give every pod of a slice; this is the first one."""


@dataclass(frozen=True, slots=True)
class Pod:
    """What runs in the pod: `argv` and its environment, both with paths inside the sandbox."""

    root: Path
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    text: str


def from_job_set(job_set: Mapping[str, Any], objects: list[dict[str, Any]], root: Path, source: str) -> Pod:
    """Return the pod of a JobSet: its shell text, its variables as the kubelet sets them, its ConfigMaps as files."""
    container = manifest.container(job_set, source)
    environment = _environment(container)
    argv = [*(container.get("command") or ()), *(container.get("args") or ())]
    argv = [expand(str(word), environment) for word in argv]
    if len(argv) < 2 or Path(argv[0]).name not in {"bash", "sh"}:
        started = " ".join(argv[:3]) or "the image's own command"
        refuse("record-pod", Location(source), f"the container starts {started}: only bash and sh can be followed")
    _mount(job_set, objects, root, source)
    inside = (Path(argv[0]).name, *(into(word, root) for word in argv[1:]))
    text = argv[argv.index("-c") + 1] if "-c" in argv else next((w for w in argv if "\n" in w), "")
    return Pod(root, inside, environment | INJECTED, text)


def from_command(text: str, root: Path) -> Pod:
    """Return the pod in which xpk runs the text of its --command."""
    return Pod(root, ("bash", "-c", into(text, root)), dict(INJECTED), text)


def build(root: Path, checkout: Path, pod_checkout: str, files: Iterable[str]) -> None:
    """Make the pod's folders: the checkout where the pod has it, and `files` of the image, empty."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    target = root / pod_checkout.strip("/")
    shutil.copytree(checkout, target, symlinks=True, dirs_exist_ok=True)
    for script in target.rglob("*.sh"):
        if script.is_file() and not script.is_symlink():
            text = script.read_text(encoding="utf-8", errors="surrogateescape")
            script.write_text(into(text, root), encoding="utf-8", errors="surrogateescape")
    for name in files:
        path = root / name.strip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


_TOPS = "|".join(name.partition("/")[0] for name in FOLDERS)
_ABSOLUTE = re.compile(rf"(?<![\w./$}}-])/(?=(?:{_TOPS})(?:[/\s\"';:)]|$))")


def into(text: str, root: Path) -> str:
    """Return `text` with the pod's own absolute paths moved under `root`; the first line of a script stays."""
    first, newline, rest = text.partition("\n")
    if first.startswith("#!"):
        return first + newline + into(rest, root)
    return _ABSOLUTE.sub(lambda _: f"{root}/", text)


def _environment(container: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in container.get("env") or []:
        if "valueFrom" in item:
            kind, reference = next(iter(item["valueFrom"].items()))
            name = reference.get("name") or reference.get("fieldPath") or kind
            found[item["name"]] = f"<{kind} {name}>"
        else:
            found[item["name"]] = expand(str(item.get("value", "")), found)
    return found


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Return `text` as the kubelet hands it on: $(NAME) of known variables expanded, $$ a dollar."""

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else environment.get(name, match.group())

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", replace, text)


def _mount(job_set: Mapping[str, Any], objects: list[dict[str, Any]], root: Path, source: str) -> None:
    """Write the ConfigMaps that were applied beside the JobSet where its container mounts them."""
    data = {
        (item.get("metadata") or {}).get("name"): item.get("data") or {}
        for item in objects
        if item.get("kind") == "ConfigMap"
    }
    for mount, name in manifest.config_maps(job_set, source):
        folder = root / mount.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for key, text in data.get(name, {}).items():
            (folder / Path(key).name).write_text(str(text), encoding="utf-8")
