"""Gives a job the place of an environment's cluster, from the reviewed presets/clusters.yml."""

from __future__ import annotations

import sys
from pathlib import Path

from flow.refusal import RefusedError, run
from flow.runner import output
from renderer import clusters
from renderer.problem import Problem


def main() -> str:
    """Write the outputs project, location and cluster for the environment named on the command line."""
    environment = sys.argv[1]
    problems: list[Problem] = []
    found = clusters.load(Path(), problems).by_environment.get(environment)
    if problems:
        raise RefusedError(str(problems[0]))
    if found is None:
        raise RefusedError(f"{clusters.FILE} has no cluster for {environment}")
    output("project", found.project)
    output("location", found.region)
    output("cluster", found.cluster)
    return f"{environment} is {found.name}"


if __name__ == "__main__":
    run(main)
