"""What apply has to do in one environment: the plan between two commits, by what the ledger and the cluster say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from renderer.cluster.api import Api, Object
from renderer.cluster.history import History
from renderer.cluster.lease import find_jobset, lives
from renderer.cluster.ledger import Entry
from renderer.cluster.tasks import each
from renderer.committed import Reader, Tree, Unit, differing, experiment_path, files_of, folders, named, unit_of, wanted
from renderer.layers import RENDERED
from renderer.manifests import HOLD_QUEUE
from renderer.names import QUEUE_LABEL
from renderer.plan import LAUNCHES, Action, Effect, asked, plan
from renderer.runs import UNSTARTED, Ledger, Recorded, Snapshot, State, recorded

FOLDERS = ("experiments", "rendered", "presets")
_CURRENT = UNSTARTED | {State.LAUNCHED}


@dataclass(frozen=True, slots=True)
class Sweep:
    """A run that was not started yet and is not wanted any more; `state` is what becomes of its entry."""

    entry: Entry
    state: State
    reason: str


@dataclass(frozen=True, slots=True)
class Work:
    """What apply has to do.

    `actions` are the environment's, those that do nothing too; a run of `swept` is in none of them. `asked` counts what
    the policy limits over the whole merge. `blocked` says of experiments why nothing is done about them. `entries` are
    the ledger's by name, `reader` and `tree` the head's. `pull_requests` names the last one of each experiment.
    `passed`: a commit that was passed over touched the environment, and its own apply may still be at work.
    """

    marker: str | None
    head: str
    actions: tuple[Action, ...]
    swept: tuple[Sweep, ...]
    asked: Mapping[str, int]
    blocked: Mapping[str, str]
    entries: Mapping[str, Entry]
    reader: Reader
    tree: Tree
    pull_requests: Mapping[Unit, str]
    passed: bool

    def of(self, *effects: Effect) -> list[Action]:
        """Return the actions of some effects."""
        return [action for action in self.actions if action.effect in effects]

    @property
    def launches(self) -> list[Action]:
        """The launches, relaunches and retries."""
        return self.of(*LAUNCHES)

    @property
    def stops(self) -> list[Action]:
        """The stops that wait for no launch."""
        return [action for action in self.of(Effect.STOP) if not action.then]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do, to refuse, or to watch for."""
        idle = all(action.effect is Effect.NOTHING for action in self.actions)
        return idle and not (self.swept or self.blocked or self.passed)


def work(
    api: Api,
    git: History,
    environment: str,
    entries: Iterable[Entry],
    marker: str | None,
    head: str,
    *,
    since: Iterable[Entry] | None = None,
) -> Work:
    """Return what applying `head` does after `marker` was applied; without a marker, nothing was. Raises ApiError.

    A run that the ledger has from a commit after the marker, because an apply broke off, is planned from that commit;
    with `since`, only these are.
    """
    found = {entry.name: entry for entry in entries}
    tree = git.tree(head, *FOLDERS)
    refused = [entry for entry in found.values() if entry.state is State.REFUSED]
    again = {entry.name for entry in refused if head in {marker, entry.commit}}
    dropped = {entry.name for entry in found.values() if entry.state in UNSTARTED or entry.swept}
    open_ = named(git, tree, dropped | again)
    released = _released(api, found.values())
    found |= {name: replace(found[name], state=State.LAUNCHED) for name in released - open_.keys()}
    current = [entry for entry in found.values() if entry.state in _CURRENT]
    start = current if since is None else since
    base = _patched(git, git.tree(marker, *FOLDERS) if marker else {}, start, git.commits(head, marker))
    units = differing(base, tree) | set(open_.values())
    blobs = git.blobs([*wanted(base, units), *wanted(tree, units)])
    reader = Reader(tree, blobs)
    old, new = Reader(base, blobs).snapshot(units), reader.snapshot(units)
    touched = {run.experiment for run in (*old.runs, *new.runs)}
    alive = _alive(api, [entry for entry in current if entry.state in UNSTARTED or entry.experiment in touched])
    final = {entry.name for entry in refused if entry.name not in again and not _changed(git, tree, entry, new)}
    actions = plan(old, new, _ledger(found.values(), alive, final))
    blocked = _blocked(alive, git, head)
    mine = [
        _final(action, found, final)
        for action in actions
        if action.environment in {environment, ""}
        and action.state.experiment not in blocked
        and action.then not in final
    ]
    unstarted = [entry for entry in found.values() if entry.state in UNSTARTED and entry.name not in released]
    swept = {sweep.entry.name: sweep for sweep in _swept(unstarted, mine, blocked)}
    return Work(
        marker=marker,
        head=head,
        actions=tuple(action for action in mine if action.run not in swept),
        swept=tuple(swept.values()),
        asked=asked(mine, [entry.name for entry in refused]),
        blocked=blocked,
        entries=found,
        reader=reader,
        tree=tree,
        pull_requests=git.pull_requests(head, marker) if any(action.effect in LAUNCHES for action in mine) else {},
        passed=marker is not None and _touched(environment, git.between(head, marker), {*base, *tree}),
    )


