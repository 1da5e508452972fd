"""Headless Chromium, driven through its own debugging pipe: no driver program, no port, no further package."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 60


def find() -> str | None:
    """Return the browser of this machine: CHROMIUM, else the first of NAMES on the path."""
    return os.environ.get("CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """One page in a browser of its own. `events` holds everything the browser told meanwhile."""

    def __init__(self, program: str, profile: Path, width: int, height: int) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        self._buffer = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += ["--remote-debugging-pipe", "--no-first-run", f"--user-data-dir={profile}"]
        words += [f"--window-size={width},{height}", "--disable-background-networking", "--disable-component-update"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"', "chromium", *words, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.on_page(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.on_page("Emulation.setDeviceMetricsOverride", **size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._write)
        self._process.kill()
        self._process.wait()
        os.close(self._read)

    def open(self, url: str) -> None:
        """Load a page to its end."""
        self.on_page("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, script: str) -> Any:
        """Return what a script on the page comes to."""
        result = self.on_page("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def on_page(self, method: str, **parameters: Any) -> Any:
        """Call a method of the page."""
        return self.call(method, self._session, **parameters)

    def call(self, method: str, session: str = "", **parameters: Any) -> Any:
        """Call a method of the browser's protocol and return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        os.write(self._write, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while (answer := self._next()).get("id") != self._last:
            self.events.append(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def wait_for(self, event: str) -> None:
        """Wait until the browser tells an event."""
        while all(told["method"] != event for told in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            assert data, "the browser does not answer"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found
