"""The untrusted job's own part, and how every program ends."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import requests

from flow import collect
from flow.changes import decode
from flow.refusal import NothingToDoError, RefusedError, run
from tests.workflows.job import said
from tests.workflows.origin import Origin

FOLDER = "rendered/test/qwen3-0.6b"


@pytest.fixture(autouse=True)
def here(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(origin.root)
    monkeypatch.setattr(sys, "argv", ["collect", "changes.json"])
    monkeypatch.setenv("GITHUB_BASE_REF", "release")


def test_what_differs_from_the_commit_is_handed_over(origin: Origin) -> None:
    head = origin.git("rev-parse", "HEAD")
    origin.content.write(".gitignore", "rendered/\n")
    Path(FOLDER, "first/run.yml").unlink()
    origin.content.write(f"{FOLDER}/second/run.yml", "a: é\r\n")
    origin.content.write("results/qwen3-0.6b/first/1.json", "{}")
    origin.content.write("experiments/qwen3-0.6b/other.yml", "not rendered, not handed over")
    assert said(collect.main) == "3 files to commit"
    changes = decode(Path("changes.json").read_bytes())
    assert (changes.head, changes.base) == (head, "release")
    assert changes.files == {
        f"{FOLDER}/first/run.yml": None,
        f"{FOLDER}/second/run.yml": "a: é\r\n".encode(),
        "results/qwen3-0.6b/first/1.json": b"{}",
    }
    assert origin.git("rev-parse", "HEAD^") == head, "the report sees a commit"


def test_nothing_is_handed_over_where_nothing_changed() -> None:
    assert said(collect.main) == "nothing: rendered/ is up to date"
    assert not Path("changes.json").exists()


def test_a_tree_that_is_gone_is_handed_over() -> None:
    shutil.rmtree("rendered")
    assert said(collect.main) == "2 files to commit"


def test_where_nothing_is_rendered_nothing_else_is_taken(origin: Origin) -> None:
    origin.git("rm", "--quiet", "-r", "rendered")
    origin.commit()
    origin.content.write(".cache/venv/bin/python", "what `make install` makes")
    assert said(collect.main) == "nothing: nothing is rendered here"
    assert origin.git("status", "--porcelain") == "?? .cache/"


def test_what_would_not_be_taken_is_not_handed_over(origin: Origin) -> None:
    origin.content.write("rendered/.gitattributes", "* linguist-generated\n")
    assert said(collect.main) == "refused: 'rendered/.gitattributes' is not a path that may be written"
    assert not Path("changes.json").exists()


@pytest.mark.parametrize(
    ("error", "code", "out"),
    [
        (None, 0, "done\n"),
        (NothingToDoError("no\n::set-env name=PATH::/tmp"), 0, "::notice::no ::set-env name=PATH::/tmp\n"),
        (RefusedError("50%\r\n::add-mask::x\x1b[31m"), 1, "::error::50%25  ::add-mask::x [31m\n"),
        (RefusedError("x" * 2000), 1, f"::error::{'x' * 1000}\n"),
        (requests.ReadTimeout("api.github.com: timed out"), 1, "::error::api.github.com: timed out\n"),
        (FileNotFoundError(2, "No such file", "a"), 1, "::error::[Errno 2] No such file: 'a'\n"),
    ],
)
def test_a_program_ends_with_one_line_that_is_no_command(
    error: Exception | None, code: int, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def main() -> str:
        if error:
            raise error
        return "done"

    if code:
        with pytest.raises(SystemExit) as ended:
            run(main)
        assert ended.value.code == code
    else:
        run(main)
    assert capsys.readouterr().out == out
