"""What an apply came to, in words: as text, as a comment on the pull request, and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from renderer import policy
from renderer.cluster.apply import Result
from renderer.cluster.labels import CONTAINER, INDEX_LABEL, JOBSET_LABEL
from renderer.cluster.outcome import Outcome, Verdict
from renderer.plan import Effect
from renderer.problem import counted, shown
from renderer.report.markdown import LIMIT, code, length, prose
from renderer.secrets import mask

ORDER = tuple(Verdict)
_MAX_HELP = 10
_MAX_NOTICES = 20
_TAIL_ROOM = 500


def data(result: Result) -> dict[str, Any]:
    """Return a result for machines; of the plan, what does something."""
    plan = [
        {
            "effect": action.effect,
            "experiment": action.state.experiment,
            "run": action.run,
            "chips": action.state.chips,
            "reason": action.reason,
            "starts": action.starts,
            "condition": action.condition,
            "then": action.then,
        }
        for action in result.actions
        if action.effect is not Effect.NOTHING
    ]
    return {
        "environment": result.environment,
        "cluster": result.cluster,
        "head": result.head,
        "marker": result.marker,
        "dry_run": result.dry_run,
        "empty": result.empty,
        "complete": result.complete,
        "good": result.good,
        "limits": list(result.limits),
        "notices": list(result.notices),
        "plan": plan,
        "results": [asdict(outcome) for outcome in ordered(result.outcomes)],
    }


def ordered(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return outcomes by what became of the runs: what needs a person last."""
    return sorted(outcomes, key=lambda outcome: (ORDER.index(outcome.verdict), outcome.experiment, outcome.run))


def headline(result: Result) -> str:
    """Return what was done, in one sentence with every count."""
    if result.limits:
        return f"nothing was done: this {' and '.join(result.limits)}"
    counts = Counter(outcome.verdict for outcome in result.outcomes)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict])
    if result.dry_run and said:
        return f"a dry run, nothing was changed; there would be {said}"
    return said or ("nothing to do" if result.empty else "nothing was done")


def text(result: Result) -> Iterator[str]:
    """Yield the lines for a terminal."""
    since = f" after {result.marker[:12]}" if result.marker else ""
    yield f"{result.environment} ({result.cluster}): {result.head[:12]}{since}: {headline(result)}."
    found = ordered(result.outcomes)
    widths = [max((len(cell) for cell in cells), default=0) for cells in zip(*map(_cells, found), strict=True)]
    for outcome in found:
        cells = (cell.ljust(width) for cell, width in zip(_cells(outcome), widths, strict=True))
        yield f"  {'  '.join(cells)}  {_because(outcome)}"
    yield from warnings(found)
    for remedy in remedies(found):
        yield ""
        yield from remedy.splitlines()
    yield from way_out(result)
    if any(outcome.verdict is Verdict.REFUSED for outcome in found):
        yield "once the cause is mended, apply this commit again: refused runs are tried again then"
    yield from result.notices
    if not result.dry_run:
        yield from usage(found)


def way_out(result: Result) -> Iterator[str]:
    """Yield what helps where the policy's limits are exceeded; before the first apply nothing can be merged later."""
    if not result.limits:
        return
    yield f"the limits stand under merge: in {policy.FILE}; raise them there in a reviewed change"
    if result.marker:
        yield "or, of several merges, apply an earlier one first; or revert a part, and merge it again later"
    else:
        yield "or begin with --adopt: it records every run as launched and starts none; what is merged later starts"


def warnings(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield what preflight doubts, each once, with the number of runs."""
    found = Counter(warning for outcome in outcomes for warning in outcome.warnings)
    yield from (f"warning: {warning}{f' ({count} runs)' if count > 1 else ''}" for warning, count in found.items())


def remedies(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the commands that mend what is missing, each once."""
    return list(dict.fromkeys(remedy for outcome in outcomes for remedy in outcome.remedies))


def _cells(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.verdict, outcome.experiment, outcome.run


def _because(outcome: Outcome) -> str:
    """Return why, and what else a person should know."""
    parts = [outcome.reason]
    if outcome.verdict in {Verdict.LAUNCHED, Verdict.QUEUED}:
        parts += [outcome.starts, f"in queue {outcome.queue}" if outcome.verdict is Verdict.QUEUED else ""]
        parts.append(f"pull request {outcome.pull_request}" if outcome.pull_request else "")
    return "; ".join(filter(None, parts))


def usage(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield, per run that was launched, the commands to watch it, to read it, to enter it and to end it."""
    runs = [outcome for outcome in outcomes if outcome.verdict in {Verdict.LAUNCHED, Verdict.QUEUED}]
    for outcome in runs[:_MAX_HELP]:
        run, space = outcome.run, outcome.namespace
        pod = f"-l {JOBSET_LABEL}={run},{INDEX_LABEL}=0"
        yield ""
        yield f"{run} in namespace {space}"
        yield f"  monitor:   kubectl get jobset {run} -n {space} --watch"
        yield f"             kubectl get pods -n {space} -l {JOBSET_LABEL}={run}"
        yield f"  tail:      kubectl logs -n {space} {pod} -c {CONTAINER} --tail=100 -f"
        named = f"$(kubectl get pods -n {space} {pod} -o name)"
        yield f"  exec:      kubectl exec -it -n {space} {named} -c {CONTAINER} -- bash"
        yield f"  clean up:  merge `state: stopped` under launch: in {outcome.file}"
        yield f"             at once: renderer stop {run}"
    if len(runs) > _MAX_HELP:
        yield ""
        yield f"The same commands serve {counted(len(runs) - _MAX_HELP, 'further run')}."


def markdown(result: Result) -> str:
    """Return a comment within GitHub's limit; no value in it can be more than text."""
    page = [f"<!-- renderer apply {result.environment} -->"]
    page.append(f"### {_title(result)} {code(result.environment)}: {prose(mask(headline(result)))}.")
    page += [f"\n{prose(mask(notice))}" for notice in result.notices[:_MAX_NOTICES]]
    if len(result.notices) > _MAX_NOTICES:
        more = counted(len(result.notices) - _MAX_NOTICES, "more such notice")
        page.append(f"\nand {more} in the log of the job")
    used, lines = sum(length(line) + 1 for line in page), list(_rows(result))
    for index, line in enumerate(lines):
        used += length(line) + 1
        if used > LIMIT - _TAIL_ROOM:
            page.append(f"\nand {counted(len(lines) - index, 'more line')}, left out here.")
            break
        page.append(line)
    since = f" after {code(result.marker[:12])}" if result.marker else ""
    return "\n".join([*page, f"\n{code(result.head[:12])}{since} on {code(result.cluster)}.", ""])


def _title(result: Result) -> str:
    """Return how the comment begins, before the environment."""
    if result.dry_run:
        return "Apply to"
    return "Applied to" if result.empty or result.outcomes else "Not applied to"


def _rows(result: Result) -> Iterator[str]:
    for verdict in ORDER:
        found = [outcome for outcome in ordered(result.outcomes) if outcome.verdict is verdict]
        if found:
            yield f"\n**{verdict}**\n"
        for outcome in found:
            run = f" {code(mask(outcome.run))}" if outcome.run else ""
            yield f"- {code(mask(outcome.experiment))}{run}: {prose(mask(_because(outcome)))}"
    yield from (f"\n{prose(mask(warning))}" for warning in warnings(result.outcomes))
    yield from (f"\n{prose(line)}" for line in way_out(result))
    missing = remedies(result.outcomes)
    if missing:
        yield "\n**What mends it**\n"
    yield from (f"    {shown(line)}" for remedy in missing for line in remedy.splitlines())
