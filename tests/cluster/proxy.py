"""A reverse proxy on a real socket between a client and the API server, which fails as networks and servers do."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cluster.api import Api

_SINGLE_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
"""Headers that are about one connection; the other connection gets its own."""


class Fault(Enum):
    """What becomes of a request."""

    REFUSED = "the connection is closed, nothing is forwarded"
    LOST = "it takes effect, and the answer is lost with the connection"
    THROTTLED = "429 with Retry-After, nothing is forwarded"
    UNAVAILABLE = "503, nothing is forwarded"
    FAILED = "500, nothing is forwarded"
    FAILED_AFTER = "it takes effect, and the answer is 500"
    TIMED_OUT_AFTER = "it takes effect, and the answer is 504"
    SILENT = "nothing is forwarded and nothing answered for longer than the client waits"
    LATE = "it takes effect, and the answer comes later than the client waits"
    KILL_BEFORE = "the client is killed before it is forwarded"
    KILL_AFTER = "it takes effect, and the client is killed before the answer"


_EFFECT = frozenset({Fault.LOST, Fault.FAILED_AFTER, Fault.TIMED_OUT_AFTER, Fault.LATE, Fault.KILL_AFTER})
_ANSWERS = {
    Fault.THROTTLED: (429, "TooManyRequests"),
    Fault.UNAVAILABLE: (503, "ServiceUnavailable"),
    Fault.FAILED: (500, "InternalError"),
    Fault.FAILED_AFTER: (500, "InternalError"),
    Fault.TIMED_OUT_AFTER: (504, "Timeout"),
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request that came in: the `number`-th of all, the `again`-th of its method and path, both from 0."""

    method: str
    path: str
    number: int
    again: int

    @property
    def writes(self) -> bool:
        """Whether it may change something that lasts: no reading, no dry run, no question about permissions."""
        asks = self.path.startswith(("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"))
        return self.method != "GET" and "dryRun=" not in self.path and not asks


type Plan = Callable[[Request], Fault | None]


def faultless(_: Request) -> None:
    """Let every request through."""


@dataclass(slots=True)
class Proxy:
    """What stands before the API server `upstream`. `silence` is how many seconds SILENT and LATE take.

    `seen` are the requests so far with what became of them; bodies and headers are not kept.
    """

    upstream: Api
    plan: Plan
    silence: float = 3
    kill: Callable[[], object] = lambda: None
    seen: list[tuple[Request, Fault | None]] = field(default_factory=list)
    address: str = ""
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that names the proxy, with the credentials for the API server, and return its path."""
        user = {"token": self.upstream.token} if self.upstream.token else {}
        data = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "faulty", "cluster": {"server": self.address}}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "faulty", "context": {"cluster": "faulty", "user": "user"}}],
            "current-context": "faulty",
        }
        path.write_text(json.dumps(data))
        return path

    def fate(self, method: str, path: str) -> Fault | None:
        """Return what becomes of the request that just came in."""
        with self._lock:
            again = self._counts.get((method, path), 0)
            self._counts[method, path] = again + 1
            request = Request(method, path, len(self.seen), again)
            fault = self.plan(request)
            self.seen.append((request, fault))
        return fault

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection to the API server."""
        address = urlsplit(self.upstream.server)
        host, port = address.hostname or "", address.port
        if address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=60)
        context = ssl.create_default_context(cafile=self.upstream.ca)
        return http.client.HTTPSConnection(host, port, timeout=60, context=context)


@contextmanager
def proxy(upstream: Api, plan: Plan = faultless, *, silence: float = 3) -> Iterator[Proxy]:
    """Yield a proxy that serves; afterwards it is gone, and its connections with it."""
    found = Proxy(upstream, plan, silence)
    server = _Server(found)
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.hang_up()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, proxy_: Proxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy_
        self.ended = threading.Event()
        self.open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close every connection: a thread that reads from one ends."""
        self.ended.set()
        for connection in list(self.open):
            with suppress(OSError):  # its client was first
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke is what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.upstream: http.client.HTTPConnection | None = None

    def finish(self) -> None:
        if self.upstream:
            self.upstream.close()
        super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: a request carries a token."""

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fault = self.server.proxy.fate(self.command, self.path)
        if fault is Fault.KILL_BEFORE:
            self.server.proxy.kill()
        if fault is None:
            self._relay(self._forward(body))
            return
        if fault in _EFFECT:
            self._forward(body).read()
        if fault is Fault.KILL_AFTER:
            self.server.proxy.kill()
        if fault in {Fault.SILENT, Fault.LATE}:
            self.server.ended.wait(self.server.proxy.silence)
        if fault in _ANSWERS:
            self._refuse(*_ANSWERS[fault])
        else:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

    def _forward(self, body: bytes) -> http.client.HTTPResponse:
        """Send the request on and return the answer; while the API server is away, the client's connection breaks."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _SINGLE_HOP}
        try:
            return self._send(body, headers)
        except (ConnectionError, http.client.HTTPException, TimeoutError):
            if self.upstream:
                self.upstream.close()
                self.upstream = None
            self.close_connection = True
            raise

    def _send(self, body: bytes, headers: dict[str, str]) -> http.client.HTTPResponse:
        if self.upstream is None:
            self.upstream = self.server.proxy.connect()
            self.upstream.connect()
            self.upstream.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.upstream.request(self.command, self.path, body or None, headers)
        return self.upstream.getresponse()

    def _relay(self, answer: http.client.HTTPResponse) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _SINGLE_HOP:
                self.send_header(name, value)
        if not answer.chunked:
            data = answer.read()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while data := answer.read1(1 << 16):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, status: int, reason: str) -> None:
        words = {"kind": "Status", "status": "Failure", "reason": reason, "message": "made up by the test's proxy"}
        data = json.dumps({**words, "code": status}).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == http.HTTPStatus.TOO_MANY_REQUESTS:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(data)
