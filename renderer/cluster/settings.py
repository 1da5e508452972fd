"""The reviewed settings of a commit, as apply takes them: its policy, and the cluster of the environment."""

from __future__ import annotations

from dataclasses import dataclass

from renderer import clusters, policy
from renderer.cluster.api import Api, identity
from renderer.cluster.history import History
from renderer.clusters import Cluster
from renderer.location import Location
from renderer.policy import Policy, Rules
from renderer.problem import Problem, RefusedError, errors, refuse

_FILES = (policy.FILE, clusters.FILE)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a commit says about an environment."""

    environment: str
    policy: Policy
    cluster: Cluster

    @property
    def rules(self) -> Rules:
        """What the environment's runs may use."""
        return self.policy.rules.get(self.environment, Rules())


def settings(git: History, head: str, environment: str) -> Settings:
    """Return a commit's settings. Raises RefusedError if a file has errors or names no cluster."""
    problems: list[Problem] = []
    with git.checked_out(git.tree(head, *_FILES)) as folder:
        rules = policy.load(folder, problems)
        found = clusters.load(folder, problems)
    if errors(problems):
        raise RefusedError(errors(problems))
    if environment not in found.by_environment:
        message = f"names no cluster for {environment}"
        refuse("apply-cluster", Location(clusters.FILE), message, path="environments", hint="commit it first")
    return Settings(environment, rules, found.by_environment[environment])


def verify_identity(api: Api, cluster: Cluster) -> None:
    """Refuse a cluster that is another than the environment's, by the UID of kube-system. Raises ApiError too."""
    found = identity(api) or "unknown"
    if found != cluster.identity:
        message = f"the kubeconfig's cluster has the identity {found}, {cluster.name} has {cluster.identity}"
        hint = (
            "use the credentials of the environment's cluster; nothing was changed\n"
            f"if this is the cluster, correct identity in {clusters.FILE} and commit it: the file counts as committed"
        )
        refuse("apply-cluster", cluster.place, message, hint=hint)
