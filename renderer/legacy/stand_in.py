"""What answers in a recording's sandbox when a script calls kubectl, git, python3 and the like: it notes the call.

Started as `python -IS stand_in.py CONFIG TOOL ARGUMENT...` for every call, so it imports little. Each call becomes one
file NNNNNN.json in the sandbox's notes; what it prints is the same for everyone, everywhere, at any time.
"""

# ruff: noqa: ARG001, PTH102, PTH103, PTH110, PTH112, PTH118, PTH119, PTH123, PTH208
# every answer takes the same three things; pathlib would double the time of a call
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator

Config = dict[str, str]
Note = dict[str, object]
Answer = Callable[[Config, list[str], Note], int]

LIMIT = 2000
"""Calls after which a script is taken for an endless loop."""
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OWN = {"BASH_ENV", "PWD", "OLDPWD", "SHLVL", "_", "LC_ALL", "LANG", "TZ", "TERM", "TMPDIR", "HOME", "PATH", "LOGNAME"}
OWN |= {"USER", "HOSTNAME"}
"""Variables of the sandbox, not of the script."""


def main(config_file: str, tool: str, argv: list[str]) -> int:
    """Note one call and answer it; return the exit code."""
    config: Config = json.loads(_read(config_file))
    note: Note = {"tool": tool, "argv": [tool, *argv], "parent": os.getppid()}
    return ANSWERS.get(tool, nothing)(config, argv, note)


def write(config: Config, note: Note) -> None:
    """Give the note the next number; whoever reads a pipe calls this at its end, so producers come first."""
    for number in range(LIMIT):
        try:
            path = os.path.join(config["notes"], f"{number:06}.json")
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(note, file)
        return
    _touch(os.path.join(config["notes"], "too-many"))
    time.sleep(3600)


def _say(text: object) -> None:
    sys.stdout.write(f"{text}\n")


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _touch(path: str) -> None:
    with open(path, "a", encoding="utf-8"):
        pass


def nothing(config: Config, argv: list[str], note: Note) -> int:
    """A tool whose call is all that matters."""
    write(config, note)
    return 0


def missing(config: Config, argv: list[str], note: Note) -> int:
    """A command that is neither a stand-in nor a named tool (called by the shell's hook)."""
    write(config, {**note, "missing": argv[0]})
    return 127


def kubectl(config: Config, argv: list[str], note: Note) -> int:
    """Keep what is applied; make ConfigMaps as --dry-run=client would; know no object."""
    files = {name: sys.stdin.read() if name == "-" else _text(name) for name in _values(argv, "-f", "--filename")}
    if argv[:2] == ["create", "configmap"] and not files:
        made = json.dumps(_config_map(argv))
        if any(word.startswith("--dry-run") for word in argv):
            _say(made)
        else:
            files = {"": made}
    if files:
        note["files"] = files
    write(config, note)
    if argv[:1] in (["get"], ["describe"]):
        sys.stderr.write("Error from server (NotFound): nothing exists while a launcher is recorded\n")
        return 1
    if argv[:2] == ["config", "current-context"]:
        _say("recorded-context")
    return 0


def _values(argv: list[str], *options: str) -> Iterator[str]:
    for index, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in options:
            yield value if equals else (argv[index + 1] if index + 1 < len(argv) else "")


def _text(name: str) -> str:
    paths = [name]
    if os.path.isdir(name):
        paths = sorted(os.path.join(name, entry) for entry in os.listdir(name) if entry.endswith((".yml", ".yaml")))
    try:
        return "\n---\n".join(map(_read, paths))
    except OSError as error:
        return f"# {error.strerror}"


def _config_map(argv: list[str]) -> dict[str, object]:
    data = {}
    for item in _values(argv, "--from-file"):
        key, equals, file = item.partition("=")
        data[key if equals else os.path.basename(item)] = _text(file if equals else item)
    for item in _values(argv, "--from-literal"):
        key, _, data[key] = item.partition("=")
    metadata = {"name": next((word for word in argv[2:] if not word.startswith("-")), "")}
    namespace = next(iter(_values(argv, "-n", "--namespace")), None)
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def python(config: Config, argv: list[str], note: Note) -> int:
    """Note a program; compute what a script only calculates with -c or from standard input."""
    if argv[:1] in (["-c"], ["-"], []):
        os.execv(sys.executable, [sys.executable, "-I", *argv])  # noqa: S606
    if argv[:2] == ["-m", "venv"]:
        _activate(argv[-1])
    elif argv[:2] != ["-m", "pip"]:
        note["program"] = True
        note["environment"] = {key: value for key, value in os.environ.items() if key not in OWN}
    write(config, note)
    return 0


