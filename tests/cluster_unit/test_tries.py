"""How long a call is tried again, whatever the server asks for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from renderer.cluster import tries
from renderer.cluster.api import Api, ApiError, connect
from tests.cluster_unit.answers import answering


@dataclass
class Clock:
    """Time that passes only in pauses."""

    pauses: list[float] = field(default_factory=list)
    now: float = 1_000

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("urllib3.util.retry.time", SimpleNamespace(sleep=found.sleep, time=time.time))
    monkeypatch.setattr(tries, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


@pytest.fixture
def to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Api]:
    """Connect to a server."""

    def connected(server: str, retries: int = 8) -> Api:
        config = {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [],
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "current-context": "x",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        return connect(retries)

    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return connected


BUSY = {"reason": "TooManyRequests", "message": "come back later"}


@pytest.mark.parametrize("asked", ["3600", "9" * 4_000, "Fri, 31 Dec 2999 23:59:59 GMT"])
def test_a_server_that_asks_for_hours_gets_a_minute(asked: str, clock: Clock, to: Callable[..., Api]) -> None:
    with (
        answering(429, {"Retry-After": asked}, BUSY) as server,
        closing(to(server.address)) as api,
        pytest.raises(ApiError, match=r"^come back later$") as caught,
    ):
        api.call("GET", "/x", {})
    assert clock.pauses == [20, 20, 20]
    assert (caught.value.status, caught.value.passing) == (429, True)


@pytest.mark.parametrize("asked", ["0", "", "soon", "9" * 5_000, "-1", "Fri, 31 Dec 99999 23:59:59 GMT", "1e9"])
def test_what_cannot_be_read_is_no_pause(asked: str, clock: Clock, to: Callable[..., Api]) -> None:
    with (
        answering(503, {"Retry-After": asked}) as server,
        closing(to(server.address, retries=2)) as api,
        pytest.raises(ApiError),
    ):
        api.call("GET", "/x", {})
    assert len(server.authorizations) == 3
    assert sum(clock.pauses) < 1


def test_a_short_pause_is_kept(clock: Clock, to: Callable[..., Api]) -> None:
    with (
        answering(429, {"Retry-After": "1"}) as server,
        closing(to(server.address)) as api,
        pytest.raises(ApiError),
    ):
        api.call("GET", "/x", {})
    assert clock.pauses == [1] * 8


def test_a_server_that_is_away_is_tried_for_a_minute(clock: Clock, to: Callable[..., Api]) -> None:
    with closing(to("http://127.0.0.1:9", retries=50)) as api, pytest.raises(ApiError) as caught:
        api.call("GET", "/x", {})
    assert str(caught.value) == "no answer from the API server: [Errno 111] Connection refused"
    assert 40 < sum(clock.pauses) <= tries.LAST


def test_each_call_has_its_own_time(clock: Clock, to: Callable[..., Api]) -> None:
    with answering(429, {"Retry-After": "3600"}) as server, closing(to(server.address)) as api:
        for _ in range(2):
            with pytest.raises(ApiError):
                api.call("GET", "/x", {})
    assert clock.pauses == [20] * 6
