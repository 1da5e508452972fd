"""`renderer preflight`: the findings of rendered runs as text and JSON, on a cluster made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from content import Content, clusters

from renderer.cluster.api import Api
from renderer.cluster.facts import Claim, Control, Facts, Namespace
from renderer.commands import preflight

IDENTITY = "123e4567-e89b-12d3-a456-426614174000"
SPACE = Namespace(
    labels={},
    claims={"ant-data-pvc": Claim(bound=True), "ant-data-prod-pvc": Claim(bound=True)},
    secrets=frozenset(),
    service_accounts=frozenset({"default"}),
    queues={},
    denied=(),
)
FACTS = Facts(
    identity=IDENTITY,
    caller="someone",
    jobset=("jobset.x-k8s.io/v1alpha2",),
    pools={("tpu7x", "4x4x4"): {"pool": 16}},
    gcs_fuse=True,
    priority_classes=frozenset(),
    kueue=None,
    control=Control("renderer-control", exists=True, denied=()),
    namespaces={"default": SPACE},
)


@pytest.fixture
def rendered(content: Content, monkeypatch: pytest.MonkeyPatch) -> Content:
    """Two rendered runs of test, and a cluster that lacks the optional secret."""
    content.write("presets/clusters.yml", clusters(IDENTITY))
    content.experiment("one")
    content.experiment("two", maxtext={"steps": 7})
    assert content.run("render").code == 0
    has(monkeypatch, FACTS)
    return content


def has(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    """Let the cluster be this one."""

    @contextmanager
    def cluster(retries: int) -> Iterator[Api | None]:
        yield None

    def gather(api: Api, namespaces: Iterable[str]) -> Facts:
        assert set(namespaces) == {"default"}
        return facts

    monkeypatch.setattr(preflight, "cluster", cluster)
    monkeypatch.setattr(preflight, "gather", gather)


SECRET = """\

# {}. secret perf-64chips-token does not exist in default; the run starts without it
# In bash: asks for the value.
IFS= read -rsp 'GITHUB_TOKEN: ' VALUE && printf %s "$VALUE" | kubectl create secret generic perf-64chips-token \
-n default --from-file=GITHUB_TOKEN=/dev/stdin; unset VALUE
"""


def test_warnings_do_not_fail(rendered: Content) -> None:
    code, out, err = rendered.run("preflight", "--environment", "test")
    assert (code, err) == (0, "")
    assert out == (
        "2 runs, as someone: 0 errors, 1 warning\n"
        "  1  warning  secret perf-64chips-token does not exist in default; the run starts without it\n"
        + SECRET.format(1)
    )


def test_errors_come_first_and_name_their_runs(rendered: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered.experiment("big", launch={"chips": 256})
    assert rendered.run("render").code == 0
    code, out, _ = rendered.run("preflight", "ling3-flash/one", "ling3-flash/big")
    assert code == 1
    assert out.split("\n\n")[0] == (
        "2 runs, as someone: 1 error, 1 warning\n"
        "  1  error    there are no nodes of tpu7x 4x8x8: the run needs 64 in one node pool (ling3-flash/big)\n"
        "  2  warning  secret perf-64chips-token does not exist in default; the run starts without it"
    )
    assert "\n# 1. there are no nodes of tpu7x 4x8x8: the run needs 64 in one node pool\n# 1. Is the cluster" in out
    assert out.endswith(SECRET.format(2))


def test_policy_says_that_pools_scale_from_zero(rendered: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, Facts(**{**{name: getattr(FACTS, name) for name in FACTS.__slots__}, "pools": {}}))
    assert rendered.run("preflight", "ling3-flash/one").code == 1
    rendered.write("presets/policy.yml", "environments: {test: {scale_from_zero: true}}\n")
    code, out, _ = rendered.run("preflight", "ling3-flash/one")
    assert code == 0
    assert "  1  warning  there are no nodes of tpu7x 4x4x4: the run needs 16 in one node pool; by presets" in out


def test_json(rendered: Content) -> None:
    code, out, err = rendered.run("preflight", "ling3-flash/one", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "caller": "someone",
        "runs": ["ling3-flash/one"],
        "findings": [
            {
                "severity": "warning",
                "what": "secret perf-64chips-token does not exist in default; the run starts without it",
                "remedy": SECRET.split("\n", 2)[2].rstrip("\n"),
                "runs": ["ling3-flash/one"],
            }
        ],
    }


def test_another_cluster(rendered: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "00000000-0000-4000-8000-000000000009"
    rendered.write("presets/clusters.yml", clusters(other))
    code, out, _ = rendered.run("preflight", "--environment", "test")
    assert code == 1
    assert out.startswith(
        "2 runs, as someone: 1 error, 0 warnings\n"
        f"  1  error    this cluster is not test-tpu7x: its identity is {IDENTITY}, "
        f"presets/clusters.yml says {other}\n"
    )


def test_many_runs_are_counted() -> None:
    assert preflight._some(["a", "b", "c"]) == "a, b, c"
    assert preflight._some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize("arguments", [(), ("ling3-flash/one", "--environment", "test")])
def test_what_to_check_is_said_once(rendered: Content, arguments: tuple[str, ...]) -> None:
    code, _, err = rendered.run("preflight", *arguments)
    assert code == 2
    assert err.endswith("Error: name experiments, or an --environment\n")


def test_a_run_that_is_not_rendered_and_one_that_nobody_knows(rendered: Content) -> None:
    rendered.experiment("three")
    assert rendered.run("preflight", "ling3-flash/three").err == (
        "experiments/ling3-flash/three.yml: is not rendered yet; run renderer render\n"
    )
    assert rendered.run("preflight", "ling3-flash/on").code == 1


def test_a_damaged_manifest_is_named(rendered: Content) -> None:
    path = rendered.root / "rendered/test/ling3-flash/one/jobset.yml"
    path.write_text(path.read_text().replace("          completions: 16\n", ""))
    assert rendered.run("preflight", "ling3-flash/one").err == (
        "rendered/test/ling3-flash/one/jobset.yml: is not a rendered run's: it has no completions\n"
        "    run renderer render\n"
    )


def test_a_wrong_clusters_file_is_said(rendered: Content) -> None:
    (rendered.root / "presets/clusters.yml").write_text("clusters: 5\n")
    code, _, err = rendered.run("preflight", "ling3-flash/one")
    assert (code, err) == (1, "presets/clusters.yml:1:11: clusters: must be a mapping of keys\n")


def test_without_a_cluster(content: Content, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content.experiment("one")
    content.run("render")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    code, out, err = content.run("preflight", "ling3-flash/one")
    assert (code, out) == (1, "")
    assert err.startswith("kubeconfig: no usable kubeconfig: ")
