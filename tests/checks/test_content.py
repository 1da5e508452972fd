from __future__ import annotations

import pytest

from renderer.checks.content import placeholder


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ("gs://<bucket>/x", "maxtext.base_output_directory", "<bucket>"),
        ("<your project>", "deploy.ENV.PROJECT", "<your project>"),
        ("X_BUCKET_X", "deploy.GCS_BUCKET", "X_BUCKET_X"),
        ("CHANGE_ME", "maxtext.run_name", "CHANGE_ME"),
        ("changeme", "maxtext.run_name", "changeme"),
        ("replace-me", "maxtext.run_name", "replace-me"),
        ("your-bucket", "deploy.GCS_BUCKET", "your-bucket"),
        ("YOUR_PROJECT", "deploy.ENV.PROJECT", "YOUR_PROJECT"),
        ("/path/to/data", "maxtext.dataset_path", "path/to/data"),
        ("TBD", "maxtext.run_name", "TBD"),
        ("{{ bucket }}", "maxtext.dataset_path", "{{ bucket }}"),
        ("TODOS", "maxtext.run_name", ""),
        ("change the world", "maxtext.run_name", ""),
        ("fsdp<2", "maxtext.run_name", ""),
        ("example-maxtext-test", "deploy.GCS_BUCKET", ""),
        ("<eos>", "maxtext.solution_end_token", ""),
        ("answer your_question", "maxtext.prompt", ""),
        ("{{ messages }}", "maxtext.chat_template", ""),
    ],
)
def test_placeholders(text: str, path: str, found: str) -> None:
    assert placeholder(text, path) == found
