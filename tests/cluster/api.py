"""A small client of the Kubernetes API over one kept connection, for tests."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
FIELD_MANAGER = "test"


class ApiError(Exception):
    """The API server refused: `status` is HTTP's, `reason` and `message` its own words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


def core(namespace: str, kind: str, name: str = "") -> str:
    """Return the path of core/v1 objects, such as pods, in a namespace."""
    return f"/api/v1/namespaces/{namespace}/{kind}/{name}".rstrip("/")


def jobs(namespace: str, name: str = "") -> str:
    """Return the path of Jobs."""
    return f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}".rstrip("/")


def jobsets(namespace: str, name: str = "") -> str:
    """Return the path of JobSets."""
    return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets/{name}".rstrip("/")


@dataclass(slots=True)
class Api:
    """The API at `server`, verified with `ca`. Every call raises ApiError for a refusal. Not for several threads."""

    server: str
    token: str | None = None
    ca: Path | None = None
    _connection: http.client.HTTPConnection | None = None

    def get(self, path: str, **query: str) -> Any:
        return self.call("GET", path, None, **query)

    def create(self, path: str, body: Object | bytes, **query: str) -> Any:
        """Create an object; bytes are sent as YAML. Unknown and duplicate fields are refused."""
        return self.call("POST", path, body, fieldValidation="Strict", fieldManager=FIELD_MANAGER, **query)

    def patch(self, path: str, body: Object, content_type: str = MERGE, **query: str) -> Any:
        return self.call("PATCH", path, body, content_type, fieldManager=FIELD_MANAGER, **query)

    def delete(self, path: str, **query: str) -> Any:
        return self.call("DELETE", path, None, **query)

    def exists(self, path: str) -> bool:
        """Return whether there is an object at `path`."""
        try:
            self.get(path)
        except ApiError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def items(self, path: str, **query: str) -> list[Object]:
        """Return the objects of a list."""
        found: list[Object] = self.get(path, **query)["items"]
        return found

    def call(
        self, method: str, path: str, body: Object | bytes | None, content_type: str = "application/json", **query: str
    ) -> Any:
        """Send one request and return the parsed answer."""
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        elif body is not None:
            content_type = "application/yaml"
        if body is not None:
            headers["Content-Type"] = content_type
        status, text = self._exchange(method, f"{path}?{urlencode(query)}" if query else path, body, headers)
        data = json.loads(text) if text.startswith(b"{") else text.decode()
        if status >= http.HTTPStatus.BAD_REQUEST:
            words = data if isinstance(data, dict) else {"message": data}
            raise ApiError(status, words.get("reason", ""), words.get("message", ""))
        return data

    def close(self) -> None:
        """Close the connection; another call opens it again."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def _exchange(self, method: str, url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        fresh = self._connection is None
        connection = self._connection = self._connection or self._connect()
        try:
            connection.request(method, url, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (ConnectionError, ssl.SSLError, http.client.HTTPException):
            self.close()
            if fresh:
                raise
            return self._exchange(method, url, body, headers)  # the server closed an idle connection

    def _connect(self) -> http.client.HTTPConnection:
        address = urlsplit(self.server)
        host, port = address.hostname or "", address.port
        if address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=60)
        return http.client.HTTPSConnection(host, port, timeout=60, context=ssl.create_default_context(cafile=self.ca))


def wait_for[T](what: str, look: Callable[[], T], seconds: float = 60) -> T:
    """Return the first true result of `look`. Raises AssertionError after `seconds`, saying what was waited for."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"{what}: not after {seconds} s"
        time.sleep(0.1)
    return found
