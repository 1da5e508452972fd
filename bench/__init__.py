"""Timings of the renderer, side by side with what it replaces."""
