"""Checks of values that become labels of Kubernetes objects as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from renderer.configure import Configuration
from renderer.keys import LABEL
from renderer.names import QUEUE_LABEL
from renderer.problem import Problem, counted

_LABEL = re.compile(LABEL.pattern)


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for a queue's name that fits an object but not the label Kueue reads it from.

    The other labels are an owner, which launch: judges, and names that are cut to fit (run_spec.labels).
    """
    leaf = configuration.leaf("deploy", "QUEUE")
    if leaf and isinstance(leaf.node.value, str) and not _LABEL.fullmatch(leaf.node.value):
        message = f"{counted(len(leaf.node.value), 'character')}: the label {QUEUE_LABEL} holds {LABEL.words}"
        yield Problem("label", leaf.at, "deploy.QUEUE", message)
