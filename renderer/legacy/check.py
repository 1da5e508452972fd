"""The proof: compares each experiment with its recording, and lets pass only what is waived."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from renderer.compare import ABSENT
from renderer.configure import Configurator
from renderer.layers import Repository
from renderer.legacy import ours, pairs, sources
from renderer.legacy.difference import Difference, differences
from renderer.legacy.ours import Ours
from renderer.legacy.pairs import FILE, FOLDER, Pair, Pairs
from renderer.legacy.resolved import ALLOW_OVERRIDES
from renderer.legacy.sources import Recorded
from renderer.legacy.waivers import Context, Waiver, covers, is_default, matches
from renderer.location import Location
from renderer.problem import Problem, RefusedError, refuse


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the comparison of one pair came to: differences that nothing waives, those waived, and unused waivers."""

    pair: Pair
    recorded: Recorded
    ours: Ours
    differences: tuple[Difference, ...]
    waived: tuple[tuple[Difference, Waiver], ...]
    unused: tuple[tuple[Waiver, str], ...]
    expired: tuple[Waiver, ...]
    compared: int
    context: Context

    @property
    def equal(self) -> bool:
        """Whether every difference is waived, and every waiver is used and in force."""
        return not (self.differences or self.unused or self.expired)

    @property
    def origin(self) -> dict[str, str]:
        """Return for each unwaived difference where our value comes from."""
        return {found.path: self._origin(found) for found in self.differences}

    def _origin(self, found: Difference) -> str:
        if found.ours is not ABSENT:
            return self.ours.origins.get(found.path, "the renderer")
        return (
            "no layer sets it; recorded is MaxText's default" if is_default(found, self.context) else "no layer sets it"
        )


def check(repository: Repository, names: Iterable[str], today: datetime.date) -> list[Outcome]:
    """Return the outcome of the pairs called `names`, all of them where none is named.

    Raises RefusedError for a name without a pair, and for checks.yml, recordings or experiments that have errors.
    """
    listed = pairs.read(repository.root)
    chosen = _chosen(listed, list(names))
    configurator = Configurator(repository)
    problems: list[Problem] = []
    outcomes = []
    for pair in chosen:
        try:
            outcomes.append(compare_pair(configurator, pair, today))
        except RefusedError as error:
            problems.extend(error.problems)
    if not names:
        problems.extend(_loose_ends(repository.root, listed))
    if problems:
        raise RefusedError(problems)
    return outcomes


def _chosen(listed: Pairs, names: list[str]) -> list[Pair]:
    wanted = [name.removeprefix("experiments/").removesuffix(".yml") for name in names]
    known = {pair.experiment: pair for pair in listed.pairs}
    for name in wanted:
        if name not in known:
            refuse(
                "legacy-pair", Location(FILE), f"no recording is paired with {name}", hint=f"pairs: {', '.join(known)}"
            )
    return [known[name] for name in wanted] if wanted else list(listed.pairs)


def _loose_ends(root: Path, listed: Pairs) -> Iterator[Problem]:
    """Yield a problem per recording nobody compares, per refusal that no longer holds, per unused set of waivers."""
    named = {pair.recording for pair in listed.pairs} | set(listed.refused)
    for path in sorted((root / FOLDER).rglob("*.json")):
        name = path.relative_to(root / FOLDER).as_posix()
        if name not in named:
            message = f"no experiment is compared with it: pair it in {FILE}, or list it there under refused:"
            yield Problem("legacy-unpaired", Location(f"{FOLDER}/{name}"), "", message)
    for name in listed.refused:
        try:
            sources.read(root / FOLDER / name, f"{FOLDER}/{name}")
        except RefusedError:
            continue
        yield Problem(
            "legacy-refused", Location(FILE), f"refused.{name}", "can be compared: pair it with an experiment"
        )
    for place in listed.unused_sets:
        yield Problem("waiver-unused", place, "", "no pair uses these waivers: delete them")


def compare_pair(configurator: Configurator, pair: Pair, today: datetime.date) -> Outcome:
    """Return the outcome of one pair. Raises RefusedError if either side cannot be read."""
    path = configurator.repository.root / "experiments" / f"{pair.experiment}.yml"
    mine = ours.read(configurator, path)
    file = f"{FOLDER}/{pair.recording}"
    recorded = sources.read(configurator.repository.root / file, file, pair.version, mine.configuration.snapshot)
    return compare(pair, recorded, mine, today)


def compare(pair: Pair, recorded: Recorded, mine: Ours, today: datetime.date) -> Outcome:
    """Return how `mine` differs from `recorded` under the pair's waivers; a waiver expires the day after its date."""
    states = recorded.resolved.states
    left, right = recorded.resolved.values(states), mine.resolved.values(states)
    context = _context(recorded, mine)
    open_differences, waived = [], []
    for found in differences(left, right):
        waiver = next((waiver for waiver in pair.waivers if covers(waiver, found, context)), None)
        if waiver is None:
            open_differences.append(found)
        else:
            waived.append((found, waiver))
    return Outcome(
        pair=pair,
        recorded=recorded,
        ours=mine,
        differences=tuple(open_differences),
        waived=tuple(waived),
        unused=tuple(_unused(pair, [(found.path, waiver) for found, waiver in waived])),
        expired=tuple(dict.fromkeys(waiver for _, waiver in waived if waiver.expires < today)),
        compared=len(left.keys() | right.keys()),
        context=context,
    )


def _unused(pair: Pair, used: list[tuple[str, Waiver]]) -> Iterator[tuple[Waiver, str]]:
    """Yield each path of a waiver that waived nothing."""
    for waiver in pair.waivers:
        paths = [path for path, other in used if other is waiver]
        for pattern in waiver.paths:
            if not any(matches(pattern, path) for path in paths):
                yield waiver, pattern


def _context(recorded: Recorded, mine: Ours) -> Context:
    launch = mine.configuration.launch
    fields = {
        "workload": str(recorded.resolved.job.get("name") or ""),
        "model": launch.model,
        "name": launch.name or mine.configuration.name,
        "chips": str(launch.chips),
        "version": mine.resolved.version,
    }
    model = str(mine.resolved.maxtext.get("model_name"))
    allowed = recorded.resolved.maxtext.get(ALLOW_OVERRIDES) is True
    return Context(fields, mine.configuration.snapshot, model, recorded.reads, allowed)
