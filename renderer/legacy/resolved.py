"""The normal form in which a recording and an experiment are compared: one value per path."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from renderer.legacy.values import read_argument, typed
from renderer.location import Location
from renderer.problem import refuse
from renderer.schema import Snapshot

TRAINERS = ("MaxText.train", "maxtext.trainers.pre_train.train")
"""The programs whose arguments are MaxText's, by version (as the public recipes start them)."""

OWN_ENVIRONMENT = {"GCS_BUCKET": "bucket", "RUN_NAME": "run_name"}
"""Variables of the container that are orchestration, not configuration, and the job field each becomes."""

ALLOW_OVERRIDES = "override_model_config"
"""Permission to contradict the model file (D6): how a value gets there, not a value."""

XPK_FIELDS = frozenset(
    {
        *("accelerator", "topology", "completions", "slices", "max_restarts", "image", "image_is_base"),
        *("priority", "storage", "debug_logs", "name", "before", "after"),
    }
)
"""What an `xpk workload create` says about its job."""
JOBSET_FIELDS = frozenset(
    {
        *("accelerator", "topology", "completions", "slices", "max_restarts", "image", "priority", "name", "namespace"),
        *("before", "after", "bucket", "run_name", "volumes", "secret", "secret_optional", "queue", "service_account"),
        *("tpus_per_host", "backoff_limit", "exclusive_topology", "repository", "branch", "parallelism"),
        *("grace_seconds", "ttl_seconds", "host_network", "watcher"),
    }
)
"""What a JobSet and the shell text in its container say about their job."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What one launch comes to.

    `version` is the MaxText as it was pinned; `module` and `config` the program and its base file; `maxtext` typed as
    MaxText holds the keys; `job` what surrounds the trainer. `states` are the job fields that this form of recording
    can say at all: an absent one of them is a statement too.
    """

    source: str
    version: str
    module: str
    config: str
    maxtext: Mapping[str, Any]
    flags: Mapping[str, str]
    env: Mapping[str, str]
    job: Mapping[str, Any]
    states: frozenset[str]

    def values(self, states: frozenset[str]) -> dict[str, Any]:
        """Return every value by path: program., maxtext., flags., env. and those job. fields that are in `states`."""
        found: dict[str, Any] = {"program.version": self.version, "program.module": self.module}
        found["program.config"] = self.config
        found |= {f"maxtext.{key}": value for key, value in self.maxtext.items() if key != ALLOW_OVERRIDES}
        found |= {f"flags.{name}": value for name, value in self.flags.items()}
        found |= {f"env.{name}": value for name, value in self.env.items()}
        for name, value in self.job.items():
            if name not in states or value in (None, "", {}):
                continue
            if isinstance(value, dict):
                found |= {f"job.{name}.{key}": item for key, item in value.items()}
            else:
                found[f"job.{name}"] = value
        return found


def arguments(texts: Iterable[str], snapshot: Snapshot, source: str) -> dict[str, Any]:
    """Return the key=value arguments of the trainer as MaxText reads them; of repeated keys the last wins.

    Raises RefusedError for an argument that is not key=value.
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key or key.startswith("-"):
            refuse("legacy-argument", Location(source), f"{text} is not key=value, as MaxText's arguments are")
        found[key] = typed(snapshot.keys.get(key), read_argument(value))
    return found


def flags(text: str, source: str) -> dict[str, str]:
    """Return LIBTPU_INIT_ARGS by flag name; a flag without a value is true, of repeated flags the last wins."""
    found = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            refuse("legacy-flag", Location(source), f"{word} in LIBTPU_INIT_ARGS is not a flag: flags begin with --")
        found[name.removeprefix("--")] = value if equals else "true"
    return found


def program(words: list[str], source: str) -> tuple[str, str, list[str]]:
    """Return module, base file and arguments of `python -m MODULE FILE.yml key=value...`.

    Raises RefusedError for every other program: its arguments mean something else.
    """
    if len(words) < 2 or words[0] != "-m" or trainer(words[1]) not in TRAINERS:
        started = " ".join(words[:2]) or "nothing"
        hint = f"known: python3 -m {' or -m '.join(TRAINERS)}"
        refuse("legacy-program", Location(source), f"starts {started}, which is not MaxText's pre-training", hint=hint)
    files = [word for word in words[2:] if word.endswith(".yml") and "=" not in word]
    if len(files) != 1 or files[0] != words[2]:
        refuse("legacy-program", Location(source), "must have exactly one YAML file, before the key=value arguments")
    return words[1], files[0].rpartition("/")[2], words[3:]


def trainer(module: str) -> str:
    """Return the module without `src.`: the same file, started from the checkout's root instead of installed."""
    return module.removeprefix("src.")
