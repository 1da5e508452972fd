"""Zip archives as artifacts have them, well-formed and not."""

from __future__ import annotations

import io
import stat
import zipfile

from renderer.report import codec
from renderer.report.data import VERSION, Report, Totals


def zip_file(archive: bytes) -> bytes:
    """Return the first file of an archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.read(opened.namelist()[0])


def zipped(files: dict[str, bytes], *, link: str = "") -> bytes:
    """Return an archive of these files; the one called `link` is a symbolic link to its content."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFLNK if name == link else stat.S_IFREG | 0o755) << 16
            archive.writestr(entry, data)
    return out.getvalue()


def reported(base: str = "main", refused: int = 0) -> bytes:
    """Return the artifact with the report of a merge into `base` that launches nothing."""
    made = Report(VERSION, f"origin/{base}", "b" * 40, "c" * 40, f"the history of {base}", Totals(refused=refused))
    return zipped({"report.json": codec.encode(made).encode()})
