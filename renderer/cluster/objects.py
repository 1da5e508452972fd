"""A run's committed files as the objects they become, once it is proved that they are what was rendered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from renderer.cluster.api import Object
from renderer.cluster.history import History
from renderer.cluster.needs import Needs, needs
from renderer.committed import Reader, Tree, pod_scripts
from renderer.integrity import Intent, scripts_of, wrong
from renderer.location import Location
from renderer.manifests import HOLD_QUEUE
from renderer.names import QUEUE_LABEL, sealed
from renderer.outputs import DAMAGED, REQUIRED, config_map_data, digest_of_pod, mounted, parse
from renderer.problem import RefusedError, refuse
from renderer.rendered_run import damaged
from renderer.runs import Committed


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
    for name in REQUIRED:
        if name not in files:
            refuse("rendered-missing", Location(f"{folder}/{name}"), "is missing; run renderer render")
    intent = Intent(state.name, state.attempt, state.environment, state.own)
    try:
        data = parse(files)
        for item in wrong(intent, folder, files, data, scripts):
            refuse("rendered-digest", Location(item.file), item.message)
        needs(data.jobset, data.watcher)
        run, pod = config_maps(data.jobset, files, scripts_of(digest_of_pod(data.jobset), scripts))
        return Objects(data.jobset, run, pod, data.watcher, state.content, data.run_data)
    except DAMAGED as error:
        return damaged(f"{folder}/jobset.yml", error)


def read_runs(
    git: History, head: str, tree: Tree, reader: Reader, runs: Iterable[Committed]
) -> dict[str, Objects | str]:
    """Return what committed runs consist of by name, or why their files cannot be launched, naming the file."""
    runs = list(runs)
    scripts = pod_scripts(git, tree) if runs else {}
    found: dict[str, Objects | str] = {}
    for run in runs:
        files = reader.files(run)
        try:
            if sealed(files):
                found[run.name] = objects(run, run.folder, files, scripts)
            else:
                edited = ", ".join(git.edited(head, run.folder, files))
                found[run.name] = f"{edited}: edited by hand after it was rendered; run renderer render"
        except RefusedError as error:
            found[run.name] = "; ".join(f"{problem.location}: {problem.message}" for problem in error.problems)
    return found


def config_maps(jobset: Any, files: Mapping[str, bytes], scripts: Mapping[str, bytes]) -> tuple[Object, Object]:
    """Return the ConfigMaps that a JobSet's volumes `run` and `pod` name. Raises one of DAMAGED if it is no run's."""
    names, namespace = mounted(jobset), jobset["metadata"]["namespace"]
    return _config_map(names["run"], namespace, config_map_data(files)), _config_map(names["pod"], namespace, scripts)


def _config_map(name: str, namespace: str, data: Mapping[str, bytes]) -> Object:
    metadata = {"name": name, "namespace": namespace}
    texts = {key: value.decode() for key, value in sorted(data.items())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": texts}
