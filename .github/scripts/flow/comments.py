"""One comment of ours on a pull request: written once, then updated."""

from __future__ import annotations

from github.PullRequest import PullRequest

from flow.hub import BOT
from flow.refusal import RefusedError

REPORT = "<!-- renderer report -->"
MAX_COMMENT = 65_535


def put(pull: PullRequest, marker: str, text: str) -> str:
    """Make `text` our only comment that starts with the line `marker` on the pull request.

    Only comments of the job's own account count: another's that starts with the marker is left alone.
    """
    if text.partition("\n")[0] != marker:
        text = f"{marker}\n{text}"
    if len(text) > MAX_COMMENT:
        raise RefusedError(f"a comment of {len(text):,} characters is too long")
    for comment in pull.get_issue_comments():
        if comment.user and comment.user.login == BOT and comment.body.partition("\n")[0].rstrip("\r") == marker:
            if comment.body.replace("\r\n", "\n").strip() == text.strip():
                return f"the comment on pull request {pull.number} says so already"
            comment.edit(text)
            return f"updated the comment on pull request {pull.number}"
    pull.create_issue_comment(text)
    return f"commented on pull request {pull.number}"
