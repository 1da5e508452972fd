"""In a trusted job: fetches the followed run's report as data, and posts the Markdown that was made of it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from flow import comments, hub
from flow.artifact import fetch
from flow.hub import Followed
from flow.refusal import RefusedError, run
from flow.runner import output
from renderer.report import codec
from renderer.report.data import Report


def main() -> str:
    """Write the report's JSON to a file, or post the file with its Markdown: `fetch FILE` or `post FILE`."""
    word, path = sys.argv[1], Path(sys.argv[2])
    token = os.environ["GITHUB_TOKEN"]
    followed = hub.followed(hub.repository(token))
    if word == "fetch":
        report = replace(read(followed, token), head=followed.run.head_sha)  # it names a commit that only its job had
        path.write_text(json.dumps(asdict(report)))
        output("found", "true")
        return f"the report of {followed.run.head_sha}, for pull request {followed.pull.number}"
    if word == "post":
        return comments.put(followed.pull, comments.REPORT, path.read_text())
    raise RefusedError(f"{word}: neither fetch nor post")


def read(followed: Followed, token: str) -> Report:
    """Return the run's report, checked against its schema and against the pull request's target."""
    try:
        report = codec.decode(fetch(followed.run, "report", "report.json", codec.MAX_BYTES, token))
    except codec.UnreadableError as error:
        raise RefusedError(f"report.json: {error}") from error
    followed.require_base(report.base_name.removeprefix("origin/"))
    return report


if __name__ == "__main__":
    run(main)
