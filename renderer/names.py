"""Names of a run and the digests they carry."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any

REPLICATED_JOB = "slice-job"
MAX_LABEL = 63
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""The label of a JobSet that names its Kueue queue."""
ATTEMPT_ROOM = len("-a99")


def digest(data: Any) -> str:
    """Return the SHA-256 of `data` as 64 hex digits; the order of keys does not count."""
    canonical = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def budget(hosts: int) -> int:
    """Return how many characters a JobSet's name may have.

    The rule of JobSet's webhook: <jobset>-<replicatedJob>-<jobIndex>-<podIndex>-xxxxx is a DNS-1035 label.
    """
    pod = f"-{REPLICATED_JOB}-0-{hosts - 1}-xxxxx"
    return MAX_LABEL - len(pod)


def label(text: str) -> str:
    """Return `text` in lower case, every other character a -, first a letter: the alphabet of a DNS-1035 label."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name if name[:1].isalpha() else f"r-{name}".rstrip("-")


def run_name(name: str, chips: int, content_digest: str, hosts: int) -> str:
    """Return <name>-<chips>c-<digest8>; a name that does not fit is cut and ends in 4 hex digits of the whole."""
    suffix = f"-{chips}c-{content_digest[:8]}"
    room = budget(hosts) - ATTEMPT_ROOM - len(suffix)
    return _cut(label(name), name, room) + suffix


def room_for_name(chips: int, hosts: int) -> int:
    """Return how many characters the name before -<chips>c-<digest8> may have."""
    return budget(hosts) - ATTEMPT_ROOM - len(f"-{chips}c-") - 8


def object_name(run: str, attempt: int) -> str:
    """Return the name of the run's Kubernetes objects: attempt n > 1 appends -a<n>."""
    return run if attempt == 1 else f"{run}-a{attempt}"


_ATTEMPT = re.compile(r"(.*-[0-9a-f]{8})-a([0-9]{1,2})")


def without_attempt(name: str) -> str:
    """Return an object name without -a<n>; a digest that begins with a is none."""
    match = _ATTEMPT.fullmatch(name)
    return match[1] if match else name


def attempt_of(name: str) -> int:
    """Return the attempt that an object name ends in, 1 where it names none."""
    match = _ATTEMPT.fullmatch(name)
    return int(match[2]) if match else 1


def output_directory(base: str, run_name: str) -> str:
    """Return the directory <base>/<run_name> that a run writes to, in one spelling; empty without a base."""
    scheme, mark, path = base.rpartition("://")
    root = "/" if path.startswith("/") and not mark else ""
    return f"{scheme}{mark}{root}{posixpath.normpath(f'{path}/{run_name}').lstrip('/')}" if base else ""


def _cut(name: str, whole: str, room: int) -> str:
    if len(name) <= room:
        return name
    mark = hashlib.sha256(whole.encode("utf-8", "backslashreplace")).hexdigest()[:4]
    return f"{name[: room - 5].rstrip('-')}-{mark}"


def experiment_label(name: str) -> str:
    """Return a run's name as a label's value; one that does not fit is cut and ends in 4 hex digits of the whole."""
    return _cut(label(name), name, MAX_LABEL)


def label_value(text: str) -> str:
    """Return `text` as a Kubernetes label value: other characters become -, at most 63."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:MAX_LABEL].strip("-._")


def files_digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 over names and exact bytes of a run's files, jobset.yml's own line of it blanked."""
    total = hashlib.sha256()
    for name in sorted(files):
        data = blank(files[name]) if name == "jobset.yml" else files[name]
        total.update(f"{name}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()


CONTENT_DIGEST = "renderer/content-digest"
EXPERIMENT_DIGEST = "renderer/experiment-digest"
FILES_DIGEST = "renderer/files-digest"
_FILES_LINE = re.compile(rb'^( *renderer/files-digest: )"[0-9a-f]*"$', re.MULTILINE)


def blank(jobset: bytes) -> bytes:
    """Return jobset.yml with the value of its files digest left out."""
    return _FILES_LINE.sub(rb'\1""', jobset)


def seal(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return `files` with the files digest written into jobset.yml."""
    value = files_digest(files).encode()
    return {**files, "jobset.yml": _FILES_LINE.sub(rb'\1"' + value + b'"', files["jobset.yml"])}


def sealed(files: Mapping[str, bytes]) -> bool:
    """Return whether jobset.yml carries the files digest of `files`, in the one place for it."""
    jobset = files.get("jobset.yml", b"")
    return len(_FILES_LINE.findall(jobset)) == 1 and seal(dict(files))["jobset.yml"] == jobset
