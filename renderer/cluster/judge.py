"""Whether runs may be launched: by the policy, by their files, and by what the cluster offers, which is read once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from renderer.cluster.api import Api, ApiError
from renderer.cluster.facts import Facts, gather
from renderer.cluster.kueue import DEFAULT
from renderer.cluster.objects import Objects
from renderer.cluster.permissions import Unknown
from renderer.cluster.permitted import forbidden
from renderer.cluster.preflight import check
from renderer.cluster.settings import Settings
from renderer.plan import Action
from renderer.problem import Severity


@dataclass(frozen=True, slots=True)
class Judgement:
    """Why a run may not be launched, empty if it may; what is doubtful; and the commands that mend what is missing."""

    refusal: str = ""
    warnings: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges by `facts`; `waits` says why nothing can be launched now, whatever the run."""

    settings: Settings
    facts: Facts | None = None
    waits: str = ""

    def judge(self, action: Action, run: Objects | str) -> Judgement:
        """Judge one run; text instead of its objects says what is wrong with its files."""
        if isinstance(run, str):
            return Judgement(run)
        found = []
        if self.facts is not None:
            found = check(self.facts, run.needs(), self.settings.cluster, self.settings.rules)
        missing = [finding for finding in found if finding.severity is Severity.ERROR]
        rules = forbidden(self.settings.rules, self.settings.environment, run)
        return Judgement(
            refusal="; ".join(filter(None, (action.condition, *rules, *(finding.what for finding in missing)))),
            warnings=tuple(finding.what for finding in found if finding.severity is Severity.WARNING),
            remedies=tuple(finding.remedy for finding in missing),
        )

    @property
    def kueue(self) -> bool:
        """Whether Kueue is installed."""
        return self.facts is not None and self.facts.kueue is not None

    def queue(self, run: Objects) -> str:
        """Return the queue that a run is handed to: Kueue lets none go without where there is a default one."""
        if self.facts is None or self.facts.kueue is None:
            return ""
        queues = self.facts.namespaces[run.namespace].queues
        caught = not isinstance(queues, Unknown) and DEFAULT in queues
        return run.queue or (DEFAULT if caught else "")


def look(api: Api, settings: Settings, runs: Iterable[Objects | str], *, dry_run: bool = False) -> Judge:
    """Read what the cluster offers to runs. A dry run may be made by someone who may not launch them."""
    namespaces = {run.namespace for run in runs if isinstance(run, Objects)}
    if settings.policy.paused:
        return Judge(settings, waits=f"launches are paused: {settings.policy.paused}")
    if not namespaces:
        return Judge(settings)
    try:
        facts = gather(api, namespaces)
    except ApiError as error:
        return Judge(settings, waits=f"what the cluster offers could not be read: {error}")
    return Judge(settings, _unjudged(facts) if dry_run else facts)


def _unjudged(facts: Facts) -> Facts:
    """Return the facts without what the caller may not do."""
    spaces = {name: replace(space, denied=()) for name, space in facts.namespaces.items()}
    return replace(facts, control=replace(facts.control, denied=()), namespaces=spaces)
