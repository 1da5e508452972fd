"""The settings that apply takes are those of the commit."""

from __future__ import annotations

import pytest

from renderer.cluster.settings import settings
from renderer.problem import RefusedError
from tests.cluster_unit.committed_repo import CommittedRepo


def test_the_commit_s_settings_count(repo: CommittedRepo) -> None:
    repo.content.write("presets/policy.yml", "paused: maintenance\nenvironments:\n  test:\n    namespaces: [a]\n")
    head = repo.commit()
    repo.content.write("presets/policy.yml", "nonsense: 1\n")
    found = settings(repo.history, head, "test")
    assert (found.policy.paused, found.rules.namespaces, found.cluster.name) == ("maintenance", ("a",), "test-tpu7x")


def test_without_a_policy_nothing_is_restricted(repo: CommittedRepo) -> None:
    found = settings(repo.history, repo.commit(), "prod")
    assert (found.rules.namespaces, found.policy.limits.launches) == (None, None)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("presets/policy.yml", "paused: [1]\n", "presets/policy.yml:1:9: paused: must be the reason"),
        ("presets/clusters.yml", "clusters: 7\n", "presets/clusters.yml:1:11: clusters: "),
        ("presets/clusters.yml", "", "presets/clusters.yml: environments: names no cluster for test"),
    ],
)
def test_wrong_settings_stop_apply(repo: CommittedRepo, path: str, text: str, message: str) -> None:
    repo.content.write(path, text)
    with pytest.raises(RefusedError) as caught:
        settings(repo.history, repo.commit(), "test")
    assert str(caught.value).startswith(message)
