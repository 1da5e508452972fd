"""Replaces a folder by another in one step, so that a crash leaves the old or the new one.

The kernel swaps two folders atomically (Linux renameat2, macOS renamex_np); the standard library has no call for it.
Where neither exists, two renames and `recover` give the same result after the next start.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

_AT_FDCWD = -100
_SWAP = 2  # RENAME_EXCHANGE and RENAME_SWAP have the same value


def replace(target: Path, staging: Path) -> None:
    """Put staging/new in the place of `target`, beside `staging` or deeper; what was there ends in `staging`."""
    new = staging / "new"
    if not target.exists():
        new.rename(target)
    elif not _swap(new, target):
        (staging / "target").write_text(target.relative_to(staging.parent).as_posix(), encoding="utf-8")
        target.rename(staging / "old")
        new.rename(target)


def recover(staging: Path, within: Path) -> None:
    """Finish or forget what a crash left in `staging`, and delete it. Nothing is put anywhere but in `within`."""
    note, new = staging / "target", staging / "new"
    if note.is_file() and new.is_dir() and (staging / "old").is_dir():
        target = staging.parent / note.read_text(encoding="utf-8")
        inside = within in (target, *target.parents) and ".." not in target.parts
        if inside and not target.exists():
            new.rename(target)
    shutil.rmtree(staging)


def _swap(one: Path, other: Path) -> bool:
    """Swap two folders atomically; return whether the system can."""
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        call = getattr(libc, "renamex_np", None)
        return call is not None and call(os.fsencode(one), os.fsencode(other), _SWAP) == 0
    call = getattr(libc, "renameat2", None)
    return call is not None and call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _SWAP) == 0
