"""`python -m tests.cluster [--kueue] [--pool TOPOLOGY]`: a control plane to try things on, until interrupted."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

import click

from tests.cluster.build import build
from tests.cluster.plane import control_plane
from tests.cluster.sandbox import Sandbox


@click.command()
@click.option("--kueue", is_flag=True, help="Start Kueue too.")
@click.option("--pool", "pools", multiple=True, metavar="TOPOLOGY", help="Simulate a tpu7x node pool, such as 4x4x4.")
def command(kueue: bool, pools: tuple[str, ...]) -> None:
    """Start a control plane with simulated nodes and tell how to use it."""
    build()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        tempfile.TemporaryDirectory(prefix="control-plane-") as folder,
        control_plane(Path(folder), kueue=kueue) as plane,
    ):
        nodes = Sandbox(plane, "pool")
        for topology in pools:
            nodes.pool(topology)
        click.echo(f"ready after {plane.seconds:.1f} s; stop it with Ctrl-C\nexport KUBECONFIG={plane.kubeconfig}")
        signal.pause()


if __name__ == "__main__":
    command()
