"""The closed tables of `launch:`, `deploy:` and `checks:` keys: what each means and which values it takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from renderer.key_types import Form, Key, Kind

_DIGEST = r"sha256:[0-9a-f]{64}"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_REPOSITORY = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+"
_GIT = r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?(?:/[A-Za-z0-9._-]+)+"
_BUCKET = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"
# git check-ref-format, without what a shell or a URL would read as something else
_BRANCH = (
    r"(?![-/.])(?!@$)(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)|[/.]$))(?=.{1,200}$)[^\s~^:?*\[\\\"'$`<>|;&\x00-\x20\x7f]+"
)

NAMESPACE = Form(
    r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?",
    "a DNS label: lower-case letters, digits and -, at most 63 characters",
)
OBJECT = Form(
    r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*",
    "a Kubernetes name: lower-case letters, digits, - and .",
)
REPOSITORY = Form(_REPOSITORY, "host/path without tag, in lower case")
FULL_IMAGE = Form(rf"{_REPOSITORY}(?::{_TAG})?(?:@{_DIGEST})?", "a full image reference: host/path:tag")
IMAGE = Form(
    rf"{_TAG}|{_DIGEST}|{_REPOSITORY}(?::{_TAG})?(?:@{_DIGEST})?",
    "a tag, a digest (sha256: and 64 hex digits), or a full image reference",
)
IMAGE_DIGEST = re.compile(_DIGEST)
GIT_REPOSITORY = Form(_GIT, "host/path without https://")
BUCKET = Form(_BUCKET, "a bucket's name, without gs://")
GCS_URL = Form(rf"gs://{_BUCKET}(?:/[^\s]*)?", "a gs:// URL")
MOUNT = Form(r"(?:/[A-Za-z0-9._-]+)+", "an absolute path")
VARIABLE = Form(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable: letters, digits and _")
FLAG = Form(r"[A-Za-z][A-Za-z0-9_]*", "a flag's name without --")
FLAG_VALUE = Form(r"[^\s\"'\\]+", "a flag's value: not empty, no spaces, quotes or backslashes")
LABEL = Form(
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
    "a label: at most 63 letters, digits, - _ . with a letter or digit at both ends",
)
NAME = Form(r"[A-Za-z0-9][A-Za-z0-9._-]*", "a name: letters, digits, - _ .")
RUN = Form(
    r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", "a run's name: at most 63 lower-case letters, digits and -, first a letter"
)


def choice(*words: str) -> Form:
    """Return the form of a text that is one of `words`."""
    return Form("|".join(map(re.escape, words)), " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}")


def _table(keys: Iterable[Key]) -> Mapping[str, Key]:
    return {key.name: key for key in keys}


DEPLOY_KEYS = _table(
    [
        Key("K8S_NAMESPACE", Kind.TEXT, "The namespace the run lives in.", form=NAMESPACE),
        Key("K8S_MAX_RESTARTS", Kind.INTEGER, "How often JobSet restarts all hosts after a failure.", 0, 0, 1000),
        Key("ACCELERATOR", Kind.TEXT, "The TPU generation.", "tpu7x", form=choice("tpu7x", "v6e", "v5p", "v5e")),
        Key("TPU_TOPOLOGY", Kind.TEXT, "The slice's topology, as GKE labels its nodes, such as 4x4x4."),
        Key("COMPLETIONS", Kind.INTEGER, "Hosts of the slice: one pod each.", minimum=1, maximum=100_000),
        Key("IMAGE_REPOSITORY", Kind.TEXT, "Where the tags of `launch.image` live.", form=REPOSITORY),
        Key("GIT_REPOSITORY", Kind.TEXT, "The MaxText source that source mode clones.", form=GIT_REPOSITORY),
        Key("GCS_BUCKET", Kind.TEXT, "The bucket of the run's outputs and logs.", form=BUCKET),
        Key("DATASETS_YAML", Kind.TEXT, "The dataset layer: a name in datasets/, or a path (has / or ends in .yml)."),
        Key("MAXTEXT_VERSION", Kind.TEXT, "Which MaxText the run is checked against: a snapshot or a pin of one."),
        Key("MAXTEXT_MODEL", Kind.TEXT, "MaxText's model_name, where it is not the preset's name.", form=NAME),
        Key("DERIVATIONS", Kind.TEXT_LIST, "Which of D1 to D5 apply to the model.", form=Form("D[1-5]", "D1 to D5")),
        Key("VOLUMES", Kind.TEXT_MAP, "Mount path to PersistentVolumeClaim (GCS Fuse).", form=MOUNT, value_form=OBJECT),
        Key(
            "GITHUB_TOKEN_SECRET",
            Kind.TEXT,
            "The Secret whose GITHUB_TOKEN source mode clones with; optional in the cluster.",
            form=OBJECT,
        ),
        Key("ENV", Kind.TEXT_MAP, "Further environment variables of the trainer.", form=VARIABLE),
        Key("LIBTPU_INIT_ARGS", Kind.TEXT_MAP, "XLA and libtpu flags by name.", form=FLAG, value_form=FLAG_VALUE),
        Key("WARMUP_ITERS", Kind.INTEGER, "Warm-up steps, from which D2 derives warmup_steps_fraction."),
        Key("LOAD_PARAMETERS_PATH_SCANNED", Kind.TEXT, "The checkpoint D3 loads where scan_layers is true."),
        Key("LOAD_PARAMETERS_PATH_UNSCANNED", Kind.TEXT, "The checkpoint D3 loads where scan_layers is false."),
        Key("QUEUE", Kind.TEXT, "Kueue's LocalQueue.", form=OBJECT),
        Key("PRIORITY_CLASS", Kind.TEXT, "The pods' PriorityClass.", form=OBJECT),
        Key("SERVICE_ACCOUNT", Kind.TEXT, "The pods' ServiceAccount.", form=OBJECT),
        Key(
            "TTL_SECONDS",
            Kind.INTEGER,
            "How long a finished JobSet stays before Kubernetes deletes it.",
            maximum=2**31 - 1,
        ),
        Key("MAX_HOURS", Kind.NUMBER, "Hours a start may take; then the run fails.", None, 1 / 60, 24 * 365),
        Key("GRACE_SECONDS", Kind.INTEGER, "Time to write a checkpoint after SIGTERM.", 300, 1, 86_400),
        Key("ENABLE_HF_CONVERSION", Kind.BOOLEAN, "Start a watcher that converts checkpoints to Hugging Face.", False),
        Key("HF_OUTPUT_DIRECTORY", Kind.TEXT, "Where the watcher writes converted checkpoints.", form=GCS_URL),
        Key("HF_WATCHER_IMAGE", Kind.TEXT, "The watcher's image.", form=FULL_IMAGE),
        Key("HF_SERVICE_ACCOUNT", Kind.TEXT, "The watcher's ServiceAccount.", form=OBJECT),
        Key("HF_INTERVAL_SECONDS", Kind.INTEGER, "How often the watcher looks for a checkpoint.", 300, 10, 86_400),
    ]
)
"""Every key that may stand under `deploy:`."""

LAUNCH_KEYS = _table(
    [
        Key("model", Kind.TEXT, "The model: a folder of presets/, and this file's folder.", form=NAME),
        Key("chips", Kind.INTEGER, "TPU chips of the slice: a folder of the model's topology/.", None, 1, 10**6),
        Key("context", Kind.TEXT, "Context length, such as 8k: a file in the topology's folder.", form=NAME),
        Key("environment", Kind.TEXT, "prod or test.", form=choice("prod", "test")),
        Key("owner", Kind.TEXT, "The team that answers for the run; required in prod.", form=LABEL),
        Key(
            "image",
            Kind.TEXT,
            "A tag of deploy.IMAGE_REPOSITORY, a digest (sha256:...), or a full reference; required in prod.",
            form=IMAGE,
        ),
        Key(
            "branch",
            Kind.TEXT,
            "Source mode (test without image): the branch to clone.",
            form=Form(_BRANCH, "the name of a git branch"),
        ),
        Key("commit", Kind.TEXT, "Source mode: pins the branch.", form=Form("[0-9a-f]{40}", "a commit: 40 hex digits")),
        Key("name", Kind.TEXT, "The run's name instead of the file's; must fit.", form=RUN),
        Key("resume", Kind.TEXT, "The run whose checkpoints this one continues.", form=RUN),
        Key("attempt", Kind.INTEGER, "Launch the same content again: 2, 3, ...", 1, 1, 99),
        Key(
            "supersede",
            Kind.TEXT,
            "When the content changes after its launch: keep or stop the run it replaces.",
            form=choice("keep", "stop"),
        ),
        Key("state", Kind.TEXT, "stopped: stop the run.", form=Form("stopped", "stopped (or leave the key out)")),
    ]
)
"""Every key that may stand under `launch:`."""

CHECKS_KEYS = _table([Key("global_batch", Kind.INTEGER, "Sequences of one optimizer step over all devices.", None, 1)])
"""Every promise that may stand under `checks:`."""
