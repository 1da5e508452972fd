"""The peers on the same inputs, without any checks: the RFC's yq and envsubst pipeline, and kustomize build."""

from __future__ import annotations

import re
import resource
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PIPELINE = Path(__file__).with_name("rfc_pipeline.sh")


@dataclass(frozen=True, slots=True)
class Took:
    """Wall seconds, and processor seconds of all processes."""

    seconds: float
    processor: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """An experiment and what chooses its layers."""

    model: str
    chips: int
    context: str
    environment: str
    name: str
    dataset: str | None


def read(content: Path) -> list[Chosen]:
    """Return the generated experiments, in the renderer's order."""
    found = []
    for path in sorted((content / "experiments").glob("*/*.yml")):
        data = yaml.load(path.read_text("utf-8"), Keep)
        launch = data["launch"]
        dataset = data.get("deploy", {}).get("DATASETS_YAML")
        if dataset is None:
            model = yaml.load((content / f"presets/{launch['model']}/model.yml").read_text("utf-8"), Keep)
            dataset = model["deploy"].get("DATASETS_YAML")
        selected = (launch["model"], launch["chips"], launch["context"], launch["environment"])
        found.append(Chosen(*selected, path.stem, dataset))
    return found


class Keep(yaml.CSafeLoader):
    """Reads `!remove` as null, which is how kustomize takes a key out."""


Keep.add_constructor("!remove", lambda *_: None)


def time_pipeline(yq: Path, content: Path, chosen: list[Chosen], out: Path) -> Took:
    """Return what the RFC's pipeline takes, one experiment after the other."""
    template = out / "jobset.yml"
    out.mkdir(parents=True)
    template.write_text(_template(content), "utf-8")
    lines = "".join(f"{one.model} {one.chips} {one.context} {one.environment} {one.name}\n" for one in chosen)
    command = [PIPELINE, yq, content, template, out / "rendered"]
    return _time([str(part) for part in command], lines)


def _template(content: Path) -> str:
    """Return a rendered jobset.yml with the RFC's variables in it: a template as long as ours."""
    text = next((content / "rendered").glob("prod/ling3-flash/*/jobset.yml")).read_text("utf-8")
    name = re.search(r'  name: "(.+)"', text)
    assert name
    for old, new in (
        (f'"run-{name[1]}"', '"${RUN_CONFIG_CONFIGMAP_NAME}"'),
        (f'"{name[1]}"', '"${JOB_NAME}"'),
        (r'namespace: "ling3-prod"', 'namespace: "${K8S_NAMESPACE}"'),
        (r'value: "ant-data-prod"', 'value: "${GCS_BUCKET}"'),
    ):
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r"(completions|parallelism): \d+", r"\1: ${COMPLETIONS}", text)
    text = re.sub(r"maxRestarts: \d+", "maxRestarts: ${K8S_MAX_RESTARTS}", text)
    text = re.sub(r'gke-tpu-topology: ".*"', 'gke-tpu-topology: "${TPU_TOPOLOGY}"', text)
    return re.sub(r'image: ".*"', 'image: "${IMAGE}"', text)


def time_kustomize(kustomize: Path, content: Path, chosen: list[Chosen], out: Path) -> Took:
    """Return what `kustomize build` takes, one process for each experiment.

    Each layer is a JSON patch of one object that holds `deploy` and `maxtext` (a strategic merge takes it twice as
    long, because it loads its schema first); replacements copy what the JobSet needs.
    """
    folders = [str(folder) for folder in _kustomizations(content, chosen, out)]
    script = f'while read -r folder; do "{kustomize}" build "$folder" > "$folder/out.yml"; done'
    return _time(["bash", "-euc", script], "\n".join(folders) + "\n")


def _kustomizations(content: Path, chosen: list[Chosen], out: Path) -> Iterator[Path]:
    template = yaml.safe_load(re.sub(r"\$\{COMPLETIONS\}|\$\{K8S_MAX_RESTARTS\}", "1", _template(content)))
    template["metadata"].update(name="job", namespace="default")
    for one in chosen:
        folder = out / one.model / one.name
        folder.mkdir(parents=True)
        _write(folder / "jobset.yml", template)
        _write(folder / "layers.yml", LAYERS)
        names = []
        for number, data in enumerate(_layers(content, one)):
            names.append(f"{number}.yml")
            _write(folder / names[-1], list(_patch("", data)))
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namePrefix": f"{one.name}-",
            "resources": ["jobset.yml", "layers.yml"],
            "patches": [{"path": name, "target": {"kind": "Layers"}} for name in names],
            "replacements": list(_replacements()),
        }
        _write(folder / "kustomization.yaml", kustomization)
        yield folder


LAYERS = {
    "apiVersion": "bench/v1",
    "kind": "Layers",
    "metadata": {"name": "layers"},
    "deploy": {"ENV": {}, "LIBTPU_INIT_ARGS": {}, "VOLUMES": {}},
    "maxtext": {},
}


def _layers(content: Path, one: Chosen) -> Iterator[dict[str, Any]]:
    presets = content / "presets" / one.model
    for file in ("model.yml", f"topology/{one.chips}chips/{one.context}.yml"):
        yield _read(presets / file)
    if one.dataset:
        yield {"maxtext": _read(content / f"datasets/{one.dataset}.yml")}
    yield _read(presets / f"environment/{one.environment}.yml")
    yield _read(content / f"experiments/{one.model}/{one.name}.yml")


def _read(path: Path) -> Any:
    data = yaml.load(path.read_text("utf-8"), Keep)
    return {key: value for key, value in data.items() if key not in {"launch", "checks"}}


def _patch(path: str, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the operations that merge `data` into the object: maps deep, the rest replaces."""
    for key, value in data.items():
        place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if isinstance(value, dict):
            yield from _patch(place, value)
        else:
            yield {"op": "add", "path": place, "value": value}


def _replacements() -> Iterator[dict[str, Any]]:
    job = "spec.replicatedJobs.0.template.spec"
    selector = f"{job}.template.spec.nodeSelector.[cloud.google.com/gke-tpu-topology]"
    for key, paths in (
        ("K8S_NAMESPACE", ["metadata.namespace"]),
        ("COMPLETIONS", [f"{job}.completions", f"{job}.parallelism"]),
        ("TPU_TOPOLOGY", [selector]),
        ("GCS_BUCKET", [f"{job}.template.spec.containers.0.env.0.value"]),
    ):
        yield {
            "source": {"kind": "Layers", "fieldPath": f"deploy.{key}"},
            "targets": [{"select": {"kind": "JobSet"}, "fieldPaths": paths}],
        }


def _write(path: Path, data: Any) -> None:
    path.write_text(yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False), "utf-8")


def _time(command: list[str], text: str) -> Took:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, input=text, text=True, check=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def disagreements(content: Path, one: Chosen, out: Path) -> dict[str, tuple[Any, Any]]:
    """Return each MaxText key to which the pipeline and the renderer gave different values: proof of equal work."""
    path = f"{one.environment}/{one.model}/{one.name}/run.yml"
    theirs = yaml.safe_load((out / "rendered" / path).read_text("utf-8"))
    ours = yaml.safe_load((content / "rendered" / path).read_text("utf-8"))
    theirs = {key: float(value) if re.fullmatch(r"\S+e-\d+", str(value)) else value for key, value in theirs.items()}
    keys = (theirs.keys() | ours.keys()) - {"run_name"}
    return {key: (theirs.get(key), ours.get(key)) for key in keys if theirs.get(key) != ours.get(key)}
