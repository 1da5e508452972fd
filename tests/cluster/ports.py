"""Gives every control plane on this machine ports of its own."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FIRST, LAST, SIZE = 20000, 30000, 16
"""Below the ports that systems give outgoing connections: one of those could take a port between look and use."""


@contextmanager
def reserved() -> Iterator[Iterator[int]]:
    """Yield SIZE free loopback ports, which no other control plane gets meanwhile. Raises RuntimeError if none are."""
    folder = Path(tempfile.gettempdir()) / f"control-plane-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for first in range(FIRST, LAST, SIZE):
        with (folder / str(first)).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            ports = range(first, first + SIZE)
            if all(map(_free, ports)):
                yield iter(ports)
                return
    raise RuntimeError(f"no {SIZE} free ports in a row between {FIRST} and {LAST}")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the programs themselves do
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
