"""A run's files as the keys people write, and where the values that differ come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from renderer import compare
from renderer.configure import Configuration
from renderer.names import blank
from renderer.origins import Assignment, assignments
from renderer.scalars import write
from renderer.secrets import find, mask

MAX_TEXT = 1_000
"""Of a longer value the report shows the beginning."""

Difference = tuple[str, Any, Any]
"""A key, its old and its new value; compare.ABSENT where a side lacks it."""

_POD = r"jobset\.spec\.replicatedJobs\[slice-job\]\.template\.spec"
_SPEC = rf"{_POD}\.template\.spec"
_TRAINER = rf"{_SPEC}\.containers\[trainer\]"
_KEYS = tuple(
    (re.compile(pattern), key)
    for pattern, key in (
        (r"maxtext\.base_config", ""),
        (r"maxtext\.model_name", "deploy.MAXTEXT_MODEL"),
        (r"derive\.model", ""),
        (r"derive\.trainer", ""),
        (r"derive\.maxtext_version", "deploy.MAXTEXT_VERSION"),
        (r"derive\.derivations", "deploy.DERIVATIONS"),
        (r"derive\.warmup_iters", "deploy.WARMUP_ITERS"),
        (r"derive\.logical_axis_rules", "maxtext.logical_axis_rules"),
        (r"jobset\.metadata\.namespace", "deploy.K8S_NAMESPACE"),
        (r"jobset\.metadata\.labels\.renderer/chips", "launch.chips"),
        (r"jobset\.metadata\.labels\.renderer/environment", "launch.environment"),
        (r"jobset\.metadata\.labels\.renderer/model", "launch.model"),
        (r"jobset\.metadata\.labels\.renderer/branch", ""),
        (r"jobset\.metadata\.labels\.kueue\.x-k8s\.io/queue-name", "deploy.QUEUE"),
        (r"jobset\.spec\.ttlSecondsAfterFinished", "deploy.TTL_SECONDS"),
        (r"jobset\.spec\.failurePolicy\.maxRestarts", "deploy.K8S_MAX_RESTARTS"),
        (rf"{_POD}\.completions", "deploy.COMPLETIONS"),
        (rf"{_POD}\.parallelism", ""),
        (rf"{_POD}\.activeDeadlineSeconds", "deploy.MAX_HOURS"),
        (rf"{_SPEC}\.terminationGracePeriodSeconds", "deploy.GRACE_SECONDS"),
        (rf"{_SPEC}\.priorityClassName", "deploy.PRIORITY_CLASS"),
        (rf"{_SPEC}\.serviceAccountName", "deploy.SERVICE_ACCOUNT"),
        (rf"{_SPEC}\.nodeSelector\.cloud\.google\.com/gke-tpu-accelerator", "deploy.ACCELERATOR"),
        (rf"{_SPEC}\.nodeSelector\.cloud\.google\.com/gke-tpu-topology", "deploy.TPU_TOPOLOGY"),
        (rf"{_TRAINER}\.image", "launch.image"),
        (rf"{_TRAINER}\.env\[RUN_NAME\]\.\w+", ""),
        (rf"{_TRAINER}\.env\[GCS_BUCKET\]\.value", "deploy.GCS_BUCKET"),
        (rf"{_TRAINER}\.env\[GITHUB_TOKEN\]\.valueFrom\.secretKeyRef\.name", "deploy.GITHUB_TOKEN_SECRET"),
        (rf"{_TRAINER}\.env\[(\w+)\]\.value", r"deploy.ENV.\1"),
        (rf"{_TRAINER}\.env\[\w+\]\..+", ""),
        (rf"{_SPEC}\.volumes\[pod\]\.configMap\.name", "pod scripts"),
        (rf"{_SPEC}\.volumes\[volume-.+", ""),
        (r"watcher\..*\.containers\[watcher\]\.image", "deploy.HF_WATCHER_IMAGE"),
        (r"watcher\..*\.env\[HF_OUTPUT_DIRECTORY\]\.value", "deploy.HF_OUTPUT_DIRECTORY"),
        (r"watcher\..*\.env\[HF_INTERVAL_SECONDS\]\.value", "deploy.HF_INTERVAL_SECONDS"),
        (r"watcher\..*\.serviceAccountName", "deploy.HF_SERVICE_ACCOUNT"),
        (r"watcher\.kind", "deploy.ENABLE_HF_CONVERSION"),
        (r"watcher\..*", ""),
    )
)
"""Where the keys of layers end up in the files. An empty key: it follows from another."""

_FLAGS = re.compile(rf"{_TRAINER}\.env\[LIBTPU_INIT_ARGS\]\.value")
_ARGUMENTS = re.compile(rf"{_TRAINER}\.args")
_MOUNT = re.compile(rf"{_TRAINER}\.volumeMounts\[(/.+)\]\.name")
_ARGUMENT_KEYS = {
    "--mode": "mode",
    "--repository": "deploy.GIT_REPOSITORY",
    "--branch": "launch.branch",
    "--commit": "launch.commit",
}


def differences(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[Difference]:
    """Return what differs between two runs' files, as the keys that layers set.

    Raises ValueError, KeyError, TypeError or AttributeError if the files are not runs'.
    """
    if _nameless(old) == _nameless(new):
        old, new = ({name: data for name, data in files.items() if name != "jobset.yml"} for files in (old, new))
    before, after = _apart(old["run.yml"], new["run.yml"])
    old, new = {**old, "run.yml": before}, {**new, "run.yml": after}
    return list(compare.differences(as_written(old), as_written(new)))


_SCALAR = rb'(?:"(?:[^"\\]|\\.)*+"|[-+.\w]++)'
_LINE = re.compile(rb"(\w+): (?:%b|\[(?:%b(?:, %b)*)?\])" % (_SCALAR, _SCALAR, _SCALAR))
"""A key of run.yml, with a value that cannot go on in the next line."""


def _apart(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Return what two run.yml do not hold alike, where each key has its line: parsing the rest would tell nothing."""
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return old, new
    return _without(before, after), _without(after, before)


