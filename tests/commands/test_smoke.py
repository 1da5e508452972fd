"""`renderer smoke` where there is no MaxText; training itself needs one."""

from __future__ import annotations

import sys

from content import Content


def test_an_interpreter_without_maxtext_is_told_how_to_name_another(content: Content) -> None:
    content.experiment("run", model="qwen3-0.6b", launch={"image": "v1", "branch": None})
    assert content.run("render").code == 0
    code, out, err = content.run("smoke", "qwen3-0.6b/run", "--python", sys.executable)
    assert (code, out) == (1, "")
    first, *rest = err.splitlines()
    assert first.endswith(" has no package maxtext: is it the image of this MaxText?")
    assert rest == [
        "name an interpreter that has MaxText: --python INTERPRETER",
        "the pod ended with exit code 2 (configuration error)",
    ]


def test_another_error_of_the_pod_names_no_interpreter(content: Content) -> None:
    content.experiment("run", model="qwen3-0.6b", launch={"image": "v1", "branch": None})
    assert content.run("render").code == 0
    code, _, err = content.run("smoke", "qwen3-0.6b/run", "--python", sys.executable, "no-assignment")
    assert code == 1
    assert "is not KEY=VALUE" in err
    assert "--python" not in err
