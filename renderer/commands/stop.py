"""`renderer stop`: ends a run now."""

from __future__ import annotations

import click
from rich.console import Console

from renderer.cli import INTERRUPTED, OK, PROBLEMS, App
from renderer.cluster.api import caller
from renderer.cluster.ledger import BY_HAND, Entry, Store
from renderer.cluster.named import latest
from renderer.cluster.observe import Seen, look
from renderer.cluster.stop import NotStoppedError, stop
from renderer.commands.on_cluster import CLUSTER, agreed, cluster, load_clusters, local, namespaces, warn
from renderer.commands.options import say
from renderer.layers import ENVIRONMENTS
from renderer.problem import refuse
from renderer.runs import ALIVE, UNSTARTED, State


@click.command("stop")
@click.argument("name", metavar="RUN|EXPERIMENT")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(app: App, name: str, yes: bool) -> int:
    """Stop a run now: its pods get their grace period to write a checkpoint, then its objects are deleted.

    Of an EXPERIMENT, its latest run. The reviewed way is state: stopped in its file; this is for when it cannot wait.
    """
    clusters = load_clusters(app.root)
    with cluster() as api:
        view = look(api, ENVIRONMENTS, namespaces(app.root, ENVIRONMENTS))
        warn(view.damaged)
        run = latest(view, name, app.root)
        entry = _entry(run)
        local(api, clusters, [entry.environment])
        if entry.state not in ALIVE | UNSTARTED | {State.REFUSED} or run.ended:
            say(f"{entry.name} does not run: {_state(run, entry)}")
            return OK
        say(*_meaning(entry), err=True)
        if not agreed(f"Stop {entry.name} ({entry.chips} chips, {entry.environment}, {entry.state})?", yes=yes):
            return PROBLEMS
        reason = f"{BY_HAND}{caller(api)} with renderer stop"
        try:
            with Console(stderr=True).status(f"waiting until the pods of {entry.name} are gone"):
                stopped = stop(api, Store(api, entry.environment), entry, reason)
        except NotStoppedError as error:
            say(f"{entry.name} is not stopped yet: {error}; run this again to go on", err=True)
            return PROBLEMS
        except KeyboardInterrupt:
            say(f"interrupted: {entry.name} is not stopped yet; run this again to go on", err=True)
            return INTERRUPTED
    say(f"{stopped.name} is {stopped.state}: {stopped.reason}")
    return OK


def _entry(run: Seen) -> Entry:
    """Return the run's entry. Raises RefusedError if it has none, or none that can be read."""
    if run.unreadable:
        text = f"{run.name} cannot be stopped while its entry in the ledger cannot be read"
        refuse("cluster-ledger", CLUSTER, text, hint=run.unreadable.mend)
    if run.entry is None:
        hint = f"kubectl delete jobset {run.name} -n {run.namespace}"
        refuse("run-unlisted", CLUSTER, f"{run.name} is in no ledger: apply did not launch it", hint=hint)
    return run.entry


def _state(run: Seen, entry: Entry) -> str:
    if run.ended:
        return "it has finished" if run.ended["type"] == "Completed" else f"it has failed: {run.ended.get('message')}"
    return ": ".join(filter(None, (f"it is {entry.state}", entry.reason)))


def _meaning(entry: Entry) -> list[str]:
    return [
        f"The reviewed way to stop a run is `state: stopped` under launch: in {entry.file}, merged.",
        "Write it there too: until then, git says that this run is wanted, and renderer drift looks at git.",
        "The next apply will not start this run again; to run the same content again, raise launch.attempt.",
    ]
