"""The command line: which commands there are, and the one place that turns errors into text and an exit code."""

from __future__ import annotations

import importlib
import keyword
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

from renderer.problem import RefusedError, shown
from renderer.secrets import mask_given

COMMANDS = {
    "new": "Write an experiment file, or one per value of a sweep.",
    "format": "Bring experiment, preset and dataset files into their stable form.",
    "render": "Render experiments into rendered/, or check what is there.",
    "preview": "Show what an experiment or bare presets render to; write nothing.",
    "explain": "Show where a key's value comes from and what it replaced.",
    "validate": "Check experiments and list every problem.",
    "report": "Report what merging a branch launches, stops and changes.",
    "diff": "Compare two experiments, or one with its rendered state, by value.",
    "manifests": "Print every object of a run for kubectl apply.",
    "apply": "Launch and stop what the merged commits ask for, each run once.",
    "preflight": "Check that the cluster has what rendered runs need; say how to get it.",
    "status": "Show what every run is doing, and why it is not running.",
    "logs": "Print or follow the log of one pod of a run.",
    "stop": "Stop a run now, where a merge cannot wait.",
    "drift": "Show what in the cluster is not as it was applied.",
    "cleanup": "Delete what finished and stopped runs left in the cluster.",
    "schema": "Make a MaxText schema snapshot from an installed MaxText.",
    "smoke": "Train a rendered experiment for some steps on this machine.",
    "legacy": "Record old launchers, and prove experiments equal to the recordings.",
    "import": "Turn a recording, an argv or a JobSet into an experiment.",
}
OK, PROBLEMS, USAGE, BUG, INTERRUPTED, PIPE = 0, 1, 2, 3, 130, 141


_ANYWHERE = frozenset({"apply", "status", "logs", "stop", "drift", "cleanup", "schema", "legacy"})
"""The commands that ask git, a cluster or an interpreter, and say themselves what they miss."""


@dataclass(frozen=True, slots=True)
class App:
    """What every command gets: the folder of the content, or why there is none."""

    folder: Path
    missing: str = ""

    @property
    def root(self) -> Path:
        """The root of the content. Raises click.UsageError where there is none: no content is not empty content."""
        if self.missing:
            raise click.UsageError(self.missing)
        return self.folder


class _Commands(click.Group):
    """Loads a command's module only when it is called, so that help and small commands start fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"renderer.commands.{_module(cmd_name)}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def _module(name: str) -> str:
    """Return the module of a command: `import` is a word of Python, so its module is import_."""
    return f"{name}_" if keyword.iskeyword(name) else name


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--root", type=click.Path(path_type=Path), help="The folder that holds experiments/ and presets/.")
@click.version_option(package_name="renderer")
@click.pass_context
def cli(ctx: click.Context, root: Path | None) -> None:
    """Render reviewed TPU training runs from small experiment files.

    An EXPERIMENT is named by its path or as <model>/<name>.
    """
    app = _app(root)
    ctx.obj = App(app.folder) if ctx.invoked_subcommand in _ANYWHERE else app


def _app(given: Path | None) -> App:
    """Return the given root, else the nearest folder upwards that holds presets/."""
    if given is not None:
        if not given.is_dir():
            raise click.BadParameter(f"{given} is not a folder", param_hint="--root")
        return App(given.absolute(), "" if (given / "presets").is_dir() else f"--root {given} holds no presets/")
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "presets").is_dir():
            return App(folder)
    return App(here, "no presets/ here or above: go into the repository, or name it with --root")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 done, 1 problems, 2 usage, 3 our bug, 130 interrupted, 141 (128 + SIGPIPE) the reader of our output has gone.
    """
    _survive_any_text(sys.stdout, sys.stderr)
    streams = sys.stdout, sys.stderr
    code = _run(argv)
    sys.stdout, sys.stderr = streams  # click wraps them when a reader has gone, so that flushing hides it
    return _written(code, *streams)


def _run(argv: Sequence[str] | None) -> int:
    try:
        code = cli.main(args=argv, prog_name="renderer", standalone_mode=False)
    except RefusedError as error:
        return _tell(PROBLEMS, *str(error).split("\n"))
    except click.ClickException as error:
        return _tell(USAGE, *_usage(error))
    except (click.Abort, KeyboardInterrupt):
        return _tell(INTERRUPTED, "interrupted")
    except SystemExit as error:  # with 1 click and rich end when a reader has gone, with 0 a shell's completion does
        return PIPE if error.code else OK
    except BrokenPipeError:
        return PIPE
    except OSError as error:
        return _tell(PROBLEMS, f"{error.filename or 'renderer'}: {error.strerror or error}")
    except Exception as error:
        return _tell(BUG, f"internal error: {type(error).__name__}. Please report it with {_keep(error)}")
    return code if isinstance(code, int) else OK


def _usage(error: click.ClickException) -> list[str]:
    """Return what click would print, each line without what a person may have typed to forge another."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message().split("\n")
    lines = [f"Error: {mask_given(error.format_message())}".replace("\n\t", " ")]  # click's list of choices
    if isinstance(error, click.UsageError) and error.ctx:
        hint = f"Try '{error.ctx.command_path} --help' for help."
        lines = [*error.ctx.get_usage().split("\n"), hint, "", *lines]
    return lines


def _tell(code: int, *lines: str) -> int:
    """Print an error's lines and return its exit code, also where nothing can be printed any more."""
    try:
        click.echo("\n".join(map(shown, lines)), err=True)
    except BrokenPipeError:
        return PIPE
    except OSError:  # a full disk does not change the verdict
        return code
    return code


def _written(code: int, *streams: IO[str]) -> int:
    """Return the exit code once all output is written; what cannot be written is dropped, and makes 0 a failure."""
    for stream in streams:
        try:
            if stream and not stream.closed:
                stream.flush()
        except OSError as error:
            _drop(stream)
            code = PIPE if isinstance(error, BrokenPipeError) else code or PROBLEMS
    return code


def _drop(stream: IO[str]) -> None:
    """Let what `stream` still holds go nowhere, or Python would try again at its end and exit with 120."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _survive_any_text(*streams: IO[str]) -> None:
    """Escape what the terminal's encoding cannot show, instead of failing on it."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _keep(error: Exception) -> str:
    """Return the file that the traceback was written to."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="renderer-error-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError as failure:
        return f"what you typed (no traceback: {failure.strerror})"
    return file.name
