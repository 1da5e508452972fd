"""What one of our experiments comes to, in the normal form, and which layer produced each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pod.derivations import Override, derive
from renderer import checks, outputs
from renderer.configure import Configuration, Configurator
from renderer.legacy import manifest
from renderer.legacy.resolved import JOBSET_FIELDS, OWN_ENVIRONMENT, XPK_FIELDS, Resolved, flags
from renderer.legacy.values import typed
from renderer.manifest_yaml import load
from renderer.merge import Leaf, leaves, winner
from renderer.outputs import Rendered
from renderer.pipeline import configure, fits
from renderer.problem import Problem, RefusedError, errors
from renderer.run_spec import specify

DIGEST = "<digest>"
"""Stands in names for the digits that follow from all other values."""

_ORIGINS = {
    "accelerator": "ACCELERATOR",
    "topology": "TPU_TOPOLOGY",
    "completions": "COMPLETIONS",
    "parallelism": "COMPLETIONS",
    "max_restarts": "K8S_MAX_RESTARTS",
    "namespace": "K8S_NAMESPACE",
    "bucket": "GCS_BUCKET",
    "priority": "PRIORITY_CLASS",
    "queue": "QUEUE",
    "service_account": "SERVICE_ACCOUNT",
    "secret": "GITHUB_TOKEN_SECRET",
    "repository": "GIT_REPOSITORY",
}
"""The deploy key behind each job field."""


@dataclass(frozen=True, slots=True)
class Ours:
    """An experiment in the normal form; `origins` says for each path where our value comes from."""

    configuration: Configuration
    resolved: Resolved
    origins: Mapping[str, str]


def read(configurator: Configurator, path: Path) -> Ours:
    """Return what the experiment at `path` comes to. Raises RefusedError if it has errors."""
    problems: list[Problem] = []
    configuration = configure(configurator, path, problems)
    if configuration is not None:
        problems += checks.check(configuration)
        problems += fits(configuration)
    if configuration is None or errors(problems):
        raise RefusedError(problems)
    return resolve(configuration)


def resolve(configuration: Configuration) -> Ours:
    """Return the normal form of a configuration without errors, the arguments of D1 to D7 included."""
    rendered = outputs.render(specify(configuration), configuration.name or configuration.launch.model)
    maxtext, derived = _maxtext(configuration, rendered)
    job_set = load(rendered.files["jobset.yml"].decode())
    container = manifest.container(job_set, configuration.file)
    env = manifest.environment(container)
    resolved = Resolved(
        source=configuration.file,
        version=str(rendered.run.derive["maxtext_version"]),
        module=str(rendered.run.derive["trainer"]),
        config="base.yml",
        maxtext=maxtext,
        flags=flags(env.pop("LIBTPU_INIT_ARGS", ""), configuration.file),
        env={name: text for name, text in env.items() if name not in OWN_ENVIRONMENT},
        job=_job(configuration, rendered, job_set, env),
        states=JOBSET_FIELDS | XPK_FIELDS,
    )
    return Ours(configuration, resolved, dict(_origins(configuration, derived)))


def _maxtext(configuration: Configuration, rendered: Rendered) -> tuple[dict[str, Any], dict[str, Override]]:
    run, snapshot = rendered.run, configuration.snapshot
    config = {**run.maxtext, "model_name": run.maxtext_model, "run_name": masked(rendered.names.run, rendered)}
    defaults = {key: snapshot.base_default(key) for key in snapshot.keys}
    outcome = derive(config, run.derive, model_file=snapshot.models.get(run.maxtext_model), defaults=defaults)
    derived = {item.key: item for item in outcome if isinstance(item, Override)}
    values = config | {key: item.value for key, item in derived.items()}
    return {key: typed(snapshot.keys.get(key), value) for key, value in values.items()}, derived


def masked(name: str, rendered: Rendered) -> str:
    """Return a run's name without the digits of its content digest."""
    return name.replace(rendered.names.content_digest[:8], DIGEST)


def _job(
    configuration: Configuration, rendered: Rendered, job_set: Mapping[str, Any], env: Mapping[str, str]
) -> dict[str, Any]:
    run, launch = rendered.run, configuration.launch
    source = launch.mode == "source"
    own = {field: env.get(name) for name, field in OWN_ENVIRONMENT.items()}
    return {
        **manifest.job(job_set, configuration.file),
        **manifest.watcher([load(rendered.files["watcher.yml"].decode())] if run.watcher else []),
        **own,
        "run_name": masked(rendered.names.run, rendered),
        "name": masked(rendered.names.object, rendered),
        "storage": ", ".join(sorted(set(run.volumes.values()))),
        "repository": configuration.deploy["GIT_REPOSITORY"].node.value if source else None,  # type: ignore[union-attr]
        "branch": launch.branch if source else None,
        "before": " ".join(["bootstrap.sh", *run.bootstrap_arguments[-2:]]) if source else "",
        "after": "",
    }


def _origins(configuration: Configuration, derived: Mapping[str, Override]) -> Iterator[tuple[str, str]]:
    launch = configuration.launch
    for key, item in configuration.maxtext.items():
        yield f"maxtext.{key}", _origin(winner(item))
    for key, override in derived.items():
        yield f"maxtext.{key}", f"{override.rule}: {override.reason}"
    for key, namespace in (("LIBTPU_INIT_ARGS", "flags"), ("ENV", "env"), ("VOLUMES", "job.volumes")):
        tree = configuration.deploy.get(key)
        for name, leaf in leaves(tree) if isinstance(tree, dict) else ():
            yield f"{namespace}.{name}", _origin(leaf)
    for field, key in _ORIGINS.items():
        if configuration.leaf("deploy", key):
            yield f"job.{field}", _origin(configuration.leaf("deploy", key))
    yield "program.version", _origin(configuration.leaf("deploy", "MAXTEXT_VERSION"))
    model = configuration.leaf("deploy", "MAXTEXT_MODEL")
    yield "maxtext.model_name", _origin(model) if model else str(launch.place("model").in_line)
    for field in ("image", "branch", "name"):
        yield f"job.{field}", launch.place(field if field in launch.places else "model").in_line


def _origin(leaf: Leaf | None) -> str:
    return f"{leaf.at.in_line}, {leaf.layer.name}" if leaf else "the renderer"
