"""The codes of the pull request report and of schema snapshots."""

from __future__ import annotations

from renderer.codes.code import Code

REPORT: tuple[Code, ...] = (
    Code("report-base", "The target branch of the report is not known here.", "Fetch it, or name it with --base."),
    Code("report-head", "The commit to report on is not known here.", "Commit first, or name it with --head."),
    Code("report-file", "The file is not a report, or larger than one can be.", "Make it with --format json."),
    Code("ledger-file", "The file is not an exported ledger.", "Export it again."),
    Code("schema-update", "The interpreter's MaxText could not be read.", "Name a Python that has MaxText."),
)
