"""Everything a run consists of in the cluster, as one stream of manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from renderer.manifest_yaml import load
from renderer.names import QUEUE_LABEL
from renderer.outputs import config_map_data, mounted
from renderer.scalars import quote

HOLD_QUEUE = "renderer-hold"
"""A LocalQueue that does not exist: with Kueue, a JobSet that waits for it stays suspended, also where a queue named
default would catch an unlabelled one."""


def stream(files: Mapping[str, bytes], scripts: Mapping[str, bytes]) -> str:
    """Return the ConfigMaps and the held JobSet of one run for `kubectl apply --server-side -f -`.

    `files` are the run's rendered files, `scripts` its pod scripts. Raises ValueError if they do not hold together.
    """
    jobset = load(files["jobset.yml"].decode())
    try:
        namespace, name = jobset["metadata"]["namespace"], jobset["metadata"]["name"]
        queue = jobset["metadata"]["labels"].get(QUEUE_LABEL)
        volumes = mounted(jobset)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"it has another shape ({error})") from error
    documents = [
        _release(name, namespace, queue),
        "\n".join(config_map(volumes["pod"], namespace, scripts)),
        "\n".join(config_map(volumes["run"], namespace, config_map_data(files))),
        held(files["jobset.yml"].decode()).rstrip("\n"),
    ]
    if "watcher.yml" in files:
        documents.append(files["watcher.yml"].decode().rstrip("\n"))
    return "\n---\n".join(documents) + "\n"


def config_map(name: str, namespace: str, data: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the lines of an immutable ConfigMap: a launched run keeps what it was reviewed with."""
    yield "apiVersion: v1"
    yield "kind: ConfigMap"
    yield "metadata:"
    yield f"  name: {quote(name)}"
    yield f"  namespace: {quote(namespace)}"
    yield "immutable: true"
    yield "data:"
    for key in sorted(data):
        yield from _text(quote(key), data[key].decode())


def _text(key: str, text: str) -> Iterator[str]:
    """Yield an entry as a literal block, which people can read; quoted where a block would not keep every character."""
    lines = text.split("\n")
    if (
        lines[-1]
        or not lines[0].strip()
        or lines[0][0] == " "
        or not all(map(str.isprintable, lines))
        or text.endswith("\n\n")
    ):
        yield f"  {key}: {quote(text)}"
        return
    yield f"  {key}: |"
    yield from (f"    {line}" if line else "" for line in lines[:-1])


def held(jobset: str) -> str:
    """Return jobset.yml suspended and in the hold queue. Raises ValueError if its text has no place for that."""
    text = re.sub(rf"^ *{re.escape(QUEUE_LABEL)}: .*\n", "", jobset, flags=re.MULTILINE)
    text = text.replace("\n  labels:\n", f'\n  labels:\n    {QUEUE_LABEL}: "{HOLD_QUEUE}"\n', 1)
    text = text.replace("\nspec:\n", "\nspec:\n  suspend: true\n", 1)
    data = load(text)
    if data["spec"].get("suspend") is not True or data["metadata"]["labels"].get(QUEUE_LABEL) != HOLD_QUEUE:
        raise ValueError("jobset.yml has no spec or no labels to hold it by")
    return text


def _release(name: str, namespace: str, queue: str | None) -> str:
    lines = ["# The JobSet is held: nothing runs before you release it."]
    if queue:
        lines.append("# Release it to its Kueue queue:")
        lines.append(f"#   kubectl label jobset {name} -n {namespace} --overwrite {QUEUE_LABEL}={queue}")
        return "\n".join(lines)
    lines.append("# Release it:")
    lines.append(f"#   kubectl label jobset {name} -n {namespace} {QUEUE_LABEL}-")
    patch = '{"spec":{"suspend":false}}'
    lines.append(f"#   kubectl patch jobset {name} -n {namespace} --type merge -p '{patch}'")
    return "\n".join(lines)
