"""The report as a comment: what happens on merge first, within GitHub's limit for any input, no value trusted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from renderer.problem import visible
from renderer.report import words
from renderer.report.data import Derived, Note, Report, Role, Row, Value

LIMIT = 65_535
"""Characters of a comment or check summary, counted as UTF-16 units to be safe."""
MARK = "<!-- renderer report -->"
"""The first line: the workflow finds its own comment by it."""

_TAIL_ROOM = 4_000
_LEAST_SHARE = 6_000
_FIRST_SCREEN = 15
_MAX_LINES = 60
_NAMED = 5


@dataclass(frozen=True, slots=True)
class _Section:
    """A title, its lines, what one line is called, and how many of them are shown at most."""

    title: str
    lines: list[str]
    noun: str
    most: int = _MAX_LINES
    intro: str = ""


def render(report: Report, whole: str = "") -> str:
    """Return the comment; `whole` says where the whole report is, an https:// address becomes a link."""
    page = _Page(LIMIT - _TAIL_ROOM)
    page.add(MARK)
    page.add(f"### On merge: {words.headline(report)}")
    for line in _first(report):
        page.add(line)
    left_out = []
    for section in _sections(report):
        missing = len(section.lines) - page.section(section)
        if missing:
            left_out.append(words.plural(missing, section.noun))
    page.limit = LIMIT
    page.add("\n---\n" + _tail(report, left_out, whole))
    return "\n".join(page.lines) + "\n"


class _Page:
    """Lines up to a limit of characters."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lines: list[str] = []
        self._used = 0

    def add(self, line: str) -> bool:
        """Add a line if it fits."""
        size = length(line) + 1
        if self._used + size >= self.limit:
            return False
        self.lines.append(line)
        self._used += size
        return True

    def section(self, section: _Section) -> int:
        """Add a section as far as it fits into half of what is left, and return how many of its lines that were."""
        end = self._used + max(_LEAST_SHARE, (self.limit - self._used) // 2)
        intro = f"{section.intro}\n\n" if section.intro else ""
        head = f"\n{section.title}\n\n{intro}" if section.title else ""
        if not section.lines:
            if section.intro:
                self.add(head.rstrip("\n"))
            return 0
        count = 0
        for line in section.lines[: section.most]:
            text = line if count else f"{head or chr(10)}{line}"
            if self._used + length(text) > end or not self.add(text):
                break
            count += 1
        return count


def length(text: str) -> int:
    """Return the UTF-16 units of a text: at least its characters."""
    return len(text) + sum(char > "\uffff" for char in text)


def code(text: str, most: int = 160) -> str:
    """Return any text as a code span that it cannot leave: no Markdown, HTML, mention or link in it counts."""
    text = _left_to_right(text)
    if len(text) > most:
        text = f"{text[:most]}… ({len(text)} characters)"
    fences = {len(run) for run in re.findall(r"`+", text)}
    fence = "`" * next(size for size in range(1, len(fences) + 2) if size not in fences)
    pad = " " if not text.strip(" ") or text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else "(empty)"


def _left_to_right(text: str) -> str:
    """Return the text with every character escaped that is invisible, or has a line shown from right to left.

    GitHub isolates no code span: of `old` → `new` in Hebrew or Arabic it would show the new value first.
    """
    text = visible(text)
    if text.isascii():
        return text
    turning = ("R", "AL", "AN")
    return "".join(_escape(char) if unicodedata.bidirectional(char) in turning else char for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


_PLAIN = re.compile(r"\(?(?:[A-Za-z0-9]{1,20}|[0-9]{1,3}(?:,[0-9]{3})*)\)?[,.;:?]?")
_MARKS = re.compile(r"(\(?)([^()]+?)([,.;:?)]*)")
_COMMIT = re.compile(r"\W*[0-9a-fA-F]{7,}\W*")


def prose(text: str, most: int = 400) -> str:
    """Return any sentence with its plain words as they are, everything else in code spans.

    GitHub links mentions, commits and issues in text, however they are escaped, but never in code spans.
    """
    text = _left_to_right(text)
    text = text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
    groups = groupby(text.split(" "), lambda word: bool(_PLAIN.fullmatch(word)) and not _COMMIT.fullmatch(word))
    return " ".join(" ".join(words_) if plain else _coded(" ".join(words_), most) for plain, words_ in groups)


def _coded(text: str, most: int) -> str:
    """Return a code span with the sentence's own marks outside."""
    marks = _MARKS.fullmatch(text)
    return f"{marks[1]}{code(marks[2], most)}{marks[3]}" if marks else code(text, most)


def _first(report: Report) -> Iterator[str]:
    """Yield what stands above everything else: what is not allowed."""
    if report.paused:
        yield f"\n**Launches are paused:** {prose(report.paused)}"
    for limit in report.limits[:_NAMED]:
        yield f"\n**Above the policy's limit:** this merge {prose(limit)}; nothing would be launched there."


