"""The sentences that every form of the report shares. Values in them are plain text: each form escapes them itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from renderer.plan import LAUNCHES, Effect
from renderer.report.data import Impact, Report, Row, Size, Totals

ORDER = (Effect.REFUSE, Effect.LAUNCH, Effect.RELAUNCH, Effect.RETRY, Effect.STOP)
"""What happens on merge, what needs an answer first."""

VERBS = {
    Effect.REFUSE: "refused",
    Effect.LAUNCH: "launch",
    Effect.RELAUNCH: "relaunch",
    Effect.RETRY: "launch again",
    Effect.STOP: "stop",
    Effect.NOTHING: "nothing",
}


def happening(report: Report) -> list[Row]:
    """Return the rows that do something, in the order in which they are shown."""
    return sorted((row for row in report.rows if row.effect in ORDER), key=lambda row: ORDER.index(row.effect))


def headline(report: Report) -> str:
    """Return what the merge does, in one sentence with every count."""
    totals = report.totals
    found = list(_counts(totals))
    if report.deleted:
        found.append(f"{plural(len(report.deleted), 'experiment file')} removed")
    said = ", ".join(found) if found else "nothing is launched or stopped"
    if totals.from_presets:
        said += f"; {plural(totals.from_presets, 'value')} changed outside the edited experiment files"
    if report.paused and totals.launches:
        said += "; launches are paused"
    return f"{said}."


def _counts(totals: Totals) -> Iterator[str]:
    if totals.launches:
        yield f"{plural(totals.launches, 'launch', 'launches')} ({plural(totals.chips, 'chip')})"
    if totals.stops:
        yield plural(totals.stops, "stop")
    if totals.refused:
        yield f"{totals.refused} refused"


def quiet(report: Report) -> list[str]:
    """Return why nothing happens to the other experiments, one reason each, counted."""
    reasons = Counter(row.reason for row in report.rows if row.effect is Effect.NOTHING)
    found = [f"{count} x {reason}" if count > 1 else reason for reason, count in reasons.most_common()]
    return found + ([f"{plural(report.totals.unchanged, 'experiment')} untouched"] if report.totals.unchanged else [])


def sizes(row: Row) -> Iterator[str]:
    """Yield what a run takes and does, piece by piece."""
    size = row.size
    devices = f", {plural(size.devices, 'device')}" if size.devices else ""
    if size.chips:
        yield f"{plural(size.chips, 'chip')}{devices}"
    if row.effect not in LAUNCHES:
        return
    if size.global_batch:
        yield f"global batch {number(size.global_batch)}"
    yield from _tokens(size)


def _tokens(size: Size) -> Iterator[str]:
    if size.tokens_per_step:
        yield f"{short(size.tokens_per_step)} tokens a step"
    if size.tokens and size.steps:
        yield f"{short(size.tokens)} tokens in {plural(size.steps, 'step')}"
    elif size.steps:
        yield plural(size.steps, "step")
    if size.chip_hours is not None:
        yield f"{plural(round(size.chip_hours), 'chip-hour')} by its last result"


def blast(impact: Impact) -> str:
    """Return what edited presets would do to frozen runs, in one sentence."""
    if not impact.frozen:
        return "No frozen run uses an edited file."
    use, stay, them = ("uses", "It stays", "it") if impact.frozen == 1 else ("use", "They stay", "them")
    said = f"Of {plural(impact.frozen, 'frozen run')} that {use} an edited file, {number(impact.changed)} would change"
    if impact.earlier:
        said += f"; {number(impact.earlier)} {'differs' if impact.earlier == 1 else 'differ'} only by earlier edits"
    if impact.invalid:
        said += f"; {number(impact.invalid)} could no longer be rendered"
    return f"{said}. {stay} as rendered until someone renders {them} again."


def number(value: int) -> str:
    """Return an integer with its thousands apart."""
    return f"{value:,}"


def short(value: int) -> str:
    """Return a large count in three digits: 67.1 M, 3.36 T."""
    for size, unit in ((10**15, "P"), (10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value < 1000 * size else f"{value // size:,} {unit}"
    return str(value)


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun."""
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"
