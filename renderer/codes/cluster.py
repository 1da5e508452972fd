"""The codes of what a cluster says."""

from __future__ import annotations

from renderer.codes.code import Code

CLUSTER: tuple[Code, ...] = (
    Code("apply-cluster", "The kubeconfig's cluster is not the environment's.", "Use the other cluster's credentials."),
    Code(
        "apply-commit", "The commit cannot be applied after the last applied one.", "Apply a commit that contains it."
    ),
    Code("apply-first", "Nothing was ever applied to the environment.", "Say --adopt or --launch-all once."),
    Code("cluster-unknown", "There is no usable kubeconfig.", "Set KUBECONFIG, or get the cluster's credentials."),
    Code("cluster-answer", "The API server refused a request, or did not answer.", "Do what its words say."),
    Code("cluster-head", "There is no commit to compare the cluster with.", "Run it in a clone of the repository."),
    Code("cluster-ledger", "An object in renderer-control is no entry of the ledger.", "Find out who changed it."),
    Code("run-unlisted", "The JobSet is in no ledger.", "Delete it with kubectl, or leave it to who made it."),
    Code("run-gone", "The run has no JobSet in the cluster any more.", "Ask where its logs are kept outside it."),
    Code("run-unknown", "The cluster knows no run of this name.", "Write one of the names that the message gives."),
)
