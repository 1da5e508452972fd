"""Records runs before anything of them is made: what is to be launched is in the ledger first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from renderer.cluster.damage import LedgerError
from renderer.cluster.ledger import ROUNDS, Entry, Store
from renderer.cluster.objects import Objects
from renderer.cluster.planning import Work
from renderer.committed import unit_of
from renderer.names import output_directory
from renderer.plan import Action, Effect
from renderer.run_text import NAMESPACE, value
from renderer.runs import Committed, State

_UNKNOWN = "unknown"


class Recorder:
    """Writes the entries of what `todo` launches and refuses, in the name of `actor`; `runs` are what is launched."""

    def __init__(self, store: Store, todo: Work, runs: Mapping[str, Objects | str], actor: str) -> None:
        self._store, self._todo, self._found, self._actor = store, todo, runs, actor

    def record(self, action: Action) -> Entry:
        """Write the entry of a run to launch, or of a refused one; return it as it is to be taken up.

        One that an earlier apply left is taken up where it stands. Raises ApiError and LedgerError.
        """
        entry = self.new(action)
        if not action.run:  # nothing is rendered, so there is nothing to record
            return entry
        added = None if action.run in self._todo.entries else self._store.add(entry)
        for _ in range(ROUNDS):
            found = added or self._store.entry(action.run)
            if found is None:
                raise LedgerError("its entry is gone from the ledger")
            if added or _taken_up(found, entry):
                return found
            added = self._store.change(_over(found, entry))
        raise LedgerError("others keep changing its entry in the ledger")

    def new(self, action: Action) -> Entry:
        """Return the entry of a run that the ledger does not know yet."""
        state, found = action.state, self._found.get(action.run)
        refused = action.effect is Effect.REFUSE
        output = ""
        if isinstance(found, Objects):
            data = found.run_data
            output = output_directory(str(data.get("base_output_directory") or ""), str(data.get("run_name") or ""))
        namespace = found.namespace if isinstance(found, Objects) else self._written(state)
        entry = entry_of(state, self._store.environment, namespace, commit=self._todo.head, actor=self._actor)
        return replace(
            entry,
            output=output,
            state=State.REFUSED if refused else State.PENDING,
            reason=action.reason if refused else "",
            pull_request=self.pull_request(action),
        )

    def _written(self, state: Committed) -> str:
        """Return the namespace that a run's rendered files name: who watches runs must not look everywhere for it."""
        return value(NAMESPACE, self._todo.reader.files(state).get("jobset.yml", b""))

    def pull_request(self, action: Action) -> str:
        """Return the number of the pull request that brought a run, or "unknown"."""
        unit, earlier = unit_of(action.state.file), self._todo.entries.get(action.run)
        found = self._todo.pull_requests.get(unit, "") if unit else ""
        return found or (earlier.pull_request if earlier else "") or _UNKNOWN


def entry_of(run: Committed, environment: str, namespace: str, *, commit: str, actor: str) -> Entry:
    """Return the pending entry of a committed run; its pull request is not known."""
    return Entry(
        experiment=run.experiment,
        file=run.file,
        environment=environment,
        namespace=namespace,
        name=run.name,
        digest=run.content,
        attempt=run.attempt,
        chips=run.chips,
        owner=run.owner,
        run_name=run.run_name,
        output=run.directory,
        commit=commit,
        pull_request=_UNKNOWN,
        actor=actor,
    )


def _taken_up(found: Entry, wanted: Entry) -> bool:
    """Return whether an entry stands as it is to be; one that is new, refused, or whose files are others now, does not.

    A run that is held, or was launched, stays as it was recorded.
    """
    if found.swept:
        return False
    if found.state is State.REFUSED:
        return wanted.state is State.REFUSED and found.reason == wanted.reason
    if found.state is not State.PENDING or not wanted.namespace:
        return True
    told = ("namespace", "output") if wanted.state is State.REFUSED else ("namespace", "output", "file", "owner")
    return all(getattr(found, key) == getattr(wanted, key) for key in told)


def _over(found: Entry, wanted: Entry) -> Entry:
    """Return `wanted` as the next version of `found`; what the files do not tell stays."""
    return replace(
        wanted,
        namespace=wanted.namespace or found.namespace,
        output=wanted.output or found.output,
        pull_request=found.pull_request if wanted.pull_request == _UNKNOWN else wanted.pull_request,
        created=found.created,
        version=found.version,
    )