def _without(lines: Mapping[bytes, bytes], others: Mapping[bytes, bytes]) -> bytes:
    return b"\n".join(line for key, line in lines.items() if line != others.get(key)) or b"{}"


def _lines(data: bytes) -> dict[bytes, bytes] | None:
    """Return the lines of a run.yml by key, nothing where one is none, or a key is there twice."""
    lines = [_LINE.fullmatch(line) for line in data.split(b"\n") if line and not line.startswith(b"#")]
    found = {match[1]: match[0] for match in lines if match}
    return found if len(found) == len(lines) else None


_NAMES = (
    re.compile(rb'^  name: "([a-z][-a-z0-9]*)"$', re.MULTILINE),
    re.compile(rb'- name: RUN_NAME\n +value: "([^"\\]+)"$', re.MULTILINE),
)
_DERIVED = re.compile(
    rb"^    renderer/(?:content-digest|experiment-digest|experiment|owner): .*\n|^#.*\n", re.MULTILINE
)


def _nameless(files: Mapping[str, bytes]) -> bytes:
    """Return jobset.yml without what follows from the content: where that is alike, parsing it would tell nothing."""
    data = blank(files.get("jobset.yml", b""))
    for pattern in _NAMES:
        if name := pattern.search(data):
            data = data.replace(b'"%b"' % name[1], b'""').replace(b'"run-%b"' % name[1], b'""')
    return _DERIVED.sub(b"", data)


def as_written(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a run's values by the keys that layers set; what no key sets keeps its path in the file."""
    flat = compare.flatten(files)
    found: dict[str, Any] = {}
    for path, value in flat.items():
        if _FLAGS.fullmatch(path):
            flags = (flag.removeprefix("--").partition("=") for flag in str(value).split())
            found |= {f"deploy.LIBTPU_INIT_ARGS.{name}": text for name, _, text in flags}
        elif _ARGUMENTS.fullmatch(path) and isinstance(value, list):
            pairs = dict(zip(value[::2], value[1::2], strict=False))
            found |= {key: pairs[name] for name, key in _ARGUMENT_KEYS.items() if name in pairs}
        elif path == "derive.load_parameters_path":
            paths = value if isinstance(value, dict) else {}
            found |= {f"deploy.LOAD_PARAMETERS_PATH_{name.upper()}": text for name, text in paths.items() if text}
        elif mount := _MOUNT.fullmatch(path):
            claim = f"jobset.spec.replicatedJobs[slice-job].template.spec.template.spec.volumes[{value}]"
            found[f"deploy.VOLUMES.{mount[1]}"] = flat.get(f"{claim}.persistentVolumeClaim.claimName", value)
        elif key := _key(path):
            found[key] = value
    return found


@lru_cache(maxsize=16384)
def _key(path: str) -> str:
    if path.startswith("maxtext.") and path not in {"maxtext.base_config", "maxtext.model_name"}:
        return path
    for pattern, key in _KEYS:
        if match := pattern.fullmatch(path):
            return match.expand(key)
    return "" if "]." in path.partition(".volumeMounts[/")[2] else path


def origin(configuration: Configuration, path: str) -> list[Assignment]:
    """Return every assignment of one key, the winning one first, as far as layers set it."""
    namespace, _, key = path.partition(".")
    if namespace == "launch":
        place = configuration.launch.places.get(key)
        value = getattr(configuration.launch, key, None)
        return [Assignment(path, place, "experiment", shown(path, value), "wins")] if place else []
    if namespace not in {"deploy", "maxtext"} or not key:
        return []
    return [found for found in assignments(configuration, namespace, key) if _same_key(found.path, path)]


def _same_key(found: str, path: str) -> bool:
    return found == path or found.startswith(f"{path}.")


def own(configuration: Configuration) -> Iterator[tuple[str, list[Assignment]]]:
    """Yield what an experiment itself sets, each key with all its assignments."""
    if configuration.experiment is None:
        return
    layer = configuration.experiment.layer
    for namespace, entries in (("deploy", layer.deploy), ("maxtext", layer.maxtext)):
        for key, node in entries.items():
            names = [f"{key}.{name}" for name in node.value] if isinstance(node.value, dict) else [key]
            for name in names:
                found = origin(configuration, f"{namespace}.{name}")
                if found and found[0].layer == "experiment":
                    yield f"{namespace}.{name}", found


def shown(path: str, value: Any) -> str:
    """Return a value as one line: no credential in it, and of a long one the beginning."""
    if value is compare.ABSENT:
        return "(absent)"
    try:
        text = write(value)
    except (ValueError, TypeError):
        text = repr(value)
    return masked(path, text)


@lru_cache(maxsize=16384)
def masked(path: str, text: str) -> str:
    """Return the text of a value without credentials, of a long one the beginning."""
    text = mask(text, find(path.rpartition(".")[2], text))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text)} characters)"
