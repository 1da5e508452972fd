"""An API server over real HTTP that answers what a test recorded: a JobSet, a pod, one log answer after another."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import yaml

from renderer.cluster.api import Object

OPEN = object()
"""The end of an answer that never ends: the connection stays and is silent."""
BROKEN = object()
"""The end of an answer whose connection breaks."""


@dataclass
class Recorded:
    """What is answered. Each log request takes the next of `logs`: pieces of text, and how it ends; or a status.

    After the last one the pod has `phase`, and the JobSet `condition`.
    """

    logs: list[list[object] | tuple[int, str]]
    pod: Object
    condition: str = "Completed"
    phase: str = "Succeeded"
    asked: list[dict[str, str]] = field(default_factory=list)
    failing: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def jobset(self) -> Object:
        over = [{"type": self.condition, "status": "True", "message": "why"}] if not self.logs else []
        return {"metadata": {"name": "run", "uid": "u"}, "status": {"conditions": over}}

    def pods(self) -> Object:
        status = {"phase": self.phase if len(self.logs) <= 1 else "Running"}
        return {"metadata": {}, "items": [{**self.pod, "status": status}]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recorded: Recorded

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if self.recorded.failing:
            self.recorded.failing -= 1
            self._json(503, {"reason": "ServiceUnavailable", "message": "etcdserver: leader changed"})
        elif address.path.endswith("/log"):
            self._log(dict(parse_qsl(address.query)))
        else:
            self._json(200, self.recorded.pods() if address.path.endswith("/pods") else self.recorded.jobset())

    def _json(self, status: int, data: Object) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _log(self, query: dict[str, str]) -> None:
        self.recorded.asked.append(query)
        answer = self.recorded.logs.pop(0)
        if isinstance(answer, tuple):
            self._json(answer[0], {"reason": "BadRequest", "message": answer[1]})
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in answer:
            if isinstance(piece, str):
                self.wfile.write(f"{len(piece.encode()):x}\r\n{piece}\r\n".encode())
                self.wfile.flush()
            elif piece is OPEN:
                self.recorded.done.wait(5)
        if answer and answer[-1] in (OPEN, BROKEN):
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")


@contextmanager
def serving(recorded: Recorded, folder: Path) -> Iterator[Path]:
    """Answer while the block runs; yield a kubeconfig."""
    handler = type("Handler", (_Handler,), {"recorded": recorded})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    try:
        yield path
    finally:
        recorded.done.set()
        server.shutdown()
        server.server_close()
        thread.join()
