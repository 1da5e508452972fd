"""What the workflows do on GitHub, as programs for `python -m flow.<name>`; only the default branch's are trusted."""
