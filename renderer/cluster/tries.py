"""How often and how long a request to the API server is tried again; urllib3's retries with an end."""

from __future__ import annotations

import math
import time
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import urllib3
from urllib3 import BaseHTTPResponse
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import MaxRetryError, ResponseError

LAST = 70
"""Seconds after a call's beginning in which tries begin. One may take 50, so a call ends within 2 minutes."""
_PAUSE = 20
"""The longest pause between two tries, also where the server's Retry-After is longer."""
_RETRIED = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,  # a webhook or etcd that failed for a moment
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


class Tries(urllib3.Retry):
    """Retries until `end`, when no further try may begin. urllib3 makes a new object after every try."""

    end = math.inf

    @classmethod
    def most(cls, number: int) -> Self:
        """Return as many tries again, for connections that break, throttling and 5xx, with growing pauses."""
        return cls(
            total=number,
            backoff_factor=0.25,
            backoff_max=_PAUSE,
            backoff_jitter=0.25,
            retry_after_max=_PAUSE,
            status_forcelist=_RETRIED,
            allowed_methods=None,  # all of them: see api.py
            raise_on_status=False,
        )

    def begun(self) -> Self:
        """Return these tries for a call that begins now."""
        found = self.new()
        found.end = time.monotonic() + LAST
        return found

    def new(self, **changes: Any) -> Self:
        """Return these tries with some changes, as urllib3 asks for after each try."""
        found = super().new(**changes)
        found.end = self.end
        return found

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Return the tries that are left. Raises MaxRetryError if none is, or if the next would begin too late."""
        left = super().increment(method, url, response, error, _pool, _stacktrace)
        pause = (left.get_retry_after(response) if response else None) or left.get_backoff_time()
        if time.monotonic() + pause > self.end:
            raise MaxRetryError(_pool, url, error or ResponseError("too late"))  # type: ignore[arg-type]  # as urllib3's
        return left

    def parse_retry_after(self, retry_after: str) -> float:
        """Return how long a server asks to wait, nothing for what cannot be read: a server may write anything."""
        try:
            return super().parse_retry_after(retry_after)
        except Exception:  # urllib3's own, and what int() and email.utils make of odd numbers and dates
            return 0
