"""What the pod will pass to MaxText besides run.yml (D1 to D7), computed here by the pod's own code."""

from __future__ import annotations

from collections.abc import Iterator

from pod.derivations import DerivationError, Override, Skipped, derive
from renderer.configure import Configuration
from renderer.problem import Problem
from renderer.run_spec import Run
from renderer.schema import Snapshot


class _Defaults(dict[str, object]):
    """Every key a snapshot knows, its default looked up when asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(dict.fromkeys(snapshot.keys))
        self._snapshot = snapshot

    def __getitem__(self, key: str) -> object:
        return self._snapshot.base_default(key)


def overrides(configuration: Configuration, run: Run) -> list[Override | Skipped]:
    """Return the arguments of a run and the rules that changed nothing.

    D6 is decided in the pod for a model whose file the snapshot does not know (a fork's). Raises DerivationError.
    """
    config = {**run.maxtext, "model_name": run.maxtext_model}
    snapshot = configuration.snapshot
    model_file = snapshot.models.get(run.maxtext_model)
    return derive(config, run.derive, model_file=model_file, defaults=_Defaults(snapshot))


def check(configuration: Configuration, run: Run) -> Iterator[Problem]:
    """Yield the problem that would stop the pod: a configuration from which nothing can be derived."""
    try:
        overrides(configuration, run)
    except DerivationError as error:
        leaf = configuration.leaf("maxtext", "learning_rate_schedule_steps")
        yield Problem("derivation", leaf.at if leaf else configuration.start, "maxtext", str(error))