def uv(config: Config, argv: list[str], note: Note) -> int:
    """Make the environment that a script activates next."""
    if argv[:1] == ["venv"]:
        names = [word for word in argv[1:] if not word.startswith("-") and not re.fullmatch(r"[0-9.]+", word)]
        _activate(names[-1] if names else ".venv")
    write(config, note)
    return 0


def _activate(folder: str) -> None:
    os.makedirs(os.path.join(folder, "bin"), exist_ok=True)
    _touch(os.path.join(folder, "bin", "activate"))


def git(config: Config, argv: list[str], note: Note) -> int:
    """Answer for a frozen, clean checkout; a clone's folder exists afterwards."""
    write(config, note)
    words = [word for word in argv if word not in ("-C", ".")]
    if words[:1] == ["clone"]:
        if not words[-1].endswith(".git") and "://" not in words[-1]:
            os.makedirs(words[-1], exist_ok=True)
        return 0
    branch = (["rev-parse", "--abbrev-ref"], ["symbolic-ref", "--short"], ["branch", "--show-current"])
    if words[:2] in branch:
        _say(config["branch"])
    elif words[:2] == ["rev-parse", "--show-toplevel"]:
        _say(config["checkout"])
    elif words[:1] in (["rev-parse"], ["log"]):
        short = any(word.startswith("--short") or "%h" in word for word in words)
        _say(COMMIT[:7] if short else COMMIT)
    elif words[:1] == ["config"]:
        _say(config["user"])
    return 0


def date(config: Config, argv: list[str], note: Note) -> int:
    """Tell the frozen time, whatever the time zone."""
    form = next((word[1:] for word in argv if word.startswith("+")), "%a %b %e %H:%M:%S UTC %Y")
    form = form.replace("%s", config["date"]).replace("%N", "000000000").replace("%3N", "000")
    _say(time.strftime(form, time.gmtime(int(config["date"]))))
    return 0


def sleep(config: Config, argv: list[str], note: Note) -> int:
    """Return at once to the script itself; keep a background loop waiting, so that it goes round once."""
    write(config, {**note, "waits": True})
    if str(os.getppid()) != _read(config["main"]):
        time.sleep(3600)
    return 0


def mktemp(config: Config, argv: list[str], note: Note) -> int:
    """Name temporary files by a counter."""
    write(config, {**note, "quiet": True})
    folder = next(iter(_values(argv, "-p", "--tmpdir")), "") or os.environ.get("TMPDIR", ".")
    template = next((word for word in argv if "XXX" in word), "tmp.XXXXXX")
    number = 1
    while os.path.exists(path := os.path.join(folder, re.sub("X{3,}", f"{number:06}", template))):
        number += 1
    if any(word.startswith("-") and "d" in word for word in argv):
        os.mkdir(path)
    else:
        _touch(path)
    _say(path)
    return 0


def envsubst(config: Config, argv: list[str], note: Note) -> int:
    """Substitute as the real one does, and note which variables it met and which of them were not set."""
    text = sys.stdin.read()
    listed = {one or other for one, other in re.findall(r"\$(?:\{(\w+)\}|(\w+))", " ".join(argv))}
    met: dict[str, bool] = {}

    def replace(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        if argv and name not in listed:
            return match.group(0)
        met[name] = name in os.environ
        return os.environ.get(name, "")

    sys.stdout.write(re.sub(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", replace, text))
    sys.stdout.flush()
    write(config, {**note, "substituted": dict(sorted(met.items()))})
    return 0


def _says(name: str) -> Answer:
    def answer(config: Config, argv: list[str], note: Note) -> int:
        _say(config[name])
        return 0

    return answer


def uname(config: Config, argv: list[str], note: Note) -> int:
    """Be one machine for everyone."""
    words = {"-m": "x86_64", "-n": config["host"], "-r": "6.0.0"}
    _say(words.get(argv[0], "Linux") if argv else "Linux")
    return 0


def gcloud(config: Config, argv: list[str], note: Note) -> int:
    """Answer the questions of launchers about their project and zone."""
    write(config, note)
    if argv[:2] in (["config", "get-value"], ["config", "get"]):
        _say(f"recorded-{argv[2].rpartition('/')[2]}")
    return 0


ANSWERS: dict[str, Answer] = {
    "kubectl": kubectl,
    "python": python,
    "python3": python,
    "uv": uv,
    "git": git,
    "date": date,
    "sleep": sleep,
    "mktemp": mktemp,
    "envsubst": envsubst,
    "hostname": _says("host"),
    "whoami": _says("user"),
    "uname": uname,
    "gcloud": gcloud,
    "command-not-found": missing,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