def _touched(environment: str, changed: Iterable[str], held: Collection[str]) -> bool:
    """Return whether any changed path is of an experiment that has, or had in between, a run in the environment."""
    prefix = f"{RENDERED}/{environment}/"
    runs = {unit_of(path) for path in held if path.startswith(prefix)}
    return any(path.startswith(prefix) or ((unit := unit_of(path)) and unit in runs) for path in changed)


def _patched(git: History, base: Tree, current: Iterable[Entry], after: list[str]) -> Tree:
    """Return the marker's tree with the experiments as the newest commit has them from which a run is recorded.

    `after` are the commits after the marker, the newest first.
    """
    order = {commit: index for index, commit in enumerate(after)}
    newest: dict[Unit, str] = {}
    for entry in current:
        unit = unit_of(entry.file)
        if unit and entry.commit in order and order[entry.commit] <= order[newest.get(unit, after[-1])]:
            newest[unit] = entry.commit
    patched = dict(base)
    for unit, commit in newest.items():
        for path in files_of(patched, unit):
            del patched[path]
        patched |= git.tree(commit, experiment_path(unit), *folders(unit))
    return patched


def _alive(api: Api, current: Iterable[Entry]) -> list[Entry]:
    """Return the runs that have still to be started, and those launched whose JobSet has not finished."""
    current = list(current)
    launched = [entry for entry in current if entry.state is State.LAUNCHED]
    found = each(lambda entry: lives(api, entry), launched)
    living = {entry.name for entry, alive in zip(launched, found, strict=True) if alive}
    return [entry for entry in current if entry.state in UNSTARTED or entry.name in living]


def _released(api: Api, entries: Iterable[Entry]) -> set[str]:
    """Return the held runs that were released, or are gone: an apply broke off before it could record that."""
    held = [entry for entry in entries if entry.state is State.HELD]
    found = each(lambda entry: find_jobset(api, entry), held)
    return {entry.name for entry, jobset in zip(held, found, strict=True) if jobset is None or _runs(jobset)}


def _runs(jobset: Object) -> bool:
    """Return whether a JobSet may start: it is not suspended, or Kueue has it in a queue that exists."""
    queue = (jobset["metadata"].get("labels") or {}).get(QUEUE_LABEL, "")
    return not jobset["spec"].get("suspend") or queue not in {"", HOLD_QUEUE}


def _changed(git: History, tree: Tree, entry: Entry, new: Snapshot) -> bool:
    """Return whether any file of a run is another than when the run was refused."""
    unit = next((unit_of(run.file) for run in new.runs if run.name == entry.name), None)
    if unit is None:
        return False
    if git.commit(entry.commit) is None:  # the branch was rewritten since
        return True
    return git.tree(entry.commit, experiment_path(unit), *folders(unit)) != files_of(tree, unit)


def _ledger(entries: Iterable[Entry], alive: Iterable[Entry], final: Collection[str]) -> Ledger:
    """Return what the plan is to know: of launched runs only living ones are live, a refusal may be open again."""
    living = {entry.name for entry in alive}

    def state(entry: Entry) -> str:
        if entry.swept or (entry.state is State.REFUSED and entry.name not in final):
            return State.PENDING
        return "ended" if entry.state is State.LAUNCHED and entry.name not in living else entry.state

    return recorded(Recorded(entry.name, entry.experiment, entry.environment, state(entry)) for entry in entries)


def _blocked(alive: Iterable[Entry], git: History, head: str) -> dict[str, str]:
    """Return why nothing is done about experiments with a run from a commit that does not lead to this one.

    A newer commit is being applied, or was when an apply broke off: undoing it here would be wrong.
    """
    alive = list(alive)
    reached = set(git.commits(head)) if any(entry.commit != head for entry in alive) else {head}
    return {
        entry.experiment: f"{entry.name} was recorded from commit {entry.commit[:12]}, which is no ancestor of "
        f"{head[:12]}: apply the newest commit, or stop that run"
        for entry in alive
        if entry.commit not in reached
    }


def _final(action: Action, entries: Mapping[str, Entry], final: Collection[str]) -> Action:
    """Return a launch that was refused for good as that refusal."""
    if action.effect not in LAUNCHES or action.run not in final:
        return action
    return replace(action, effect=Effect.REFUSE, reason=entries[action.run].reason, starts="", condition="")


def _swept(entries: Iterable[Entry], actions: Iterable[Action], blocked: Collection[str]) -> Iterator[Sweep]:
    by_run = {action.run: action for action in sorted(actions, key=lambda action: action.effect in LAUNCHES)}
    for entry in entries:
        action = by_run.get(entry.name)
        if entry.experiment in blocked or (action and action.effect in LAUNCHES):
            continue
        if action and action.effect is Effect.REFUSE:
            yield Sweep(entry, State.REFUSED, action.reason)
        else:
            yield Sweep(entry, State.STOPPED, action.reason if action else "no longer wanted by the applied commit")
