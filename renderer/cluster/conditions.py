"""What an object's status says of itself."""

from __future__ import annotations

from renderer.cluster.api import Object


def condition(found: Object | None, kind: str) -> Object | None:
    """Return an object's condition of a kind if it is true."""
    conditions = ((found or {}).get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item.get("type") == kind and item.get("status") == "True"), None)


def ended(jobset: Object | None) -> Object | None:
    """Return the condition that says how a JobSet has ended, Completed or Failed; nothing while it lives."""
    return condition(jobset, "Completed") or condition(jobset, "Failed")
