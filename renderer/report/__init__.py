"""The report on a pull request: what the merge does, what changes, and what reviewers should know."""
