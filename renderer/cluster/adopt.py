"""The first apply where runs live already: the ledger learns what a commit holds, and nothing is created."""

from __future__ import annotations

from dataclasses import replace

from renderer.cluster import lease
from renderer.cluster.api import Api, ApiError, Object, jobsets
from renderer.cluster.conditions import ended
from renderer.cluster.damage import LedgerError
from renderer.cluster.history import History
from renderer.cluster.labels import content_digest_of
from renderer.cluster.ledger import Entry, Store
from renderer.cluster.outcome import DONE, Done, Outcome, Verdict, of_entry
from renderer.cluster.planning import FOLDERS
from renderer.cluster.recording import entry_of
from renderer.cluster.tasks import each
from renderer.committed import Reader, units_of, wanted
from renderer.run_text import NAMESPACE, value
from renderer.runs import Committed, State

_NO_JOBSET = "adopted; its JobSet does not live"


def adopt(api: Api, git: History, store: Store, head: str, *, actor: str, dry_run: bool) -> Done:
    """Record every run of a commit that is not stopped as launched, with its JobSet's uid where one lives.

    Complete is what leaves the marker at `head`. Raises ApiError and LedgerError.
    """
    tree = git.tree(head, *FOLDERS)
    units = units_of(tree)
    reader = Reader(tree, git.blobs(wanted(tree, units)))
    runs = [run for run in reader.snapshot(units).runs if run.environment == store.environment and not run.stopped]
    sound = [run for run in runs if run.name and not run.problem]
    namespaces = {run.name: value(NAMESPACE, reader.files(run)["jobset.yml"]) for run in sound}
    found = {name: _jobsets(api, name) for name in set(namespaces.values())}

    def record(run: Committed) -> Outcome:
        space = namespaces[run.name]
        try:
            return _record(api, store, _entry(run, space, found[space].get(run.name), head, actor), dry_run=dry_run)
        except (ApiError, LedgerError) as error:
            reason = f"it could not be recorded: {error}"
            return Outcome(Verdict.FAILED, run.experiment, run.name, run.file, reason, space)

    outcomes = tuple(each(record, sound))
    if not dry_run:
        _lead_here(git, store, head)
    notices = tuple(f"{run.file}: not recorded: {run.problem}" for run in runs if run.problem)
    complete = all(outcome.verdict in DONE for outcome in outcomes)
    return Done(outcomes, complete and (dry_run or store.move_marker(None, head)), notices)


def _lead_here(git: History, store: Store, head: str) -> None:
    """Give runs from commits that do not lead to `head` this one: after a rewritten branch nothing else would do so."""
    reached = {head, *git.commits(head)}
    each(lambda entry: store.change(entry, commit=head), [run for run in store.entries() if run.commit not in reached])


def _jobsets(api: Api, namespace: str) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in api.items(jobsets(namespace))}


def _entry(run: Committed, namespace: str, jobset: Object | None, head: str, actor: str) -> Entry:
    own = jobset is not None and content_digest_of(jobset) == run.content
    alive = own and jobset is not None and not ended(jobset)
    entry = entry_of(run, run.environment, namespace, commit=head, actor=actor)
    uid = jobset["metadata"]["uid"] if alive and jobset else ""
    return replace(entry, state=State.LAUNCHED, reason="adopted" if alive else _NO_JOBSET, uid=uid)


def _record(api: Api, store: Store, entry: Entry, *, dry_run: bool) -> Outcome:
    outcome = of_entry(Verdict.RECORDED, entry, entry.reason)
    if dry_run:
        return outcome
    if store.add(entry) is None:
        there = store.entry(entry.name)
        if there is None:
            return replace(outcome, verdict=Verdict.FAILED, reason="its entry is gone from the ledger")
        entry, outcome = there, replace(outcome, reason=f"the ledger has it already: {there.state}")
    if lease.lives(api, entry) and (other := lease.take(api, store, entry)):
        return replace(outcome, warnings=(f"{other} writes to {entry.output} too",))
    return outcome
