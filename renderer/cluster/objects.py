"""A run's committed files as the objects they become, once it is proved that they are what was rendered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from renderer.cluster.api import Object
from renderer.cluster.history import History
from renderer.cluster.needs import QUEUE_LABEL, Needs, needs
from renderer.committed import Reader, Tree
from renderer.location import Location
from renderer.manifests import HOLD_QUEUE
from renderer.names import digest, object_name, sealed
from renderer.outputs import CONFIG_MAP_FILES, content_digest
from renderer.problem import RefusedError, refuse
from renderer.rendered_run import DAMAGED, damaged, pod_digest
from renderer.runs import Committed
from renderer.yaml_io import load

CONTENT_DIGEST = "renderer/content-digest"
_REQUIRED = ("derive.json", "jobset.yml", "run.yml")


@dataclass(frozen=True, slots=True)
class Objects:
    """What one run consists of in the cluster: ConfigMaps of its own and of the pod scripts, JobSet, watcher.

    `digest` is its content digest, `run_data` what run.yml holds.
    """

    jobset: Object
    run_config_map: Object
    pod_config_map: Object
    watcher: Object | None
    digest: str
    run_data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The JobSet's name."""
        return str(self.jobset["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Where all of it lives."""
        return str(self.jobset["metadata"]["namespace"])

    @property
    def queue(self) -> str:
        """The Kueue queue that the run asks for, or empty."""
        return str(self.jobset["metadata"]["labels"].get(QUEUE_LABEL, ""))

    def needs(self) -> Needs:
        """Return what the run needs of its cluster."""
        return needs(self.jobset, self.watcher)

    def held(self, *, kueue: bool) -> Object:
        """Return the JobSet as it is created: suspended, with Kueue also in a queue that does not exist."""
        metadata = self.jobset["metadata"]
        labels = {**metadata["labels"], QUEUE_LABEL: HOLD_QUEUE} if kueue else metadata["labels"]
        spec = {**self.jobset["spec"], "suspend": True}
        return {**self.jobset, "metadata": {**metadata, "labels": labels}, "spec": spec}


def objects(state: Committed, folder: str, files: Mapping[str, bytes], scripts: Mapping[str, bytes]) -> Objects:
    """Return what a committed run consists of; `scripts` are all files below rendered/_pod, by path under the root.

    Every digest is computed again. Raises RefusedError that names the file which is not what was rendered.
    """
    for name in _REQUIRED:
        if name not in files:
            refuse("rendered-missing", Location(f"{folder}/{name}"), "is missing; run renderer render")
    try:
        jobset, run_data = load(files["jobset.yml"].decode()), load(files["run.yml"].decode())
        watcher = load(files["watcher.yml"].decode()) if "watcher.yml" in files else None
        found = content_digest(jobset, run_data, json.loads(files["derive.json"]), watcher)
        _verify(state, folder, found, jobset, watcher)
        run, pod = _volumes(jobset)
        if run != f"run-{state.name}":
            raise ValueError(f"its volume run does not name the ConfigMap run-{state.name}")
        return Objects(
            jobset=jobset,
            run_config_map=_config_map(run, jobset, {name: files[name] for name in CONFIG_MAP_FILES}),
            pod_config_map=_config_map(pod, jobset, pod_scripts(pod_digest(jobset), scripts)),
            watcher=watcher,
            digest=state.content,
            run_data=run_data,
        )
    except DAMAGED as error:
        return damaged(f"{folder}/jobset.yml", error)


def read_runs(
    git: History, head: str, tree: Tree, reader: Reader, runs: Iterable[Committed]
) -> dict[str, Objects | str]:
    """Return what committed runs consist of by name, or why their files cannot be launched, naming the file."""
    runs = list(runs)
    paths = {path: blob for path, blob in tree.items() if path.startswith("rendered/_pod/")} if runs else {}
    blobs = git.blobs(paths.values())
    scripts = {path: blobs[blob] for path, blob in paths.items()}
    found: dict[str, Objects | str] = {}
    for run in runs:
        files = reader.files(run)
        folder = f"rendered/{run.environment}/{run.file.removeprefix('experiments/').removesuffix('.yml')}"
        try:
            if sealed(files):
                found[run.name] = objects(run, folder, files, scripts)
            else:
                edited = ", ".join(git.edited(head, folder, files))
                found[run.name] = f"{edited}: edited by hand after it was rendered; run renderer render"
        except RefusedError as error:
            found[run.name] = "; ".join(f"{problem.location}: {problem.message}" for problem in error.problems)
    return found


def _verify(state: Committed, folder: str, found: str, jobset: Any, watcher: Any) -> None:
    """Refuse a run whose names and digests are not those that follow from its data; `found` is its content digest."""
    place = Location(f"{folder}/jobset.yml")
    metadata = jobset["metadata"]
    if found != metadata["annotations"][CONTENT_DIGEST]:
        refuse("rendered-edited", place, "its content digest is not that of the run's files; run renderer render")
    whole = state.whole_name
    if not re.fullmatch(rf".+-{found[:8]}", whole) or metadata["name"] != object_name(whole, state.attempt):
        refuse("rendered-edited", place, f"its name does not end in the content digest {found[:8]}")
    if metadata["labels"]["renderer/environment"] != state.environment:
        refuse("rendered-edited", place, f"its environment is not {state.environment}, its folder's")
    if "suspend" in jobset["spec"]:
        refuse("rendered-edited", place, "sets spec.suspend, which only a launch may")
    needs(jobset, watcher)
    if watcher is not None:
        wanted = ("Deployment", f"{state.name}-hf", metadata["namespace"])
        if (watcher["kind"], watcher["metadata"]["name"], watcher["metadata"]["namespace"]) != wanted:
            refuse("rendered-edited", Location(f"{folder}/watcher.yml"), f"is no Deployment {state.name}-hf")


def pod_scripts(wanted: str, scripts: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the pod scripts of this digest by name. Raises RefusedError naming their folder if they are others."""
    folder = f"rendered/_pod/{wanted}"
    found = {path.removeprefix(f"{folder}/"): data for path, data in scripts.items() if path.startswith(f"{folder}/")}
    if not found:
        refuse("rendered-missing", Location(folder), "is missing; run renderer render")
    try:
        computed = digest({name: data.decode() for name, data in found.items()})[:12]
    except ValueError as error:
        return damaged(folder, error)
    if computed != wanted:
        refuse("rendered-edited", Location(folder), f"holds other files than were rendered: their digest is {computed}")
    return found


def _volumes(jobset: Any) -> tuple[str, str]:
    spec = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    names = {volume["name"]: volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume}
    return names["run"], names["pod"]


def _config_map(name: str, jobset: Any, data: Mapping[str, bytes]) -> Object:
    metadata = {"name": name, "namespace": jobset["metadata"]["namespace"]}
    texts = {key: value.decode() for key, value in sorted(data.items())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": texts}
