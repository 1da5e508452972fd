"""What the commands that ask a cluster share: the connection, its refusals as problems, and which namespaces count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from renderer import clusters as clusters_file
from renderer import policy
from renderer.cluster.api import Api, ApiError, NoClusterError, connect, identity
from renderer.cluster.damage import Damaged, LedgerError, UnreadableError
from renderer.cluster.settings import verify_identity
from renderer.clusters import Clusters
from renderer.commands.options import say
from renderer.layers import ENVIRONMENTS
from renderer.location import Location
from renderer.problem import Problem, RefusedError, errors, refuse

CLUSTER = Location("cluster")
FEW = 2
"""Tries for what is only looked at: a person is waiting, and may look again."""


def environment_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --environment, which arrives as the chosen environments: all without it."""
    return click.option(
        "--environment",
        "environments",
        type=click.Choice(ENVIRONMENTS),
        callback=lambda _context, _option, value: (value,) if value else ENVIRONMENTS,
        help="Only runs of this environment.",
    )(function)


@contextmanager
def cluster(retries: int = 8) -> Iterator[Api]:
    """Yield the cluster of the kubeconfig's current context; its refusals inside the block end it as RefusedError."""
    try:
        with closing(connect(retries)) as api:
            yield api
    except NoClusterError as error:
        refuse(
            "cluster-unknown",
            Location("kubeconfig"),
            str(error),
            hint="set KUBECONFIG, or get the cluster's credentials",
        )
    except ApiError as error:
        refuse("cluster-answer", CLUSTER, str(error))
    except UnreadableError as error:
        raise RefusedError(
            Problem("cluster-ledger", CLUSTER, "", str(item), f"{item.command}\n{item.mend}") for item in error.damaged
        ) from error
    except LedgerError as error:
        refuse("cluster-ledger", CLUSTER, str(error))


def warning(damaged: Damaged) -> str:
    """Return the line about an object that could not be read."""
    return f"warning: {damaged}; see {damaged.command}"


def warn(damaged: Iterable[Damaged]) -> None:
    """Print a line per object that could not be read to the error stream."""
    say(*map(warning, damaged), err=True)


def warn_of_a_strange_cluster(api: Api, root: Path) -> None:
    """Print a line if presets/clusters.yml does not name this cluster: where nothing is found, that is why."""
    known = {cluster.identity for cluster in clusters_file.load(root, []).by_environment.values()}
    try:
        found = identity(api)
    except ApiError:  # who may not read namespaces cannot tell
        return
    if known and found not in known:
        say(f"warning: this cluster, with the identity {found or '(none)'}, is none of presets/clusters.yml", err=True)


def namespaces(root: Path, environments: Iterable[str]) -> set[str]:
    """Return the namespaces that presets/policy.yml allows for runs: JobSets in no ledger are looked for there too."""
    rules = policy.load(root, []).rules  # what is wrong in the file is for renderer validate to say
    return {name for key in environments if key in rules for name in rules[key].namespaces or ()}


def local(api: Api, clusters: Clusters, environments: Sequence[str]) -> tuple[str, ...]:
    """Return which of the environments are on this cluster by presets/clusters.yml; one that names none may be.

    Raises RefusedError if none is: another cluster is never touched, and tells nothing of their runs.
    """
    found = identity(api)
    there = {name: clusters.by_environment.get(name) for name in environments}
    here = tuple(name for name, cluster in there.items() if cluster is None or cluster.identity == found)
    for cluster_ in () if here else filter(None, there.values()):
        verify_identity(api, cluster_)
    return here


def load_clusters(root: Path) -> Clusters:
    """Return presets/clusters.yml. Raises RefusedError for what is wrong in it."""
    problems: list[Problem] = []
    found = clusters_file.load(root, problems)
    if errors(problems):
        raise RefusedError(problems)
    return found


def agreed(question: str, *, yes: bool) -> bool:
    """Ask before something that cannot be undone; for no, say that nothing was changed. Elsewhere --yes is needed."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("nobody can be asked here: add --yes if that is what you want")
    answer = click.confirm(question, err=True)
    if not answer:
        say("nothing was changed", err=True)
    return answer
