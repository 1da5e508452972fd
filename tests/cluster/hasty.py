"""`renderer`, waiting for less: so that a test that loses a thousand answers ends today. The rest is the renderer's."""

from __future__ import annotations

import sys

import urllib3

from renderer.cli import main
from renderer.cluster import api

READ_SECONDS = 1.5
"""How long it waits for an answer, instead of 40 s."""

_PAUSE = 0.1


class _Hasty(urllib3.Retry):
    """Retries as many times, with short pauses."""

    def get_backoff_time(self) -> float:
        return min(super().get_backoff_time(), _PAUSE)

    def parse_retry_after(self, retry_after: str) -> float:
        return min(super().parse_retry_after(retry_after), _PAUSE)


def hurry() -> None:
    """Make the client hasty in this process."""
    defaults = api.Api._send.__kwdefaults__
    assert defaults is not None
    defaults["timeout"] = urllib3.Timeout(connect=READ_SECONDS, read=READ_SECONDS)
    urllib3.Retry = _Hasty  # type: ignore[misc]


if __name__ == "__main__":
    hurry()
    sys.exit(main())
