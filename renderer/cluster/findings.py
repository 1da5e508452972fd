"""What preflight finds: what is missing and what to type for it."""

from __future__ import annotations

from dataclasses import dataclass

from renderer.cluster import remedies
from renderer.cluster.permissions import Unknown
from renderer.problem import Severity


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a cluster lacks for a run. `remedy` is text for a shell, of one or more lines."""

    severity: Severity
    what: str
    remedy: str


def missing(what: str, remedy: str) -> Finding:
    """Return what keeps a run from starting."""
    return Finding(Severity.ERROR, what, remedy)


def doubtful(what: str, remedy: str) -> Finding:
    """Return what a person should know before the run starts."""
    return Finding(Severity.WARNING, what, remedy)


def unknown(caller: str, part: Unknown, what: str) -> Finding:
    """Return that something cannot be judged, because the caller may not read it."""
    permission = part.permission
    return doubtful(f"unknown {what}: {caller} may not {permission}", remedies.readable(caller, permission))
