"""In a trusted job: fetches the followed run's report as data, and posts the Markdown that was made of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flow import comments, hub
from flow.artifact import fetch
from flow.refusal import RefusedError, run
from flow.runner import output

MAX_REPORT = 4 << 20
"""The bytes that `renderer report --from-json` takes."""


def main() -> str:
    """Write the report's JSON to a file, or post the file with its Markdown: `fetch FILE` or `post FILE`."""
    word, path = sys.argv[1], Path(sys.argv[2])
    token = os.environ["GITHUB_TOKEN"]
    followed = hub.followed(hub.repository(token))
    if word == "fetch":
        path.write_bytes(fetch(followed.run, "report", "report.json", MAX_REPORT, token))
        output("found", "true")
        return f"the report of {followed.run.head_sha}, for pull request {followed.pull.number}"
    if word == "post":
        return comments.put(followed.pull, comments.REPORT, path.read_text())
    raise RefusedError(f"{word}: neither fetch nor post")


if __name__ == "__main__":
    run(main)
