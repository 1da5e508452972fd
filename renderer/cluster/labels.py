"""The names by which a run's objects are found and told apart in a cluster."""

from __future__ import annotations

from renderer.cluster.api import Object
from renderer.names import CONTENT_DIGEST

JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
"""The label of a JobSet's pods with its name."""
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
CONTAINER = "trainer"
"""The container of a pod that trains."""


def content_digest_of(found: Object) -> str:
    """Return the content digest that a JobSet carries, empty if it carries none."""
    return str((found["metadata"].get("annotations") or {}).get(CONTENT_DIGEST, ""))
