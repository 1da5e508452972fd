"""The proxy passes on what it gets, fails as it is told, and says what it did."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import RemoteDisconnected
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cluster.api import Api, ApiError, jobsets
from tests.cluster.faults import NthWrite, kept_up, sometimes
from tests.cluster.proxy import Fault, Plan, Request, proxy


class _Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    took_effect: list[tuple[str, str, str | None, bytes]]

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.took_effect.append((self.command, self.path, self.headers["Authorization"], body))
        self.send_response_only(200)
        if self.path == "/chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b'8\r\n{"a": 1,\r\n8\r\n "b": 2}\r\n0\r\n\r\n')
            return
        data = b'{"items": []}'
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def server() -> Iterator[tuple[Api, list[tuple[str, str, str | None, bytes]]]]:
    """Yield an API server of sorts, and what it was sent."""
    took_effect: list[tuple[str, str, str | None, bytes]] = []
    handler = type("Handler", (_Server,), {"took_effect": took_effect})
    found = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        with closing(Api(f"http://127.0.0.1:{found.server_port}", "secret")) as api:
            yield api, took_effect
    finally:
        found.shutdown()
        found.server_close()


def test_it_passes_everything_on(tmp_path: Path) -> None:
    with server() as (upstream, took_effect), proxy(upstream) as found, closing(Api(found.address, "secret")) as api:
        assert api.create("/runs", {"name": "one"}) == {"items": []}
        assert api.get("/chunked") == {"a": 1, "b": 2}
        api.delete("/runs")
        sent = [("POST", "/runs?fieldValidation=Strict&fieldManager=test", "Bearer secret", b'{"name": "one"}')]
        assert took_effect == [
            *sent,
            ("GET", "/chunked", "Bearer secret", b""),
            ("DELETE", "/runs", "Bearer secret", b""),
        ]
        assert [request.number for request, _ in found.seen] == [0, 1, 2]
        assert "secret" not in repr(found.seen)
        data = json.loads(found.kubeconfig(tmp_path / "kubeconfig").read_text())
        assert data["clusters"][0]["cluster"]["server"] == found.address


@pytest.mark.parametrize("fault", [fault for fault in Fault if "killed" not in fault.value])
def test_a_fault_takes_effect_or_does_not(fault: Fault) -> None:
    with (
        server() as (upstream, took_effect),
        proxy(upstream, lambda _: fault, silence=0.1) as found,
        closing(Api(found.address)) as api,
    ):
        with pytest.raises((ApiError, RemoteDisconnected)) as refusal:
            api.patch("/runs/one", {})
        status = {Fault.THROTTLED: 429, Fault.UNAVAILABLE: 503, Fault.TIMED_OUT_AFTER: 504}.get(fault, 500)
        if isinstance(refusal.value, ApiError):
            assert refusal.value.status == status
        after = {Fault.LOST, Fault.FAILED_AFTER, Fault.TIMED_OUT_AFTER, Fault.LATE}
        assert len(took_effect) == (1 if fault in after else 0)


@pytest.mark.parametrize(("fault", "effects"), [(Fault.KILL_BEFORE, 0), (Fault.KILL_AFTER, 1)])
def test_the_client_is_killed_before_or_after(fault: Fault, effects: int) -> None:
    with server() as (upstream, took_effect), proxy(upstream, lambda _: fault) as found:
        then: list[int] = []
        found.kill = lambda: then.append(len(took_effect))
        with closing(Api(found.address)) as api, pytest.raises(RemoteDisconnected):
            api.patch("/runs/one", {})
        assert then == [effects]
        assert len(took_effect) == effects


def test_it_ends_while_a_client_waits_for_an_answer() -> None:
    with server() as (upstream, _):
        with proxy(upstream, lambda _: Fault.SILENT, silence=60) as found, closing(Api(found.address)) as api:
            waiting = threading.Thread(target=_get_in_vain, args=(api,))
            waiting.start()
            while not found.seen:
                time.sleep(0.01)
            start = time.monotonic()
        waiting.join()
        assert time.monotonic() - start < 5


def _get_in_vain(api: Api) -> None:
    with pytest.raises(RemoteDisconnected):
        api.get("/")


def test_an_absent_server_is_a_broken_connection() -> None:
    with server() as (upstream, _):
        absent = Api(upstream.server)
    with proxy(absent) as found, closing(Api(found.address)) as api, pytest.raises(RemoteDisconnected):
        api.get("/")


def test_the_same_seed_fails_the_same_requests_in_any_order() -> None:
    requests = [Request("GET", f"/runs/{name}", 0, again) for name in range(40) for again in range(3)]
    plan, other = sometimes(7, 0.3), sometimes(8, 0.3)
    faults = [plan(request) for request in requests]
    assert faults == [plan(request) for request in reversed(requests)][::-1]
    assert faults != [other(request) for request in requests]
    assert 20 < sum(fault is not None for fault in faults) < 55


def test_plans() -> None:
    write, dry = Request("POST", "/runs", 0, 0), Request("POST", "/runs?dryRun=All", 1, 0)
    assert _told(NthWrite(1, Fault.LOST), [write, dry, write, write]) == [None, None, Fault.LOST, None]
    always = kept_up(1, 1, Fault.FAILED)
    assert _told(always, [write, dry, write]) == [Fault.FAILED, None, Fault.FAILED]


def _told(plan: Plan, requests: list[Request]) -> list[Fault | None]:
    return [plan(request) for request in requests]


def test_what_writes() -> None:
    review = Request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 0, 0)
    assert not review.writes
    assert not Request("GET", jobsets("default"), 0, 0).writes
    assert Request("DELETE", jobsets("default", "run"), 0, 0).writes
