"""Checks that the slice exists and that chips, topology and hosts agree."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.accelerators import ACCELERATORS, Slice, chips_of, find_slice, topologies
from renderer.configure import Configuration
from renderer.problem import Problem, counted
from renderer.schema import nearest


def slice_of(configuration: Configuration) -> Slice | None:
    """Return the slice of a run, nothing where accelerator or topology is unknown (then already a problem)."""
    accelerator = configuration.leaf("deploy", "ACCELERATOR")
    topology = configuration.leaf("deploy", "TPU_TOPOLOGY")
    name = accelerator.node.value if accelerator else "tpu7x"
    if topology is None or not isinstance(topology.node.value, str) or not isinstance(name, str):
        return None
    return find_slice(name, topology.node.value)


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem where topology, chips and COMPLETIONS do not describe one slice."""
    leaf = configuration.leaf("deploy", "TPU_TOPOLOGY")
    if leaf is None or not isinstance(leaf.node.value, str):
        return
    found = slice_of(configuration)
    if found is None:
        yield _unknown(configuration, leaf.node.value)
        return
    if found.chips != configuration.launch.chips:
        has = f"{found.topology} has {counted(found.chips, 'chip')}"
        message = f"{has}, but the run asks for {configuration.launch.chips}"
        fitting = _of_size(found.accelerator.name, configuration.launch.chips)
        yield Problem("topology-chips", leaf.at, "deploy.TPU_TOPOLOGY", message, fitting)
    completions = configuration.leaf("deploy", "COMPLETIONS")
    if completions and isinstance(completions.node.value, int) and completions.node.value != found.hosts:
        has = f"{found.topology} has {counted(found.hosts, 'host')}"
        message = f"{completions.node.value}, but {has}: write {found.hosts}"
        yield Problem("completions-hosts", completions.at, "deploy.COMPLETIONS", message)


def _of_size(accelerator: str, chips: int) -> str:
    fitting = [name for name in topologies(accelerator) if chips_of(name) == chips]
    return f"topologies of {counted(chips, 'chip')}: {', '.join(fitting)}" if fitting else ""


def _unknown(configuration: Configuration, topology: str) -> Problem:
    accelerator = configuration.leaf("deploy", "ACCELERATOR")
    name = str(accelerator.node.value) if accelerator else "tpu7x"
    leaf = configuration.leaf("deploy", "TPU_TOPOLOGY")
    place = leaf.at if leaf else configuration.start
    if name not in ACCELERATORS:
        return Problem("topology-unknown", place, "deploy.TPU_TOPOLOGY", f"no topologies are known for {name}")
    known = topologies(name)
    near = nearest(topology.lower(), known) or known
    hint = _of_size(name, configuration.launch.chips) or f"known: {', '.join(near[:12])}"
    message = f"{name} has no topology {topology}"
    return Problem("topology-unknown", place, "deploy.TPU_TOPOLOGY", message, hint)
