"""Records what a launcher does: every command, every object, and what would start in the pod."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from renderer.legacy import manifest, pod_phase, shell_text
from renderer.legacy.difference import differences
from renderer.legacy.resolved import TRAINERS, trainer
from renderer.legacy.sandbox import FROZEN, Ran, Sandbox, interpreter
from renderer.location import Location
from renderer.problem import refuse


@dataclass(frozen=True, slots=True)
class Options:
    """How a launcher is recorded. `checkout` is the folder it expects to be started in; `seconds` its time limit."""

    checkout: Path
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    seconds: float = 30
    maxtext_version: str = ""
    pod_checkout: str = "/root/maxtext"
    pod_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Phase:
    """One script and everything it ran: in the submitter's shell, or in the pod."""

    scripts: tuple[shell_text.Script, ...]
    notes: tuple[dict[str, Any], ...]
    background: tuple[dict[str, Any], ...]
    environment: frozenset[str]


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded: `data` is the snapshot, the phases are what the examination looks at."""

    data: dict[str, Any]
    launcher: Phase
    pod: Phase


def record(launcher: Path, options: Options) -> Recording:
    """Return the recording of `launcher`, made twice. Raises RefusedError where it cannot be had, or differs."""
    first, second = _once(launcher, options), _once(launcher, options)
    found = differences(first.data, second.data)
    if found:
        paths = ", ".join(difference.path for difference in found)
        refuse(
            "record-differs",
            Location(_name(launcher, options)),
            f"two recordings differ in {paths}: something is not frozen",
        )
    return first


def _name(launcher: Path, options: Options) -> str:
    path, root = launcher.resolve(), options.checkout.resolve()
    if not path.is_relative_to(root):
        refuse(
            "record-checkout",
            Location(str(launcher)),
            f"does not lie in the checkout {options.checkout}: say --checkout",
        )
    return path.relative_to(root).as_posix()


def _once(launcher: Path, options: Options) -> Recording:
    name = _name(launcher, options)
    with tempfile.TemporaryDirectory(prefix="record-") as folder:
        sandbox = Sandbox(Path(folder) / "s", options.checkout, options.tools, options.stand_ins)
        text = launcher.read_text(encoding="utf-8", errors="surrogateescape")
        shell = interpreter(text)
        argv = [shell, name, *options.arguments]
        ran = sandbox.run(argv, sandbox.checkout, options.variables, options.seconds, name)
        _judge(ran, name, text if shell == "sh" else "")
        submitted = _phase(ran, sandbox.checkout, (), frozenset(options.variables))
        objects = list(_objects(ran, name))
        root = sandbox.folder / "pod"
        pod_phase.build(root, options.checkout, options.pod_checkout, options.pod_files)
        pod = _pod(ran, objects, root, name)
        variables = {"HOME": f"{root}/root", **pod.environment}
        inside = sandbox.run(pod.argv, root, variables, options.seconds, f"{name}, in the pod")
        _judge(inside, f"{name}, in the pod", "", in_pod=True)
        own = shell_text.read("the container's command", pod.text)
        started = _phase(inside, root, (own,), frozenset(pod.environment))
        data = _data(name, options, submitted, objects, started)
        return Recording(_moved_back(data, sandbox), submitted, started)


def _judge(ran: Ran, name: str, sh_text: str, *, in_pod: bool = False) -> None:
    """Refuse a run that did not end well, with the reason."""
    missing = dict.fromkeys(note["missing"] for note in ran.notes if "missing" in note)
    if not missing and "not found" in ran.error and sh_text:
        missing = dict.fromkeys(_not_found(ran.error))
    if missing:
        hint = "a real one that reaches nothing: --tool NAME; one to note instead of running: --stand-in NAME"
        refuse("record-tool", Location(name), f"needs {', '.join(missing)}, which the sandbox does not have", hint=hint)
    bashism = shell_text.bash_only(sh_text) if sh_text and ran.code else None
    if bashism:
        line, what = bashism
        message = f"asks for sh in its first line, and sh failed: {what} is bash's"
        refuse(
            "record-shell",
            Location(name, line, 1),
            message,
            hint=f"write #!/usr/bin/env bash; sh said: {_end_of(ran.error)}",
        )
    if ran.read_input:
        message = "reads standard input: give it everything by arguments and variables (--set NAME=VALUE)"
        refuse("record-input", Location(name), message)
    if ran.code:
        where = "its shell text" if in_pod else "it"
        refuse("record-failed", Location(name), f"{where} ended with code {ran.code}", hint=_end_of(ran.error))


def _not_found(error: str) -> Iterator[str]:
    for line in error.splitlines():
        words = line.split(": ")
        if words[-1] == "not found" and len(words) > 1:
            yield words[-2]


def _end_of(error: str) -> str:
    return "\n".join(error.strip().splitlines()[-3:]) or "it wrote nothing to its error stream"


def _phase(ran: Ran, folder: Path, more: tuple[shell_text.Script, ...], environment: frozenset[str]) -> Phase:
    scripts = list(more)
    for file in ran.files:
        path = Path(file).resolve()
        if path.is_file() and path.is_relative_to(folder) and path.name != "bash_env":
            text = path.read_text(encoding="utf-8", errors="surrogateescape").replace(f"{folder}/", "/")
            label = path.relative_to(folder).as_posix()
            scripts.append(shell_text.read(label, text))
    return Phase(tuple(scripts), ran.notes, ran.background, environment)


def _objects(ran: Ran, name: str) -> Iterator[dict[str, Any]]:
    """Yield every object that was given to kubectl apply, create or replace, dry runs left out."""
    for note in ran.notes:
        verb = next((word for word in note["argv"][1:] if word in {"apply", "create", "replace"}), "")
        if note["tool"] == "kubectl" and verb and not any(word.startswith("--dry-run") for word in note["argv"]):
            for text in note.get("files", {}).values():
                yield from manifest.documents(text, name)


def xpk_launches(notes: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the argv of each `xpk workload create`."""
    return [note["argv"] for note in notes if note["tool"] == "xpk" and note["argv"][1:3] == ["workload", "create"]]


