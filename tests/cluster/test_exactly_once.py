"""Every merged run is launched once, whatever fails meanwhile, counted from the API server's own record."""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.merges import make_merges
from tests.cluster.mutants import mutated
from tests.cluster.plane import ControlPlane
from tests.cluster.queues import add_queue
from tests.cluster.sandbox import sandbox
from tests.cluster.trial import KINDS, Trial

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("only_own")]

SEED = int(os.environ.get("LAUNCH_SEED", "20260801"))
RUNS = int(os.environ.get("LAUNCH_CASES", "100"))
BATCH = max(3, RUNS // 50)
MOST_STEPS = 60
"""More writes than any launch needs."""


class Setting(NamedTuple):
    """What the runs are launched into."""

    kueue: bool = True
    queue: str = ""
    default_queue: bool = False


SETTINGS = {
    "no-kueue": Setting(kueue=False),
    "kueue": Setting(),
    "default": Setting(default_queue=True),
    "queue": Setting(queue="training"),
    "queue-and-default": Setting(queue="training", default_queue=True),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_run_is_launched_once(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    setting, runs = SETTINGS[name], RUNS // len(SETTINGS)
    with capfd.disabled():  # written where it is seen also when other processes run the tests
        sys.stderr.write(f"\n{name}: at least {runs} launches, LAUNCH_SEED={SEED}\n")
    plane = request.getfixturevalue("control_plane_with_kueue" if setting.kueue else "control_plane")
    with begin(plane, setting, tmp_path, f"{SEED} {name}") as trial:
        assert trial.sweep(range(MOST_STEPS), remove=trial.chance.random() < 0.5), "a launch never ends"
        kinds = itertools.cycle(trial.chance.sample(KINDS, len(KINDS)))
        while trial.runs < runs:
            trial.round(next(kinds), trial.chance.randint(1, BATCH))
        trial.recover()
        trial.verify()
        with capfd.disabled():
            sys.stderr.write(f"\n{name}: {trial.runs} runs, none launched twice, none lost\n")


def test_a_run_that_supersedes_another_is_launched_once(control_plane: ControlPlane, tmp_path: Path) -> None:
    with begin(control_plane, SETTINGS["no-kueue"], tmp_path, str(SEED)) as trial:
        assert trial.sweep(range(MOST_STEPS), supersede=True), "a launch never ends"
        trial.verify()


@pytest.mark.parametrize(
    ("mutation", "words"),
    [
        ("creates again what is held and gone", "was started 2 times"),
        ("releases before recording", "was started 2 times"),
        ("records before releasing", "was started 0 times"),
    ],
)
def test_a_wrong_protocol_is_found(control_plane: ControlPlane, mutation: str, words: str, tmp_path: Path) -> None:
    with begin(control_plane, SETTINGS["no-kueue"], tmp_path, mutation) as trial:
        trial.program = mutated(mutation)
        trial.sweep(range(4, 8), remove=True)  # from the creation of the JobSet to the record of its launch
        with pytest.raises(AssertionError, match=words):
            trial.verify()


@contextmanager
def begin(plane: ControlPlane, setting: Setting, folder: Path, seed: str) -> Iterator[Trial]:
    """Yield a trial in which nothing is merged yet; a failure in it comes with what went wrong before."""
    with sandbox(plane) as found:
        found.pool("2x2x1")
        queues = [*([setting.queue] if setting.queue else []), *(["default"] if setting.default_queue else [])]
        for queue in queues:
            add_queue(found, queue, "2x2x1", 10**6)
        deploy = {"QUEUE": setting.queue} if setting.queue else {}
        merges = make_merges(folder / "repository", plane, found.namespace, deploy)
        merges.adopt()
        trial = Trial(merges, found, random.Random(seed), folder)
        try:
            yield trial
        except AssertionError as error:
            error.add_note("\n".join([f"LAUNCH_SEED={SEED}", *trial.lines]))
            raise
