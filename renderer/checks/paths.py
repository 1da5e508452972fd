"""Checks of values that become paths, URLs and environment variables of the pod: run_name, output directory, mounts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from renderer.checks.content import placeholder
from renderer.configure import Configuration
from renderer.merge import Leaf, leaves
from renderer.problem import Problem
from renderer.scalars import quote

_RUN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_])?")
_DIRECTORY = re.compile(r"(?:gs://[^/\s]+)?(?:/[A-Za-z0-9._=+@~-]+)*/?")
_OWN_MOUNTS = ("/etc/maxtext", "/etc/maxtext-pod", "/dev/shm")  # noqa: S108
# What the image, Kubernetes and the pod's own scripts need, with everything below it ...
_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/run")
_MAXTEXT = ("/opt/maxtext_venv", "/root/maxtext")
_WHOLE = ("/home", "/opt", "/root", "/tmp", "/var")  # noqa: S108  ... and what may have mounts below it only


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem per value that would lead elsewhere than it reads."""
    yield from _run_name(configuration)
    yield from _output_directory(configuration)
    tree = configuration.deploy.get("VOLUMES")
    for mount, leaf in leaves(tree) if isinstance(tree, dict) else ():
        yield from _mount(mount, leaf)


def _run_name(configuration: Configuration) -> Iterator[Problem]:
    """run_name is a folder below the output directory, a part of the log's path, and the pod's RUN_NAME."""
    leaf = configuration.leaf("maxtext", "run_name")
    value = leaf.node.value if leaf else None
    if leaf is None or not isinstance(value, str) or _RUN_NAME.fullmatch(value):
        return
    if value.isprintable() and "${" not in value and not placeholder(value, "maxtext.run_name"):
        message = f"{quote(value[:80])} is not a run's name: at most 128 letters, digits, - _ ."
        yield Problem("run-name", leaf.at, "maxtext.run_name", message)


def _output_directory(configuration: Configuration) -> Iterator[Problem]:
    leaf = configuration.leaf("maxtext", "base_output_directory")
    value = leaf.node.value if leaf else None
    if leaf is None or not isinstance(value, str) or placeholder(value, "maxtext.base_output_directory"):
        return
    segments = value.removeprefix("gs://").split("/")
    if not _DIRECTORY.fullmatch(value) or ".." in segments or "." in segments or value in {"", "gs://"}:
        message = (
            f"{quote(value[:80])} is not a plain gs:// URL or absolute path: no spaces, no . or .. between slashes"
        )
        yield Problem("output-directory", leaf.at, "maxtext.base_output_directory", message)


def _mount(mount: str, leaf: Leaf) -> Iterator[Problem]:
    path = f"deploy.VOLUMES.{mount}"
    place = leaf.node.key_at
    if posixpath.normpath(mount) != mount:
        yield Problem("volume-mount", place, path, f"is {posixpath.normpath(mount)}: write it so")
        return
    own = next((other for other in _OWN_MOUNTS if mount == other or _nested(mount, other)), "")
    if own:
        yield Problem("volume-mount", place, path, f"collides with {own}, which the renderer mounts")
    elif mount in _WHOLE or any(mount == other or mount.startswith(f"{other}/") for other in (*_SYSTEM, *_MAXTEXT)):
        yield Problem("volume-mount", place, path, "would hide what the image needs: mount elsewhere, such as /data")


def _nested(one: str, other: str) -> bool:
    return one.startswith(f"{other}/") or other.startswith(f"{one}/")