def _pod(ran: Ran, objects: list[dict[str, Any]], root: Path, name: str) -> pod_phase.Pod:
    """Return the pod of the one launch. Raises RefusedError for none, and for more than one."""
    job_sets, workloads = manifest.job_sets(objects), xpk_launches(ran.notes)
    if len(job_sets) + len(workloads) != 1:
        many = f"launches {len(job_sets) + len(workloads)} times" if job_sets or workloads else "launches nothing"
        message = f"{many}: one JobSet given to kubectl, or one xpk workload create, is expected"
        noted = ", ".join(dict.fromkeys(" ".join(note["argv"][:3]) for note in ran.notes)) or "nothing"
        refuse("record-launches", Location(name), message, hint=f"it called {noted}")
    if job_sets:
        return pod_phase.from_job_set(job_sets[0], objects, root, name)
    command = next((word.partition("=")[2] for word in workloads[0] if word.startswith("--command=")), "")
    return pod_phase.from_command(command, root)


def _data(
    name: str, options: Options, submitted: Phase, objects: list[dict[str, Any]], started: Phase
) -> dict[str, Any]:
    before, program, after = _around_trainer(started, name)
    environment = {key: text for key, text in program["environment"].items() if key not in pod_phase.INJECTED}
    return {
        "launcher": name,
        "arguments": list(options.arguments),
        "variables": dict(options.variables),
        "maxtext_version": options.maxtext_version,
        "frozen": dict(FROZEN),
        "commands": _commands(submitted.notes),
        "background_commands": _commands(submitted.background),
        "objects": objects,
        "pod": {
            "commands_before_training": _commands(before),
            "trainer": program["argv"],
            "environment": dict(sorted(environment.items())),
            "commands_after_training": _commands(after),
            "background_commands": _commands(started.background),
        },
        "variables_read": {"launcher": reads(submitted), "pod": reads(started)},
        "accepted": [],
    }


def _around_trainer(phase: Phase, name: str) -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    programs = [index for index, note in enumerate(phase.notes) if note.get("program")]
    known = [index for index in programs if trainer(_module(phase.notes[index])) in TRAINERS]
    chosen = known or programs
    if len(chosen) != 1:
        started = ", ".join(_module(phase.notes[index]) for index in chosen) or "nothing"
        refuse(
            "record-launches",
            Location(name),
            f"the pod starts {len(chosen)} training programs ({started}): one is expected",
        )
    index = chosen[0]
    return list(phase.notes[:index]), phase.notes[index], list(phase.notes[index + 1 :])


def _module(note: Mapping[str, Any]) -> str:
    argv = note["argv"]
    return argv[2] if argv[1:2] == ["-m"] and len(argv) > 2 else (argv[1] if len(argv) > 1 else "")


def _commands(notes: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [note["argv"] for note in notes if not note.get("quiet") and note["tool"] != "sleep"]


def reads(phase: Phase) -> dict[str, str]:
    """Return the environment variables that the scripts of a phase read, with the first place of each.

    A variable is read from the environment where it is expanded before any line of its file sets it. In what order
    files set variables is not known, so one that has a default counts although another file sets it.
    """
    found: dict[str, str] = {}
    known: set[str] = set()
    for script in phase.scripts:
        lines = {use.name: use.line for use in reversed(script.sets)}
        for use in script.expands:
            local = lines.get(use.name)
            if use.name in shell_text.SHELL_OWN or (use.name in known and not use.guarded):
                continue
            if local is None or local >= use.line:
                found.setdefault(use.name, f"{script.file}:{use.line}")
        known |= set(lines)
    for note in phase.notes:
        for name in note.get("substituted", {}):
            if name not in known:
                found.setdefault(name, "envsubst")
    return dict(sorted(found.items()))


def _moved_back(value: Any, sandbox: Sandbox) -> Any:
    """Return `value` without the sandbox's own paths."""
    if isinstance(value, dict):
        return {key: _moved_back(item, sandbox) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_moved_back(item, sandbox) for item in value]
    if not isinstance(value, str):
        return value
    text = value.replace(f"{sandbox.folder}/pod/", "/")
    for name in ("checkout", "tmp", "home"):
        text = text.replace(str(sandbox.folder / name), f"<{name}>")
    return text
