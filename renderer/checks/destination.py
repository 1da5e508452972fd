"""Checks of where a run writes and what its pods carry: bucket, output directory, environment, flags, watcher."""

from __future__ import annotations

import re
from collections.abc import Iterator

from renderer.checks.content import placeholder
from renderer.configure import Configuration
from renderer.keys import DEPLOY_KEYS
from renderer.merge import leaves
from renderer.problem import Problem

_OWNED = {
    "BASH_ENV": "nobody in a pod: bash would run it before the pod's own script",
    "HOSTNAME": "Kubernetes",
    "IFS": "the shell",
    "LOG_FILE": "the pod's own script",
    "PATH": "the image and its environment",
    "SHELLOPTS": "the shell",
    "GCS_BUCKET": "the renderer, from deploy.GCS_BUCKET",
    "GITHUB_TOKEN": "the renderer, from deploy.GITHUB_TOKEN_SECRET",
    "JOB_COMPLETION_INDEX": "Kubernetes",
    "LIBTPU_INIT_ARGS": "the renderer, from deploy.LIBTPU_INIT_ARGS",
    "POD_ROOT": "nobody in a pod: it moves every path of the pod's scripts",
    "RUN_NAME": "the renderer",
    **dict.fromkeys(("MEGASCALE_COORDINATOR_ADDRESS", "MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID"), "JobSet and GKE"),
    **dict.fromkeys(("TPU_ACCELERATOR_TYPE", "TPU_CHIPS_PER_HOST_BOUNDS", "TPU_HOST_BOUNDS", "TPU_TOPOLOGY"), "GKE"),
    **dict.fromkeys(("TPU_SKIP_MDS_QUERY", "TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"), "GKE"),
}
_OWNED_PREFIXES = {"GIT_CONFIG_": "the pod's own script", "JOBSET_": "JobSet", "KUBERNETES_": "Kubernetes"}
_TPU_FLAG = re.compile(r"--xla_(?:(?:tpu|sc|jf|mosaic)|[a-z0-9_]*megascale)[a-z0-9_]*")
_LONGEST_VARIABLE = 128 * 1024
"""What Linux passes of one variable to a program, name and all (MAX_ARG_STRLEN)."""


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem where outputs would land elsewhere than promised, or a variable or flag is in the wrong place."""
    yield from _output_directory(configuration)
    yield from _environment(configuration)
    yield from _flags(configuration)
    yield from _watcher(configuration)
    yield from _without_effect(configuration)


def _output_directory(configuration: Configuration) -> Iterator[Problem]:
    bucket = configuration.leaf("deploy", "GCS_BUCKET")
    leaf = configuration.leaf("maxtext", "base_output_directory")
    path = "maxtext.base_output_directory"
    if leaf is None:
        yield Problem("output-directory", configuration.start, path, "missing: where does the run write?")
    elif not isinstance(leaf.node.value, str) or bucket is None or placeholder(leaf.node.value, path):
        return
    elif leaf.node.value.startswith("gs://"):
        if leaf.node.value.removeprefix("gs://").split("/")[0] != bucket.node.value:
            where = f"deploy.GCS_BUCKET, {bucket.node.key_at.in_line}"
            message = f"{leaf.node.value} is not in the bucket {bucket.node.value} ({where})"
            yield Problem("output-directory", leaf.at, path, message)
    elif not any(_under(leaf.node.value, mount) for mount, _ in _entries(configuration, "VOLUMES")):
        neither = f"{leaf.node.value} is neither a gs:// URL nor under a mount of deploy.VOLUMES"
        message = f"{neither}: it would be lost with the pod"
        yield Problem("output-directory", leaf.at, path, message)


def _under(path: str, mount: str) -> bool:
    return path == mount or path.startswith(f"{mount}/")


def _entries(configuration: Configuration, key: str) -> Iterator[tuple[str, str]]:
    tree = configuration.deploy.get(key)
    if isinstance(tree, dict):
        for name, leaf in leaves(tree):
            yield name, str(leaf.node.value)


def _environment(configuration: Configuration) -> Iterator[Problem]:
    tree = configuration.deploy.get("ENV")
    for name, leaf in leaves(tree) if isinstance(tree, dict) else ():
        path = f"deploy.ENV.{name}"
        value = str(leaf.node.value)
        if owner := _owner(name):
            yield Problem("env-owned", leaf.node.key_at, path, f"is set by {owner}: delete it here")
        elif len(name) + len(value.encode("utf-8", "replace")) + 2 > _LONGEST_VARIABLE:
            message = f"is longer than the {_LONGEST_VARIABLE} bytes that Linux passes to a program: put it into a file"
            yield Problem("env-size", leaf.at, path, message)
        elif name.startswith("M_"):
            key = name.removeprefix("M_").lower()
            message = f"would silently override run.yml: write maxtext.{key}"
            yield Problem("env-maxtext", leaf.node.key_at, path, message)
        elif name == "XLA_FLAGS" and (flag := _TPU_FLAG.search(value)):
            message = f"{flag.group()} is a TPU flag: it belongs in deploy.LIBTPU_INIT_ARGS"
            yield Problem("env-xla-flags", leaf.at, path, message)


def _owner(name: str) -> str:
    """Return who sets a variable in the pod, nothing for one that is free."""
    prefixes = (owner for prefix, owner in _OWNED_PREFIXES.items() if name.startswith(prefix))
    return _OWNED.get(name) or next(prefixes, "")


def _flags(configuration: Configuration) -> Iterator[Problem]:
    tree = configuration.deploy.get("LIBTPU_INIT_ARGS")
    for name, leaf in leaves(tree) if isinstance(tree, dict) else ():
        if name.startswith(("xla_gpu_", "xla_cpu_")):
            message = "is no TPU flag: libtpu would refuse it at start"
            yield Problem("flag-placement", leaf.node.key_at, f"deploy.LIBTPU_INIT_ARGS.{name}", message)


def _watcher(configuration: Configuration) -> Iterator[Problem]:
    """The RFC's hf_validate_env: what the conversion needs is known before the run starts."""
    enabled = configuration.leaf("deploy", "ENABLE_HF_CONVERSION")
    if enabled is None or enabled.node.value is not True:
        return
    for key in ("HF_WATCHER_IMAGE", "HF_OUTPUT_DIRECTORY"):
        if configuration.leaf("deploy", key) is None:
            message = f"missing: deploy.ENABLE_HF_CONVERSION is true ({enabled.node.key_at.in_line})"
            yield Problem("hf-missing", enabled.at, f"deploy.{key}", message)
    checkpoints = configuration.leaf("maxtext", "enable_checkpointing")
    if checkpoints and checkpoints.node.value is False:
        message = "true, but maxtext.enable_checkpointing is false: there is nothing to convert"
        yield Problem("hf-checkpoints", enabled.at, "deploy.ENABLE_HF_CONVERSION", message)


def _without_effect(configuration: Configuration) -> Iterator[Problem]:
    """A key that someone set for this very run, and that nothing reads in it, is a mistake; in a preset it is not."""
    for key, reason in _unread(configuration):
        leaf = configuration.leaf("deploy", key)
        if leaf and leaf.layer.name in {"experiment", "command line"}:
            yield Problem("deploy-no-effect", leaf.node.key_at, f"deploy.{key}", f"has no effect: {reason}")


def _unread(configuration: Configuration) -> Iterator[tuple[str, str]]:
    launch = configuration.launch
    enabled = configuration.leaf("deploy", "ENABLE_HF_CONVERSION")
    if enabled is None or enabled.node.value is not True:
        hf_keys = sorted(key for key in DEPLOY_KEYS if key.startswith("HF_"))
        yield from ((key, "deploy.ENABLE_HF_CONVERSION is not true") for key in hf_keys)
    if launch.mode == "image":
        yield "GIT_REPOSITORY", "an image holds its own code, so nothing is cloned"
    if launch.mode == "source":
        yield "IMAGE_REPOSITORY", "the pod builds MaxText from source"
    elif launch.image and "/" in launch.image:
        yield "IMAGE_REPOSITORY", "launch.image is a full reference"
