"""The codes of keys and values."""

from __future__ import annotations

from renderer.codes.code import Code
from renderer.problem import Severity

KEYS: tuple[Code, ...] = (
    Code("unknown-launch-key", "A key under launch: that does not exist.", "Correct its spelling."),
    Code("unknown-deploy-key", "A key under deploy: that does not exist.", "Correct its spelling."),
    Code("unknown-checks-key", "A promise under checks: that does not exist.", "Correct its spelling."),
    Code(
        "unknown-maxtext-key",
        "The pinned MaxText does not know the key.",
        "Correct its spelling, take the name of this version, or declare a fork's key in extensions.yml.",
    ),
    Code("namespace", "A MaxText key stands under deploy:.", "Write it in lower case under maxtext:."),
    Code("owned-key", "A key that the renderer writes itself.", "Delete it; the message says where it comes from."),
    Code(
        "value-type",
        "A value has the wrong type.",
        "Write the type the message names; quote text that looks like a number.",
    ),
    Code(
        "value-form", "A value has the right type, but not the right form or size.", "Write the form the message names."
    ),
    Code(
        "maxtext-value",
        "The pinned MaxText would refuse the value, or read another.",
        "Write what the message expects.",
    ),
    Code(
        "maxtext-model",
        "The pinned MaxText knows no such model.",
        "Write MaxText's own name in deploy.MAXTEXT_MODEL, or declare a fork's in extensions.yml.",
    ),
    Code("launch-missing", "A key under launch: that this run needs.", "Write it."),
    Code("deploy-missing", "A key under deploy: that every run needs and no layer sets.", "Write it in a preset."),
    Code(
        "launch-ignored",
        "launch.branch or launch.commit beside an image has no effect.",
        "Delete it.",
        adjustable=True,
        severity=Severity.WARNING,
    ),
    Code("launch-branch", "launch.commit without the branch it lies on.", "Write launch.branch."),
    Code("launch-resume", "launch.resume and maxtext.run_name both name the run.", "Keep one."),
)

SLICE: tuple[Code, ...] = (
    Code("topology-unknown", "The accelerator has no such topology.", "Choose one the message lists."),
    Code("topology-chips", "TPU_TOPOLOGY has other chips than launch.chips.", "Make them agree."),
    Code(
        "completions-hosts", "COMPLETIONS is not the number of the slice's hosts.", "Write the number in the message."
    ),
    Code(
        "parallelism-missing",
        "A mesh axis that no layer writes and whose default -1 takes what the others leave.",
        "Write it in the topology.",
        adjustable=True,
    ),
    Code("parallelism-size", "A mesh axis of 0 or below -1.", "Write at least 1, or -1 for what remains."),
    Code("parallelism-open", "Two axes of -1.", "Write a number for one of them."),
    Code("parallelism-slices", "A dcn axis above 1, but a run has one slice.", "Write 1."),
    Code(
        "parallelism-product",
        "The ici axes do not multiply to the devices of the slice; MaxText only finds out with the TPUs held.",
        "Choose one of the splits in the message.",
    ),
    Code(
        "batch-not-whole",
        "The global batch is not a whole number; MaxText cuts it silently.",
        "Change per_device_batch_size.",
        adjustable=True,
    ),
    Code(
        "batch-promise",
        "The global batch is not what checks: promises.",
        "Correct the one or the other.",
        adjustable=True,
    ),
    Code("derivation", "The pod could not derive its arguments (D1 to D7).", "Correct the keys the message names."),
)

CONTENT: tuple[Code, ...] = (
    Code("control-character", "A value holds a control character.", "Delete it."),
    Code("placeholder", "A value is a placeholder.", "Write the real value.", adjustable=True),
    Code(
        "interpolation",
        "A value holds ${, $( or $$, which OmegaConf, a shell or Kubernetes would expand.",
        "Write the value itself.",
    ),
    Code(
        "secret",
        "A value looks like a credential (detect-secrets' patterns and a few more).",
        "Put it into a Kubernetes Secret and revoke this one. For a false alarm, lower the code with a reason.",
        adjustable=True,
    ),
    Code("output-directory", "base_output_directory is missing, or not in the run's bucket or volumes.", "Correct it."),
    Code("env-owned", "An ENV entry that the renderer or Kubernetes sets.", "Delete it."),
    Code("env-maxtext", "An ENV entry M_..., which would override run.yml silently.", "Write the key under maxtext:."),
    Code("env-xla-flags", "A TPU flag in ENV.XLA_FLAGS.", "Move it to deploy.LIBTPU_INIT_ARGS."),
    Code("env-size", "A variable longer than Linux passes to a program (128 KiB).", "Put it into a file."),
    Code("flag-placement", "A flag for GPUs or CPUs stands under LIBTPU_INIT_ARGS.", "Delete it.", adjustable=True),
    Code("label", "A value becomes a label and does not fit.", "Shorten it to 63 letters, digits, - _ ."),
    Code(
        "run-name",
        "run_name cannot be a folder's name: it has slashes, spaces or other characters, or is empty.",
        "Use letters, digits, - _ .",
    ),
    Code(
        "volume-mount",
        "A volume would hide what the renderer mounts, or what the image needs.",
        "Mount it elsewhere, such as under /data.",
    ),
    Code(
        "deploy-no-effect",
        "A key is set for this run, but nothing reads it: HF_* without ENABLE_HF_CONVERSION, GIT_REPOSITORY in image "
        "mode, IMAGE_REPOSITORY in source mode or beside a full image reference.",
        "Delete it, or choose what reads it.",
        adjustable=True,
    ),
    Code("hf-missing", "ENABLE_HF_CONVERSION is true, but something it needs is missing.", "Write the key."),
    Code(
        "hf-checkpoints",
        "ENABLE_HF_CONVERSION is true, but the run writes no checkpoints.",
        "Enable the one or disable the other.",
        adjustable=True,
    ),
)
