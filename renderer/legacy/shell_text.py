"""Reads shell scripts as text: which variables they set and expand, and where. A reader of launchers, not a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_EXPANSION = re.compile(
    rf"\$(?:\{{(?P<mark>[#!]?)(?P<braced>{NAME})(?P<index>\[[^\]]{{0,100}}\])?(?P<operator>:?[-=+?])?|(?P<plain>{NAME}))"
)
_START = re.compile(
    r"(?:\A|(?<!\\)\n|[;&|(){]|\b(?:then|do|else|export|local|readonly|declare|typeset)\b(?:[ \t]+-\w+)*)[ \t]*"
)
_ASSIGNMENT = re.compile(rf"(?P<name>{NAME})(?:\[[^\]]{{0,100}}\])?\+?=(?!=)")
_DECLARES = re.compile(
    rf"\b(?:for|select)\s+({NAME})\s+in\b|\b(?:mapfile|readarray)\s+(?:-\w+\s+)*({NAME})|-v\s+({NAME})\b"
)
_READ = re.compile(rf"\bread[ \t]+((?:-\w+[ \t]+(?:\"[^\"]*\"[ \t]+)?)*)((?:{NAME}[ \t]*)+)")
_GETOPTS = re.compile(rf"\bgetopts\s+\S+\s+({NAME})")
_DECLARED = re.compile(
    rf"(?<![\w-])(?:declare|local|readonly|typeset|export|unset)\s+(?:-\w+\s+)*((?:{NAME}(?![\w=\[+])[ \t]*)+)"
)
_EXPORTED = re.compile(
    rf"(?<![\w-])(?:export|declare\s+-[^\Wx]*x\w*)\s+(?:-\w+\s+)*(?P<names>(?:{NAME}(?:=\S*)?[ \t]*)+)"
)
_ARITHMETIC = re.compile(r"\(\((?:(.*?)\)\)|.*)", re.DOTALL)
"""Where nothing closes one, the group is empty, and the rest of the text is taken: it holds no other."""
_HEREDOC = re.compile(r"<<-?\s*(['\"\\]?)([A-Za-z_]\w*)\1")

SHELL_OWN = frozenset(
    [
        "BASH",
        "BASHPID",
        "BASH_ARGV",
        "BASH_COMMAND",
        "BASH_ENV",
        "BASH_LINENO",
        "BASH_REMATCH",
        "BASH_SOURCE",
        "BASH_VERSION",
        "BASH_VERSINFO",
        "COLUMNS",
        "DIRSTACK",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "EUID",
        "FUNCNAME",
        "GROUPS",
        "HOME",
        "HOSTNAME",
        "IFS",
        "LANG",
        "LC_ALL",
        "LINENO",
        "LINES",
        "LOGNAME",
        "MACHTYPE",
        "OLDPWD",
        "OPTARG",
        "OPTIND",
        "OSTYPE",
        "PATH",
        "PIPESTATUS",
        "PPID",
        "PS4",
        "PWD",
        "RANDOM",
        "REPLY",
        "SECONDS",
        "SHELL",
        "SHELLOPTS",
        "SHLVL",
        "TERM",
        "TMPDIR",
        "TZ",
        "UID",
        "USER",
    ]
)
"""Variables that the shell or every environment sets."""


@dataclass(frozen=True, slots=True)
class Use:
    """One expansion or assignment. `guarded` expansions say what to do when the variable is not set."""

    name: str
    line: int
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """What one script's text sets and expands, in order of lines."""

    file: str
    sets: tuple[Use, ...]
    expands: tuple[Use, ...]
    exports: frozenset[str]
    valued_flags: frozenset[str]
    text: str


def read(file: str, text: str) -> Script:
    """Return what the script in `text` does with variables."""
    bare = bare_text(text)
    sets = sorted(_sets(_without_arrays(_without_quoted(bare))), key=lambda use: use.line)
    expands = sorted(_expands(bare), key=lambda use: use.line)
    exports = {
        word.partition("=")[0] for match in _EXPORTED.finditer(_without_quoted(bare)) for word in match["names"].split()
    }
    if re.search(r"\bset\s+-[^\Wa]*a|\bset\s+-o\s+allexport", bare):
        exports |= {use.name for use in sets}
    flags = frozenset(re.findall(r"(?<![\w-])(--[A-Za-z][\w-]*)[ =]+[\"']?\$", bare))
    return Script(file, tuple(sets), tuple(expands), frozenset(exports), flags, text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _sets(text: str) -> Iterator[Use]:
    for start in _START.finditer(text):
        position = start.end()
        while match := _ASSIGNMENT.match(text, position):
            yield Use(match["name"], _line(text, match.start()))
            position = _after_word(text, match.end())
    for pattern in (_DECLARES, _GETOPTS):
        for match in pattern.finditer(text):
            yield Use(next(filter(None, match.groups())), _line(text, match.start()))
    for match in re.finditer(r"\b(?:declare|local|readonly|typeset|export)[ \t]+([^\n;&|]*)", text):
        for name in re.findall(rf"(?:^|[ \t])({NAME})=", match.group(1)):
            yield Use(name, _line(text, match.start()))
    for pattern, group in ((_READ, 2), (_DECLARED, 1)):
        for match in pattern.finditer(text):
            for name in match.group(group).split():
                yield Use(name, _line(text, match.start()))


def _without_quoted(text: str) -> str:
    """Return `text` with quoted text blanked: what looks like an assignment there is text for another shell."""
    return re.sub(r'"[^"]*"', lambda match: '"' + re.sub(r"[^\n]", "_", match.group()[1:-1]) + '"', text)


def _without_arrays(text: str) -> str:
    """Return `text` with the insides of array literals blanked: key=value there assigns nothing."""
    for match in re.finditer(r"(?<=\w)\+?=\(", text):
        inside = slice(match.end(), _after_word(text, match.end() - 1))
        text = text[: inside.start] + re.sub(r"[^\n]", " ", text[inside]) + text[inside.stop :]
    return text


def _after_word(text: str, position: int) -> int:
    """Return where the next word begins: quotes and brackets keep blanks together."""
    depth, double = 0, False
    while position < len(text):
        char = text[position]
        if char == '"':
            double = not double
        elif char == "(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif not double and not depth and char in " \t\n;&|)":
            break
        position += 1
    while text[position : position + 1] in (" ", "\t"):
        position += 1
    return position


