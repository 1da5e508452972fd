"""The whole apply: from a commit, the marker and the ledger to what is done, or to the reason why nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from renderer.cluster import ledger
from renderer.cluster.adopt import adopt
from renderer.cluster.api import Api, ApiError
from renderer.cluster.applying import Applying, Progress
from renderer.cluster.history import History
from renderer.cluster.ledger import Store
from renderer.cluster.outcome import DONE, Done, Outcome
from renderer.cluster.planning import Work, work
from renderer.cluster.settings import settings, verify_identity
from renderer.committed import Reader, named, wanted
from renderer.location import COMMAND_LINE
from renderer.plan import Action
from renderer.policy import exceeded
from renderer.problem import refuse
from renderer.runs import State

ADOPT, LAUNCH_ALL = "adopt", "launch-all"


@dataclass(frozen=True, slots=True)
class Request:
    """What to apply, and who asks for it; `first` is adopt, launch-all or empty."""

    environment: str
    actor: str
    dry_run: bool = False
    first: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What an apply came to.

    `marker` is the commit applied before, empty if there was none; `empty` says that there was nothing to do. `limits`
    are the policy's that the commits exceed: nothing was done then. `complete` says that nothing is left for the next
    apply but what is pending.
    """

    environment: str
    cluster: str
    head: str
    marker: str
    dry_run: bool = False
    empty: bool = False
    complete: bool = True
    actions: tuple[Action, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    limits: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether all that was asked for is done."""
        done = all(outcome.verdict in DONE for outcome in self.outcomes)
        return done and not self.limits and (self.complete or self.dry_run)


def apply(api: Api, git: History, request: Request, progress: Progress) -> Result:
    """Apply the commit HEAD to an environment. Raises ApiError, LedgerError, and RefusedError before any change."""
    head = git.commit("HEAD")
    if head is None:
        refuse("apply-commit", COMMAND_LINE, "there is no commit here: apply takes committed files only")
    if git.shallow():
        hint = "fetch the whole history: git fetch --unshallow, or fetch-depth: 0 in a workflow"
        refuse("apply-commit", COMMAND_LINE, "this clone is shallow: what was applied before cannot be told", hint=hint)
    _refuse_unmerged(git, head)
    found = settings(git, head, request.environment)
    verify_identity(api, found.cluster)
    store = Store(api, request.environment)
    marker = store.read_marker()
    about = Result(request.environment, found.cluster.name, head, marker or "", request.dry_run)
    if marker is None:
        _first(api, request)
    elif request.first:
        message = f"{marker[:12]} was applied to {request.environment} before: --{request.first} is for the first apply"
        refuse("apply-first", COMMAND_LINE, message)
    elif _is_older(git, head, marker, request.environment):
        said = f"{head[:12]} was applied before; {marker[:12]}, which came after it, is the last applied commit"
        return replace(about, empty=True, notices=(said,))
    if request.first == ADOPT:
        done = adopt(api, git, store, head, actor=request.actor, dry_run=request.dry_run)
        return _came_to(replace(about, empty=not (done.outcomes or done.notices)), done)
    todo = work(api, git, request.environment, store.entries(), marker, head)
    limits = tuple(exceeded(found.policy, **todo.asked))
    left = tuple(_left(git, todo))
    empty = todo.empty and not left and not store.read_unsettled()
    about = replace(about, empty=empty, actions=todo.actions, notices=left)
    if limits:
        return replace(about, limits=limits)
    applying = Applying(api, git, store, found, todo, request.actor)
    done = applying.dry_run() if request.dry_run else applying.run(progress)
    return _came_to(about, done)


def _came_to(about: Result, done: Done) -> Result:
    notices = (*about.notices, *done.notices)
    return replace(about, outcomes=done.outcomes, notices=notices, complete=done.complete)


def _left(git: History, todo: Work) -> Iterator[str]:
    """Say how many runs of the commit stay refused, though it wants them: applying it once more tries them again."""
    refused = {entry.name for entry in todo.entries.values() if entry.state is State.REFUSED}
    units = set(named(git, todo.tree, refused - {action.run for action in todo.actions}).values())
    reader = Reader(todo.tree, git.blobs(wanted(todo.tree, units)))
    count = sum(not run.stopped for run in reader.snapshot(units).runs)
    if count and todo.marker != todo.head:
        yield f"refused before and not tried again: {count}; apply this commit once more to try them"


def _first(api: Api, request: Request) -> None:
    """Ask what the first apply is to mean, and make sure that there is a place for the ledger."""
    with suppress(ApiError):  # who may not read namespaces is told by the first write
        if api.get(f"/api/v1/namespaces/{ledger.CONTROL}") is None:
            hint = f"kubectl create namespace {ledger.CONTROL}"
            refuse(
                "apply-first", COMMAND_LINE, f"the cluster has no namespace {ledger.CONTROL} for the ledger", hint=hint
            )
    if not request.first:
        command = f"renderer apply --environment {request.environment}"
        message = f"nothing was applied to {request.environment} yet: do the runs of HEAD live already?"
        hint = (
            f"{command} --adopt records them as launched and creates nothing\n"
            f"{command} --launch-all launches all of them"
        )
        refuse("apply-first", COMMAND_LINE, message, hint=hint)


def _refuse_unmerged(git: History, head: str) -> None:
    """Refuse a commit that the default branch of origin, where git knows it, does not hold."""
    target = git.base(None)
    if target.commit and not git.is_ancestor(head, target.commit):
        message = f"HEAD {head[:12]} is not on {target.name}: only what was merged is applied"
        hint = "merge it first; if it was merged: git fetch origin, and check out the merged commit"
        refuse("apply-commit", COMMAND_LINE, message, hint=hint)


def _is_older(git: History, head: str, marker: str, environment: str) -> bool:
    """Return whether the commit was applied before a later one. Refuses commits of which neither leads to the other."""
    if head == marker or git.is_ancestor(marker, head):
        return False
    if git.is_ancestor(head, marker):
        return True
    message = (
        f"the last applied commit {marker[:12]} and HEAD {head[:12]} do not lead to each other; nothing was changed"
    )
    hint = (
        "apply a commit that contains the last applied one\n"
        "if the branch was rewritten on purpose, forget the marker and answer the question of the first apply anew:\n"
        f"kubectl delete configmap marker-{environment} -n {ledger.CONTROL}"
    )
    return refuse("apply-commit", COMMAND_LINE, message, hint=hint)
