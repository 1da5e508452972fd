"""Renders TPU training runs from layered YAML, checks them, and proves what it rendered."""
