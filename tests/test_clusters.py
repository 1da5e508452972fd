from __future__ import annotations

from pathlib import Path

import pytest

from renderer.clusters import FILE, Cluster, load
from renderer.location import Location
from renderer.problem import Problem

CLUSTER = {
    "project": "p-1",
    "region": "us-central1",
    "zone": "us-central1-c",
    "cluster": "c",
    "identity": "123e4567-e89b-12d3-a456-426614174000",
    "node_pool": '"{accelerator}-{topology}"',
}


def write(root: Path, text: str) -> list[str]:
    (root / FILE).parent.mkdir(exist_ok=True)
    (root / FILE).write_text(text, encoding="utf-8")
    found: list[Problem] = []
    load(root, found)
    return [str(problem) for problem in found]


def cluster(**changes: str | None) -> str:
    lines = [f"    {key}: {value}\n" for key, value in {**CLUSTER, **changes}.items() if value is not None]
    return "clusters:\n  one:\n" + "".join(lines)


def test_a_whole_file(tmp_path: Path) -> None:
    reservations = "    reservations: {very-high: r-1}\nenvironments: {prod: one}\n"
    assert write(tmp_path, cluster() + reservations) == []
    clusters = load(tmp_path, [])
    assert clusters.by_name == {
        "one": Cluster(
            name="one",
            project="p-1",
            region="us-central1",
            zone="us-central1-c",
            cluster="c",
            identity="123e4567-e89b-12d3-a456-426614174000",
            node_pool="{accelerator}-{topology}",
            reservations={"very-high": "r-1"},
            place=Location(FILE, 2, 3),
        )
    }
    assert clusters.by_environment == {"prod": clusters.by_name["one"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (cluster(project=None), ":2:3: clusters.one.project: missing: the Google Cloud project"),
        (
            cluster(identity="mine"),
            ':7:15: clusters.one.identity: "mine" is not a UID, as 123e4567-e89b-12d3-a456-426614174000',
        ),
        (cluster(zones="a"), ":9:5: clusters.one.zones: unknown key\n    known: zone"),
        (cluster(zone="5"), ':5:11: clusters.one.zone: must be text, not the number 5: write "5" for the text'),
        (
            cluster(reservations="{high: A}"),
            ':9:26: clusters.one.reservations.high: "A" is not a name: lower-case letters, digits and -',
        ),
        (cluster() + "environments: {prod: two}\n", ":9:22: environments.prod: no cluster two\n    clusters: one"),
        (
            cluster() + "environments: {stage: one}\n",
            ":9:16: environments.stage: unknown key\n    known: prod, test",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, expected: str) -> None:
    assert write(tmp_path, text) == [f"{FILE}{expected}"]


def test_a_wrong_cluster_is_not_missed_twice(tmp_path: Path) -> None:
    assert len(write(tmp_path, cluster(zone=None) + "environments: {prod: one}\n")) == 1
