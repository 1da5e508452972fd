"""The server of the tests: the REST API, the store of artifacts, the stand-ins' uploads, and git over HTTP."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import jwt

from tests.workflows.fake_github import NAME, REPOSITORY, ROUTES, AnswerError, Api, GitHub, Token


class Handler(BaseHTTPRequestHandler):
    """Takes requests for the API (/api), the store of artifacts (/store), uploads of stand-ins, and git."""

    github: ClassVar[GitHub]
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that reads no further than its limit
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PATCH = do_PUT = do_GET  # noqa: N815

    def _answer(self) -> None:
        body = self._read()
        path = urlsplit(self.path).path
        self.github.asked.append(f"{self.command} {path}")
        if path.startswith("/api/upload/"):
            self._upload(path.removeprefix("/api/upload/"), body)
        elif path.startswith("/api/"):
            self._api(path.removeprefix("/api"), body)
        elif path.startswith("/store/"):
            self._store(path.removeprefix("/store/"))
        else:
            self._git(path, body)

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _upload(self, path: str, body: bytes) -> None:
        number, _, name = path.partition("/")
        kept = self.github.artifacts.setdefault(int(number), {})
        if self.command == "PUT":
            kept[name] = body
            self._send(201, b"")
        else:
            self._send(200, kept[name] if name else "\n".join(kept).encode())

    def _store(self, path: str) -> None:
        if "Authorization" in self.headers:  # as the real store does
            self._send(400, b"a request with two kinds of authorization")
        else:
            number, _, name = path.partition("-")
            self._send(200, self.github.artifacts[int(number)][name], Content_Type="application/zip")

    def _token(self) -> Token | None:
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "basic":
            value = base64.b64decode(value).decode().partition(":")[2]
        return self.github.tokens.get(value)

    def _api(self, path: str, body: bytes) -> None:
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        api = Api(self.github, self._token(), query, body)
        try:
            call, arguments = self._call(path)
            if path == f"{REPOSITORY}/installation" or path.startswith("/app/"):
                jwt.decode(self.headers["Authorization"].partition(" ")[2], self.github.app_key, algorithms=["RS256"])
            elif api.token is None:
                raise AnswerError(401, "Bad credentials")
            result = call(api, *arguments)
        except jwt.InvalidTokenError:
            self._send(401, b'{"message": "A JSON web token could not be decoded"}')
        except AnswerError as error:
            self._send(error.status, json.dumps({"message": str(error)}).encode(), **api.headers)
        else:
            status = 201 if self.command == "POST" else 200
            if isinstance(result, list):
                result = self._page(path, query, result, api)
            self._send(status, json.dumps(result).encode(), **api.headers)

    def _call(self, path: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
        if match := re.fullmatch(r"/app/installations/(\d+)/access_tokens", path):
            return Api.access_token, match.groups()
        for method, pattern, call in ROUTES:
            match = re.fullmatch(REPOSITORY + pattern, path)
            if match and method == self.command:
                return call, match.groups()
        raise AnswerError(404, "Not Found")

    def _page(self, path: str, query: dict[str, str], items: list[Any], api: Api) -> Any:
        size = min(int(query.get("per_page", 30)), self.github.page)
        number = int(query.get("page", 1))
        if number * size < len(items):
            words = "&".join(f"{key}={value}" for key, value in query.items() if key != "page")
            api.headers["Link"] = f'<{self.github.url}/api{path}?{words}&page={number + 1}>; rel="next"'
        shown = items[(number - 1) * size : number * size]
        return {"total_count": len(items), "artifacts": shown} if path.endswith("/artifacts") else shown

    def _git(self, path: str, body: bytes) -> None:
        token = self._token()
        if "git-receive-pack" in self.path and (token is None or not token.may("contents", "write")):
            self._send(401 if token is None else 403, b"no", WWW_Authenticate='Basic realm="GitHub"')
            return
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.github.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": token.login if token else "",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": re.sub(rf"^/{NAME}(\.git)?/", f"/{NAME}.git/", path),
            "QUERY_STRING": urlsplit(self.path).query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, check=True, env=environment)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        self._send(status, content, **{name.replace("-", "_"): value for name, value in headers.items()})


@contextmanager
def serve(root: Path) -> Iterator[GitHub]:
    """Serve a GitHub whose repositories lie under `root`."""
    github = GitHub(root)
    handler = type("Handler", (Handler,), {"github": github})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    github.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
