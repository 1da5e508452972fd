"""A run, validated and complete: built once from a checked configuration, then only read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from renderer.accelerators import Slice, find_slice
from renderer.configure import Configuration, experiment_data
from renderer.keys import DEPLOY_KEYS, IMAGE_DIGEST
from renderer.merge import ORDER, values, winner
from renderer.mesh import maxtext_model
from renderer.names import QUEUE_LABEL, digest, experiment_label, label_value
from renderer.problem import visible
from renderer.scalars import Value
from renderer.schema import deps_command, is_released, trainer_module

SOURCE_IMAGE = "python:3.12"
"""Source mode builds its environment in the pod, from this image (the RFC's choice)."""


@dataclass(frozen=True, slots=True)
class Watcher:
    """The Deployment that converts the run's checkpoints to Hugging Face form."""

    image: str
    output_directory: str
    service_account: str | None
    interval_seconds: int


@dataclass(frozen=True, slots=True)
class Run:
    """Everything the outputs of one run are made of. Times in seconds; `maxtext` without base_config and rules (D7)."""

    name: str
    file: str
    environment: str
    model: str
    maxtext_model: str
    chips: int
    slice: Slice
    namespace: str
    owner: str | None
    branch: str | None
    attempt: int
    image: str
    bootstrap_arguments: tuple[str, ...]
    env: Mapping[str, str]
    libtpu_init_args: str
    volumes: Mapping[str, str]
    gcs_bucket: str
    github_token_secret: str | None
    queue: str | None
    priority_class: str | None
    service_account: str | None
    max_restarts: int
    ttl_seconds: int | None
    max_seconds: int | None
    grace_seconds: int
    watcher: Watcher | None
    maxtext: Mapping[str, Value]
    origins: Mapping[str, str]
    run_name: str | None
    derive: Mapping[str, Any]
    experiment_digest: str


def specify(configuration: Configuration) -> Run:
    """Return the run that a configuration without errors describes."""
    launch = configuration.launch
    deploy: dict[str, Any] = {key.name: key.default for key in DEPLOY_KEYS.values()} | values(configuration.deploy)
    maxtext = values(configuration.maxtext)
    rules = maxtext.pop("logical_axis_rules", None)
    run_name = launch.resume or maxtext.pop("run_name", None)
    found = find_slice(deploy["ACCELERATOR"], deploy["TPU_TOPOLOGY"])
    if found is None:
        raise ValueError("specify() takes checked configurations only")
    hours = deploy["MAX_HOURS"]
    experiment = configuration.experiment
    return Run(
        name=launch.name or configuration.name or launch.model,
        file=visible(configuration.file) or "presets alone",
        environment=launch.environment,
        model=launch.model,
        maxtext_model=maxtext_model(configuration),
        chips=launch.chips,
        slice=found,
        namespace=deploy["K8S_NAMESPACE"],
        owner=launch.owner,
        branch=launch.branch if launch.mode == "source" else None,
        attempt=launch.attempt,
        image=_image(configuration, deploy["IMAGE_REPOSITORY"]),
        bootstrap_arguments=_bootstrap_arguments(configuration, deploy),
        env=dict(sorted((deploy["ENV"] or {}).items())),
        libtpu_init_args=" ".join(
            f"--{flag}={value}" for flag, value in sorted((deploy["LIBTPU_INIT_ARGS"] or {}).items())
        ),
        volumes=dict(sorted((deploy["VOLUMES"] or {}).items())),
        gcs_bucket=deploy["GCS_BUCKET"],
        github_token_secret=deploy["GITHUB_TOKEN_SECRET"],
        queue=deploy["QUEUE"],
        priority_class=deploy["PRIORITY_CLASS"],
        service_account=deploy["SERVICE_ACCOUNT"],
        max_restarts=deploy["K8S_MAX_RESTARTS"],
        ttl_seconds=deploy["TTL_SECONDS"],
        max_seconds=None if hours is None else round(hours * 3600),
        grace_seconds=deploy["GRACE_SECONDS"],
        watcher=_watcher(deploy),
        maxtext=maxtext,
        origins=_origins(configuration, maxtext),
        run_name=str(run_name) if run_name is not None else None,
        derive=_derive(configuration, deploy, rules, explicit=run_name is not None),
        experiment_digest=digest(experiment_data(experiment)) if experiment else "",
    )


def _image(configuration: Configuration, repository: str | None) -> str:
    image = configuration.launch.image
    if configuration.launch.mode == "source":
        return SOURCE_IMAGE
    if image is None:
        return f"{repository or ''}:(launch.image)"
    if "/" in image:
        return image
    return f"{repository}@{image}" if IMAGE_DIGEST.fullmatch(image) else f"{repository}:{image}"


def _bootstrap_arguments(configuration: Configuration, deploy: Mapping[str, Any]) -> tuple[str, ...]:
    launch = configuration.launch
    if launch.mode == "image":
        return ("--mode", "image")
    source = [
        "--mode",
        "source",
        "--repository",
        str(deploy["GIT_REPOSITORY"]),
        "--branch",
        launch.branch or "(launch.branch)",
    ]
    if launch.commit:
        source += ["--commit", launch.commit]
    return (*source, "--deps-command", deps_command(str(deploy["MAXTEXT_VERSION"])))


def _watcher(deploy: Mapping[str, Any]) -> Watcher | None:
    if not deploy["ENABLE_HF_CONVERSION"]:
        return None
    return Watcher(
        image=deploy["HF_WATCHER_IMAGE"],
        output_directory=deploy["HF_OUTPUT_DIRECTORY"],
        service_account=deploy["HF_SERVICE_ACCOUNT"],
        interval_seconds=deploy["HF_INTERVAL_SECONDS"],
    )


def _origins(configuration: Configuration, maxtext: Mapping[str, Value]) -> dict[str, str]:
    """Return the file of the layer that won each key, the lowest layer's keys first, each layer's by name."""
    won = []
    for key in maxtext:
        leaf = winner(configuration.maxtext[key])
        won.append((ORDER[leaf.layer.name], key, leaf.layer.file) if leaf else (0, key, configuration.file))
    return {key: visible(file) for _, key, file in sorted(won)}


def _derive(configuration: Configuration, deploy: Mapping[str, Any], rules: Value, *, explicit: bool) -> dict[str, Any]:
    """Return what the pod needs besides run.yml (pod/derivations.py says how it is used)."""
    version = str(deploy["MAXTEXT_VERSION"])
    paths = {name: deploy[f"LOAD_PARAMETERS_PATH_{name.upper()}"] for name in ("scanned", "unscanned")}
    person = sorted(key for key, item in configuration.maxtext.items() if _by_person(item))
    return {
        "model": maxtext_model(configuration),
        "maxtext_version": version,
        # Only a release can be told by its number; a fork or a commit carries another one.
        "maxtext_mismatch": "error" if is_released(version) and not configuration.forked else "warn",
        "trainer": trainer_module(version),
        "derivations": sorted(deploy["DERIVATIONS"] or []),
        "warmup_iters": deploy["WARMUP_ITERS"],
        "load_parameters_path": paths if any(paths.values()) else None,
        "set_by_person": person,
        "run_name_explicit": explicit,
        "logical_axis_rules": rules,
    }


def _by_person(item: Any) -> bool:
    leaf = winner(item)
    return leaf is not None and not leaf.removed and leaf.layer.by_person


def labels(run: Run, *, queued: bool) -> list[tuple[str, str]]:
    """Return the labels of one of the run's objects, sorted; `queued` if Kueue shall manage it."""
    found = {
        "renderer/model": label_value(run.model),
        "renderer/experiment": experiment_label(run.name),
        "renderer/chips": str(run.chips),
        "renderer/environment": run.environment,
    }
    if run.owner:
        found["renderer/owner"] = run.owner
    if run.branch:
        found["renderer/branch"] = label_value(run.branch)
    if run.queue and queued:
        found[QUEUE_LABEL] = run.queue
    return sorted(found.items())