def _sections(report: Report) -> Iterator[_Section]:
    happening = words.happening(report)
    yield _Section("", list(_first_rows(happening)), "launch-or-stop row", _FIRST_SCREEN + 1)
    quiet = [f"- {prose(reason)}" for reason in words.quiet(report)]
    yield _Section("**Nothing happens to the others:**", quiet, "reason", _NAMED)
    yield _Section("#### Removed", [f"- {code(file)}" for file in report.deleted], "removed file")
    more = [_row(row) for row in happening[_FIRST_SCREEN:]]
    yield _Section("#### More launches and stops", more, "launch-or-stop row", 40)
    yield _Section("#### Changes", [_value(value) for value in report.of(Role.CHANGED)], "changed value", 200)
    yield _Section("#### Set by new experiments", [_value(value) for value in report.of(Role.SET)], "set value", 200)
    title = "Errors and warnings" if any(note.severity == "error" for note in report.notes) else "Warnings"
    yield _Section(f"#### {title}", [_note(note) for note in report.notes] + _plain(report.notices), "warning")
    yield _Section("#### Presets and datasets", [_edit(value) for value in report.of(Role.EDIT)], "edit")
    yield from _impact(report)
    moved = "The target's presets changed since the branch left it. Rendered with them, these values would differ:"
    drift = [_value(value) for value in report.of(Role.DRIFT)]
    yield _Section("#### Not up to date", drift, "outdated value", intro=moved if drift else "")
    yield _Section("#### Arguments the pod adds", [_derived(item) for item in report.derived], "argument")
    yield _Section("#### Pending launches", [f"- {code(name)}" for name in report.pending], "pending launch")
    yield _Section("#### Legacy waivers touched", [f"- {code(path)}" for path in report.waivers], "waiver file")


def _first_rows(happening: list[Row]) -> Iterator[str]:
    yield from map(_row, happening[:_FIRST_SCREEN])
    if len(happening) > _FIRST_SCREEN:
        yield f"- and {words.number(len(happening) - _FIRST_SCREEN)} more, counted above"


def _impact(report: Report) -> Iterator[_Section]:
    if report.impact:
        lines = [_value(value) for value in report.of(Role.IMPACT)]
        yield _Section("#### Frozen runs", lines, "value of frozen runs", intro=words.blast(report.impact))


def _plain(texts: Iterable[str]) -> list[str]:
    return [f"- {prose(text)}" for text in texts]


def _row(row: Row) -> str:
    verb = f"**{words.VERBS[row.effect]}**"
    where = f" in {code(row.environment)}" if row.environment else ""
    parts = [f"- {verb} {code(row.experiment)}{where}{f': {code(row.run)}' if row.run else ''}"]
    parts += [f"**{prose(row.starts)}**"] if row.starts else []
    parts += words.sizes(row)
    parts += [f"owner {code(row.owner)}"] if row.owner else []
    parts.append(prose(row.reason))
    parts += [f"makes way for {code(row.then)}"] if row.then else []
    parts += [prose(row.condition)] if row.condition else []
    return " · ".join(parts)


def _value(value: Value) -> str:
    where = value.sites[0].place if value.sites else ""
    won = f"{prose(value.layer)} {code(where)}" if where else "no layer sets it"
    line = f"- {code(value.path)}: {code(value.old)} → {code(value.new)} · {won}"
    if value.beat:
        line += f", beat {', '.join(code(beat) for beat in value.beat[:3])}"
    return f"{line} · {_experiments([site.experiment for site in value.sites], value.count)}"


def _edit(value: Value) -> str:
    where = value.sites[0].place if value.sites else ""
    return f"- {code(where)}: {code(value.path)}: {code(value.old)} → {code(value.new)}"


def _derived(item: Derived) -> str:
    return f"- {code(f'{item.key}={item.value}')} · {code(item.rule)}: {prose(item.reason)} · " + _experiments(
        item.experiments, item.count
    )


def _note(note: Note) -> str:
    path = f"{code(note.path)}: " if note.path else ""
    line = f"- **{'error' if note.severity == 'error' else 'warning'}** {path}{prose(note.message)}"
    hint = f" ({prose(note.hint.splitlines()[0])})" if note.hint.strip() else ""
    return f"{line}{hint} · {_named(note.places, note.count)}"


def _experiments(names: Iterable[str], count: int) -> str:
    return f"{words.plural(count, 'experiment')}: {_named(names, count)}" if count != 1 else _named(names, count)


def _named(names: Iterable[str], count: int) -> str:
    shown = list(names)[:_NAMED]
    more = f" and {words.number(count - len(shown))} more" if count > len(shown) else ""
    return ", ".join(map(code, shown)) + more


def _tail(report: Report, left_out: list[str], whole: str) -> str:
    """Return what every comment ends in: what it was made from, what it leaves out, and where the whole is."""
    link = re.fullmatch(r"https://[A-Za-z0-9./_?=&%#:-]{1,500}", whole)
    place = f"[the whole report]({whole})" if link else code(whole) if whole else "renderer report --format html"
    missing = ", ".join(left_out[:20]) if left_out else "nothing but the manifests"
    cut = "".join(f"; {code(text)} of the data" for text in report.left_out[:_NAMED])
    made_by = ", which the branch's own code made, unchecked" if whole else ""
    base, head = code(report.base[:12], 20), code(report.head[:12], 20)
    made = f"{head} into {code(report.base_name)} at {base}; launched before by {prose(report.known_by)}"
    return f"{made}.\nLeft out here: {missing}{cut}. It is all in {place}{made_by}."
