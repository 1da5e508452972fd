"""Single values out of a rendered run's files, by line: parsing takes a hundred times as long."""

from __future__ import annotations

import re

_QUOTED = rb'"((?:[^"\\]|\\.)*)"'
_LABEL = rb"^    renderer/%s: " + _QUOTED + rb"$"


def _line(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.MULTILINE)


# Of jobset.yml.
NAME = _line(rb'^  name: "([a-z][-a-z0-9]*)"$')
NAMESPACE = _line(rb"^  namespace: " + _QUOTED + rb"$")
EXPERIMENT = _line(_LABEL % b"experiment")
CHIPS = _line(rb'^    renderer/chips: "([0-9]{1,7})"$')
CONTENT_DIGEST = _line(rb'^    renderer/content-digest: "([0-9a-f]{64})"$')
EXPERIMENT_DIGEST = _line(rb'^    renderer/experiment-digest: "([0-9a-f]{64})"$')
RUN_NAME = _line(rb"^ +- name: RUN_NAME\n +value: " + _QUOTED + rb"$")
TOPOLOGY = _line(rb"^ +cloud\.google\.com/gke-tpu-topology: " + _QUOTED + rb"$")
ACCELERATOR = _line(rb"^ +cloud\.google\.com/gke-tpu-accelerator: " + _QUOTED + rb"$")
POD_DIGEST = _line(rb'- name: pod\n +configMap:\n +name: "pod-([0-9a-f]{12})"$')
# Of run.yml.
OUTPUT = _line(rb"^base_output_directory: " + _QUOTED + rb"$")
CHECKPOINTS = _line(rb"^enable_checkpointing: (true|false)$")
STEPS = _line(rb"^steps: (-?[0-9]+)$")
ICI_AXIS = _line(rb"^ici_([a-z_]+)_parallelism: (-?[0-9]+)$")
PER_DEVICE_BATCH = _line(rb"^per_device_batch_size: ([0-9.]+)$")
ACCUMULATION = _line(rb"^gradient_accumulation_steps: ([0-9]+)$")


def value(pattern: re.Pattern[bytes], data: bytes) -> str:
    """Return the first value that `pattern` finds, empty where there is none."""
    found = pattern.search(data)
    return found[1].decode("utf-8", "replace") if found else ""