def _expands(text: str) -> Iterator[Use]:
    for match in _EXPANSION.finditer(text):
        name = match["braced"] or match["plain"]
        # ${!name} reads the variable that name holds; the length of an unset array is 0
        yield Use(name, _line(text, match.start()), bool(match["operator"]) or match["mark"] == "#")
    for match in _ARITHMETIC.finditer(text):
        for name in re.findall(rf"(?<![\w$'\"]){NAME}", match.group(1) or ""):
            yield Use(name, _line(text, match.start()), guarded=True)
    for match in re.finditer(rf"-[vnz]\s+\"?({NAME})\b", text):
        yield Use(match.group(1), _line(text, match.start()), guarded=True)


def bare_text(text: str) -> str:
    """Return `text` with comments, single-quoted text and quoted here-documents blanked; lines stay where they are."""
    out: list[str] = []
    double = False
    heredocs: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            out.append("  " if text[position + 1 : position + 2] != "\n" else "\\\n")
            position += 2
            continue
        if char == "\n" and heredocs:
            out.append("\n")
            position = _skip_heredocs(text, position + 1, heredocs, out)
            continue
        end = None
        if char == '"':
            double = not double
        elif char == "'" and not double:
            end = text.find("'", position + 1) + 1
        elif char == "#" and not double and (position == 0 or text[position - 1] in " \t\n;("):
            end = text.find("\n", position)
        elif char == "<" and not double:
            match = _HEREDOC.match(text, position)
            if match and text[position : position + 3] != "<<<":
                heredocs.append(match.group(2) if match.group(1) else "")
        if end is not None:
            end = end if end > 0 else len(text)
            out.append(re.sub(r"[^\n]", " ", text[position:end]))
            position = end
            continue
        out.append(char)
        position += 1
    return "".join(out)


def _skip_heredocs(text: str, position: int, heredocs: list[str], out: list[str]) -> int:
    """Blank the bodies of here-documents whose end word is quoted; the others are expanded, so they stay."""
    quoted = [word for word in heredocs if word]
    heredocs.clear()
    for word in quoted:
        match = re.compile(rf"^[ \t]*{re.escape(word)}$", re.MULTILINE).search(text, position)
        end = match.end() if match else len(text)
        out.append(re.sub(r"[^\n]", " ", text[position:end]))
        position = end
    return position


_BASH_ONLY = (
    (re.compile(r"\[\["), "[[ ]]"),
    (re.compile(rf"^[ \t]*(?:\w+[ \t]+)?{NAME}\+?=\(", re.MULTILINE), "an array"),
    (re.compile(r"\$\{\w+\[[@*\w]+\]"), "an array"),
    (re.compile(rf"^[ \t]*{NAME}\+=", re.MULTILINE), "+="),
    (re.compile(r"<<<"), "<<<"),
    (re.compile(r"[<>]\("), "process substitution"),
    (re.compile(r"\$\{\w+(?:\^\^?|,,?|//?[^}]*/)"), "a substitution of bash"),
    (re.compile(rf"^[ \t]*function[ \t]+{NAME}", re.MULTILINE), "the word function"),
    (re.compile(r"^[ \t]*(?:source|declare|typeset|mapfile|shopt)\s", re.MULTILINE), "a builtin of bash"),
    (re.compile(r"set\s+-\w*o\s+pipefail"), "pipefail"),
    (re.compile(r"\(\(|\$'"), "(( )) or $'...'"),
)


def bash_only(text: str) -> tuple[int, str] | None:
    """Return (line, feature) of the first thing in `text` that a plain sh does not have."""
    bare = bare_text(text)
    found = [(_line(bare, match.start()), what) for pattern, what in _BASH_ONLY if (match := pattern.search(bare))]
    return min(found) if found else None


_CLOCKS = re.compile(r"\$\{?(?:RANDOM|SRANDOM|BASHPID|SECONDS|EPOCHSECONDS|EPOCHREALTIME)\b|\$\$|%\([^)]{0,100}\)T")


def clock(text: str) -> tuple[int, str] | None:
    """Return (line, text) of the first thing in `text` that differs at each run and cannot be frozen."""
    match = _CLOCKS.search(bare_text(text))
    return (_line(text, match.start()), match.group()) if match else None
