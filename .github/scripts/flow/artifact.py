"""Reads artifacts that nobody vouches for: what a run of a branch's own code uploaded."""

from __future__ import annotations

import io
import lzma
import stat
import zipfile
import zlib

import urllib3
from github.Artifact import Artifact
from github.WorkflowRun import WorkflowRun

from flow.refusal import NothingToDoError, RefusedError

MAX_ZIP = 8 << 20
"""A larger artifact is not downloaded."""

_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What Python's zipfile raises for archives that are damaged, encrypted or packed in ways it does not know."""


def fetch(run: WorkflowRun, name: str, file: str, limit: int, token: str) -> bytes:
    """Return the only file of the run's artifact `name`, which must be called `file` and hold at most `limit` bytes.

    Nothing is written to disk, so that no path, link or mode of the archive means anything.
    """
    found = [artifact for artifact in run.get_artifacts() if artifact.name == name and not artifact.expired]
    if not found:
        raise NothingToDoError(f"run {run.id} has no artifact {name}")
    newest = max(found, key=lambda artifact: artifact.id)  # a run that was started again has one of each attempt
    if newest.size_in_bytes > MAX_ZIP:
        raise RefusedError(f"artifact {name} has {newest.size_in_bytes:,} bytes, more than {MAX_ZIP:,}")
    return only_file(_download(newest, token), file, limit)


def _download(artifact: Artifact, token: str) -> bytes:
    """Return the archive; the store that GitHub redirects to is another host, which must not see the token."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    with urllib3.PoolManager(retries=urllib3.Retry(3, status_forcelist=(500, 502, 503))) as pool:
        try:
            answer = pool.request(
                "GET", artifact.archive_download_url, headers=headers, preload_content=False, timeout=60
            )
            data = answer.read(MAX_ZIP + 1)
        except urllib3.exceptions.HTTPError as error:
            raise RefusedError(f"artifact {artifact.name} cannot be downloaded: {error}") from error
    if answer.status != 200:
        raise RefusedError(f"artifact {artifact.name} cannot be downloaded: HTTP {answer.status}")
    if len(data) > MAX_ZIP:
        raise RefusedError(f"artifact {artifact.name} has more than {MAX_ZIP:,} bytes")
    return bytes(data)


def only_file(archive: bytes, name: str, limit: int) -> bytes:
    """Return the bytes of the one file in a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = opened.infolist()
            if [entry.filename for entry in entries] != [name]:
                raise RefusedError(f"the artifact must hold {name} and nothing else")
            kind = stat.S_IFMT(entries[0].external_attr >> 16)
            if kind not in {0, stat.S_IFREG}:
                raise RefusedError(f"{name} in the artifact is no regular file")
            with opened.open(entries[0]) as file:
                data = file.read(limit + 1)
    except _BROKEN as error:
        raise RefusedError(f"the artifact is no readable zip archive: {error}") from error
    if len(data) > limit:
        raise RefusedError(f"{name} in the artifact has more than {limit:,} bytes")
    return data
