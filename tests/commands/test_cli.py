"""The command line itself: exit codes, errors in words, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from content import SHIPPED, Content, run

from renderer import cli
from renderer.cli import COMMANDS, main


def test_help_names_every_command_in_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    folder = SHIPPED / "renderer/commands"
    built = [name for name in COMMANDS if (folder / f"{name}.py").is_file() or (folder / f"{name}_.py").is_file()]
    assert built
    for name in built:
        assert f"  {name} " in out


@pytest.mark.parametrize("name", [name for name in COMMANDS if (SHIPPED / f"renderer/commands/{name}.py").is_file()])
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: renderer {name} ")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["render", "--nonsense"], ["explain"], ["diff"], ["--root", "/absent", "render"], []]
)
def test_wrong_usage_is_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "Usage: renderer" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("renderer, version ")


def failing(error: BaseException) -> click.Command:
    @click.command("render")
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "err"),
    [
        (KeyboardInterrupt(), 130, "\ninterrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
        (OSError(28, "No space left on device", "/some/where"), 1, "/some/where: No space left on device\n"),
        (OSError(28, "No space left on device", "a\x1b[31m"), 1, "a\\x1b[31m: No space left on device\n"),
    ],
)
def test_what_goes_wrong_has_its_exit_code(
    error: BaseException, code: int, err: str, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli._Commands, "get_command", lambda *_: failing(error))
    ran = content.run("render")
    assert (ran.code, ran.out, ran.err) == (code, "", err)


def test_our_own_bug_is_exit_3_with_the_traceback_in_a_file(
    content: Content, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cli._Commands, "get_command", lambda *_: failing(RuntimeError("a bug")))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ran = content.run("render")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("internal error: RuntimeError. Please report it with ")
    assert "RuntimeError: a bug" in Path(ran.err.rstrip("\n").rpartition(" ")[2]).read_text()


def test_a_closed_pipe_ends_quietly(content: Content) -> None:
    content.experiment()
    code = "import sys; from renderer.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "--root", str(content.root), "preview", "ling3-flash/run"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SHIPPED)}
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (141, b"")


CODE = "import sys; from renderer.cli import main; sys.exit(main())"


def verdict(content: Content, arguments: str, redirections: str) -> tuple[int, str]:
    """Return the exit code of a command under a shell's redirections, and what reached its error stream."""
    waited = "{ sleep 0.3; " if "|" in redirections else "{ "  # until the reader has gone
    streams, _, reader = redirections.partition("|")
    script = f'{waited}"$0" -c "{CODE}" --root "$1" {arguments} {streams}; }} {reader and "|"}{reader}'
    command = ["bash", "-o", "pipefail", "-c", script, sys.executable, str(content.root)]
    environment = {**os.environ, "PYTHONPATH": str(SHIPPED)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "redirections", "code", "err"),
    [
        ("validate ling3-flash/bad", "| true", 141, ""),
        ("validate ling3-flash/run", "| true", 141, ""),
        ("validate ling3-flash/bad --format json", "| true", 141, ""),
        ("preview ling3-flash/run", "| true", 141, ""),
        ("manifests ling3-flash/run", "2>&1 | true", 141, ""),
        ("render", "| true", 141, ""),
        ("render ling3-flash/bad", "2>&1 >&- | true", 141, ""),
        ("--help", "| true", 141, ""),
        ("nonsense", "2>&1 >/dev/null | true", 141, ""),
        ("validate ling3-flash/bad", ">/dev/full", 1, "renderer: No space left on device\n"),
        ("validate ling3-flash/run", ">/dev/full", 1, "renderer: No space left on device\n"),
        ("validate ling3-flash/run", ">/dev/full 2>&1", 1, ""),
        ("render ling3-flash/bad", "2>/dev/full", 1, ""),
        ("nonsense", "2>/dev/full", 2, ""),
    ],
)
def test_output_that_is_lost_is_no_success_and_changes_no_other_verdict(
    arguments: str, redirections: str, code: int, err: str, content: Content
) -> None:
    content.experiment()
    content.run("render")
    content.experiment("bad", maxtext={"steps": "8"})
    if arguments == "render":
        (content.root / "experiments/ling3-flash/bad.yml").unlink()
    assert verdict(content, arguments, redirections) == (code, err)


