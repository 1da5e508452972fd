"""`renderer status --watch`: it goes on over lost connections, and ends on Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from renderer.cluster.api import ApiError
from renderer.commands import status
from tests.cluster_unit.log_server import Recorded, serving
from tests.cluster_unit.seen import pod
from tests.content import run


@pytest.fixture(autouse=True)
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serving(Recorded([], pod()), tmp_path) as path:
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield


def looks(monkeypatch: pytest.MonkeyPatch, *answers: list[str] | Exception) -> None:
    """Let each look find the next of `answers`, and Ctrl-C come after the last."""
    left = list(answers)

    def look(*_arguments: object) -> list[str]:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sleep(_seconds: float) -> None:
        if not left:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "_look", look)
    monkeypatch.setattr(status.time, "sleep", sleep)


def test_it_survives_a_lost_connection_and_ends_on_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = ["at 12:00:00 UTC", "no runs"]
    looks(monkeypatch, seen, ApiError(0, "", "no answer from the API server: refused"), ApiError(503, "", ""), seen)
    code, out, err = run(tmp_path, "status", "--watch")
    assert (code, err) == (130, "\ninterrupted\n")
    first, second, third, last = [block.splitlines() for block in out.strip().split("\n\n")]
    assert first == last == seen
    assert second == ["no answer from the API server: refused; trying again", *first]
    assert third == ["the API server answered 503; trying again", *first]


def test_a_refusal_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks(monkeypatch, ApiError(403, "Forbidden", "you may not list pods"))
    assert tuple(run(tmp_path, "status", "--watch")) == (1, "", "cluster: you may not list pods\n")


def test_watching_is_for_people(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "status", "--watch", "--format", "json")
    assert code == 2
    assert "--watch redraws text: leave out --format json" in err


def test_without_a_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    code, out, err = run(tmp_path, "status")
    assert (code, out) == (1, "")
    assert err.splitlines()[1] == "    set KUBECONFIG, or get the cluster's credentials"
