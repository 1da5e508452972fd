"""What policy.yml lets a committed run use, judged by its rendered files: the policy may be stricter by now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from renderer.cluster.objects import Objects
from renderer.outputs import pod_spec
from renderer.policy import WRITTEN_ENDINGS, Rules, image_form, refusal


def forbidden(rules: Rules, environment: str, run: Objects) -> Iterator[str]:
    """Yield a sentence per namespace, image, repository and bucket of a run that its environment may not use."""
    pod = pod_spec(run.jobset)
    pods = [pod] if run.watcher is None else [pod, run.watcher["spec"]["template"]["spec"]]
    containers = [container for spec in pods for container in spec["containers"]]
    arguments = _arguments(pod["containers"][0])
    asked = (
        (rules.namespaces, str.__eq__, [run.namespace]),
        (rules.images, fnmatchcase, [container["image"] for container in containers]),
        (rules.repositories, fnmatchcase, [arguments["--repository"]] if "--repository" in arguments else []),
        (rules.buckets, str.__eq__, _buckets(run.run_data, containers)),
    )
    for allowed, fits, values in asked:
        for value in dict.fromkeys(values):
            if refused := refusal(value, environment, allowed, fits):
                yield f"{refused.message}; {refused.hint}"
    message = image_form(pod["containers"][0]["image"], environment, rules.image_form)
    if arguments.get("--mode") == "image" and message:
        yield message


def _arguments(container: Mapping[str, Any]) -> dict[str, str]:
    words = [str(word) for word in container.get("args", ())]
    return dict(zip(words[::2], words[1::2], strict=False))


def _buckets(run_data: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the buckets that a run writes to."""
    entries = [entry for container in containers for entry in container.get("env", ())]
    variables = {entry["name"]: str(entry.get("value", "")) for entry in entries}
    if bucket := variables.get("GCS_BUCKET"):
        yield bucket
    folders = [str(value) for key, value in run_data.items() if key.endswith(WRITTEN_ENDINGS)]
    for folder in (*folders, variables.get("HF_OUTPUT_DIRECTORY", "")):
        if folder.startswith("gs://"):
            yield folder.removeprefix("gs://").split("/")[0]