def test_our_own_bug_is_told_where_no_file_can_be_written(content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli._Commands, "get_command", lambda *_: failing(RuntimeError("a bug")))
    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    ran = content.run("render")
    words = "what you typed (no traceback: No space left on device)"
    assert tuple(ran) == (3, "", f"internal error: RuntimeError. Please report it with {words}\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--root", "/tmp/\x1b[31mx\n::error::y"], r"/tmp/\x1b[31mx\n::error::y is not a folder"),
        (["--root", "/tmp/ghp_" + "a1" * 18], "/tmp/**** is not a folder"),
    ],
)
def test_usage_errors_show_no_secret_and_steer_no_terminal(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "render"]) == 2
    assert capsys.readouterr().err.split("\n") == [
        "Usage: renderer [OPTIONS] COMMAND [ARGS]...",
        "Try 'renderer --help' for help.",
        "",
        f"Error: Invalid value for --root: {line}",
        "",
    ]


def test_a_secret_typed_as_a_command_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hf_access_token=hunter2"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "Error: No such command 'hf_access_token=****"


def test_root_is_found_from_a_folder_below(
    content: Content, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content.experiment()
    monkeypatch.chdir(content.root / "experiments/ling3-flash")
    assert main(["render", "run.yml"]) == 0
    assert capsys.readouterr().out == "7 files written, 0 deleted\n"


def test_a_root_behind_a_link_is_the_same_root(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content.experiment()
    link = tmp_path / "link"
    link.symlink_to(content.root)
    assert run(link, "render").out.splitlines()[-1] == "7 files written, 0 deleted"
    assert (
        run(link, "render", str(link / "experiments/ling3-flash/run.yml")).out
        == "nothing to write: rendered/ is up to date\n"
    )
    monkeypatch.chdir(link)
    assert run(Path(), "render", "experiments/ling3-flash/run.yml").out == "nothing to write: rendered/ is up to date\n"


def test_a_hostile_value_cannot_steer_the_terminal(content: Content) -> None:
    content.experiment(maxtext={"run_name": "a\x1b]0;title\x07b\r\nc"})
    ran = content.run("render")
    assert ran.code == 1
    assert ran.err.replace("\n", "").isprintable()


def test_an_empty_repository_renders_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "presets").mkdir()
    ran = run(tmp_path, "render")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "nothing to write: rendered/ is up to date"


NEED_CONTENT = {
    "new": ("ling3-flash/x",),
    "format": (),
    "render": (),
    "preview": ("--model", "ling3-flash"),
    "explain": ("ling3-flash/x", "steps"),
    "validate": (),
    "report": ("--base", "main"),
    "diff": ("ling3-flash/x",),
    "manifests": ("ling3-flash/x",),
    "preflight": ("--environment", "test"),
    "smoke": ("ling3-flash/x",),
    "import": (__file__,),
}


def test_who_needs_content_is_told_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(NEED_CONTENT) == set(COMMANDS) - cli._ANYWHERE
    monkeypatch.chdir(tmp_path)
    for command, arguments in NEED_CONTENT.items():
        assert main([command, *arguments]) == 2
        out, err = capsys.readouterr()
        said = "Error: no presets/ here or above: go into the repository, or name it with --root"
        assert (out, err.splitlines()[-1]) == ("", said), command
    assert main(["--root", ".", "validate"]) == 2
    assert capsys.readouterr().err.endswith("\nError: --root . holds no presets/\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["render", "--help"], ["schema"], ["--version"]])
def test_help_and_snapshots_are_there_without_content(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 0
