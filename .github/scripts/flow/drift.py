"""Keeps one open issue per environment that has drift, and closes it when there is none any more."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from github.Issue import Issue
from github.Repository import Repository

from flow import hub
from flow.refusal import one_line, run
from flow.runner import run_page

LABEL = "drift"
MAX_LINES = 200
MAX_LINE = 250


def main() -> str:
    """Bring the issues up to date with drift-<environment>.json of the folder on the command line."""
    repo = hub.repository(os.environ["GITHUB_TOKEN"])
    files = sorted(Path(sys.argv[1]).glob("drift-*.json"))
    return "; ".join(_update(repo, file.stem.removeprefix("drift-"), json.loads(file.read_text())) for file in files)


def _update(repo: Repository, environment: str, data: dict[str, Any]) -> str:
    marker = f"<!-- renderer drift {environment} -->"
    issue = _open_issue(repo, marker)
    if not data["drift"]:
        if issue:
            issue.edit(state="closed")
        return f"no drift in {environment}"
    title = f"Drift in {environment}"
    body = f"{marker}\n{_body(environment, data)}"
    if issue:
        issue.edit(title=title, body=body)
        return f"updated the issue about {environment}"
    repo.create_issue(title, body, labels=[LABEL])
    return f"opened an issue about {environment}"


def _open_issue(repo: Repository, marker: str) -> Issue | None:
    """Return our own open issue with this marker: another's is left alone."""
    for issue in repo.get_issues(state="open", labels=[LABEL]):
        if issue.user and issue.user.login == hub.BOT and (issue.body or "").startswith(marker):
            return issue
    return None


def _body(environment: str, data: dict[str, Any]) -> str:
    """Return what differs, inside a code block that no text from the cluster can end."""
    lines = [f"{found['run']}: {found['about']}: {found['text']}" for found in data["drift"]]
    lines += [f"not known: {found['run']}: {found['text']}" for found in data["unknown"]]
    lines += [f"note: {note}" for note in data["notes"]]
    shown = [_line(line) for line in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        shown.append(f"and {len(lines) - MAX_LINES} more")
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", "\n".join(shown)))])
    return (
        f"`renderer drift --environment {environment}` found that the cluster is not as it was applied:\n\n"
        f"{fence}text\n" + "\n".join(shown) + f"\n{fence}\n\n"
        f"Found by {run_page()}. This issue is closed when there is no drift any more.\n"
    )


def _line(text: str) -> str:
    shown = one_line(text)
    return shown if len(shown) <= MAX_LINE else shown[:MAX_LINE] + "…"


if __name__ == "__main__":
    run(main)
