from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from renderer.schema import FOLDER, ORDER
from renderer.schema_script import BEGIN, END
from renderer.schema_update import InterpreterError, dump, snapshot_from, write

DATA = {
    "version": "9.9.9",
    "only_in_base_yml": [],
    "keys": {"steps": {"default": 1, "type": "integer"}, "lora": {"type": "object"}},
    "models": {},
    "objects": {"lora": {"lora_rank": {"type": "integer"}}},
}


def interpreter(folder: Path, body: str) -> Path:
    """Return a program that stands in for an interpreter: it is handed `-c SCRIPT` and runs `body`."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
    path.chmod(0o755)
    return path


def answering(text: str) -> str:
    return f"print('noise'); print({BEGIN!r}); print({text!r}); print({END!r}); print('more noise')"


def test_the_answer_is_found_between_the_noise(tmp_path: Path) -> None:
    assert snapshot_from(interpreter(tmp_path, answering(json.dumps(DATA)))) == DATA


def test_the_interpreter_is_handed_the_script_as_text_in_an_empty_folder(tmp_path: Path) -> None:
    body = "import json\nseen = [sys.argv[1], BEGIN in sys.argv[2], os.listdir()]\n"
    body = body.replace("BEGIN", repr(BEGIN))
    body += f"print({BEGIN!r}.join(['\\n', '\\n']) + json.dumps({{'seen': seen}}) + '\\n' + {END!r})"
    assert snapshot_from(interpreter(tmp_path, body)) == {"seen": ["-c", True, []]}


def test_no_tpu_is_looked_for_and_temporary_paths_are_the_same_everywhere(tmp_path: Path) -> None:
    names = ["JAX_PLATFORMS", "DECOUPLE_GCLOUD", "TMPDIR"]
    body = f"import json\nprint({BEGIN!r}); print(json.dumps([os.environ[n] for n in {names!r}])); print({END!r})"
    seen: object = snapshot_from(interpreter(tmp_path, "print()\n" + body))
    assert seen == ["cpu", "TRUE", "/tmp"]


def test_a_failing_interpreter_shows_the_end_of_what_it_said(tmp_path: Path) -> None:
    body = "sys.stderr.write('\\n'.join(f'line {n}' for n in range(9)) + '\\nNo module named maxtext\\n'); sys.exit(1)"
    python = interpreter(tmp_path, body)
    with pytest.raises(InterpreterError) as raised:
        snapshot_from(python)
    assert str(raised.value) == (
        f"{python} could not read its MaxText (exit 1):\nline 5\nline 6\nline 7\nline 8\nNo module named maxtext"
    )


@pytest.mark.parametrize("body", ["pass", f"print({BEGIN!r}); print('{{}}')", f"print('x'); print({BEGIN!r})"])
def test_half_an_answer_is_an_error(tmp_path: Path, body: str) -> None:
    with pytest.raises(InterpreterError, match=r"could not read its MaxText \(exit 0\)"):
        snapshot_from(interpreter(tmp_path, body))


def test_an_answer_that_is_not_json_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InterpreterError, match="answered with something else than JSON"):
        snapshot_from(interpreter(tmp_path, answering("{")))


def test_a_file_that_cannot_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InterpreterError) as raised:
        snapshot_from(tmp_path / "python")
    assert str(raised.value) == f"{tmp_path / 'python'} cannot be run: No such file or directory"


def test_a_silent_interpreter_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("renderer.schema_update.TIMEOUT_SECONDS", 0.2)
    python = interpreter(tmp_path, "import time; time.sleep(60)")
    with pytest.raises(InterpreterError) as raised:
        snapshot_from(python)
    assert str(raised.value) == f"{python} did not answer within 0.2 s"


def test_a_snapshot_is_written_a_key_a_line(tmp_path: Path) -> None:
    path = write(DATA, "fork", tmp_path)
    assert path == tmp_path / "fork.json"
    assert path.read_text() == (
        '{"version":"fork",\n'
        '"only_in_base_yml":[],\n'
        '"keys":{\n'
        '"steps":{"default": 1, "type": "integer"},\n'
        '"lora":{"type": "object"}},\n'
        '"models":{},\n'
        '"objects":{\n'
        '"lora":{"lora_rank": {"type": "integer"}}}}\n'
    )


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b", "a b"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is no name for a snapshot"):
        write(DATA, name, tmp_path / "schemas")
    assert not (tmp_path / "schemas").exists()


@pytest.mark.parametrize("name", ORDER)
def test_the_shipped_snapshots_are_written_that_way(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text()
    assert dump(json.loads(text)) == text
