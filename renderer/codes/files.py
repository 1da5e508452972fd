"""The codes of reading and merging files, and of the command line."""

from __future__ import annotations

from renderer.codes.code import Code

FILES: tuple[Code, ...] = (
    Code(
        "file-unreadable",
        "A file is missing, is a folder or a symbolic link, or may not be read.",
        "Create it, put a copy in place of the link, or correct its path or permissions.",
    ),
    Code(
        "file-unwritable",
        "A file cannot be written: a link, a folder or something else is in the way, or its permissions are.",
        "Remove what is in the way, or correct the permissions.",
    ),
    Code(
        "file-size",
        "A file is larger than 1 MiB, more than a ConfigMap holds.",
        "Move data to a bucket, and write its path.",
    ),
    Code("yaml-encoding", "A file is not UTF-8.", "Save it as UTF-8."),
    Code("yaml-control-character", "A raw control character stands in a file.", "Delete it."),
    Code(
        "yaml-line-break",
        "A character that only YAML 1.1 takes for a line break.",
        "Write it escaped in a double-quoted string.",
    ),
    Code(
        "yaml-syntax",
        "The text is not YAML.",
        "Correct it at the place named; quotes and brackets are the usual reason.",
    ),
    Code("yaml-tab", "A tab character stands outside quotes and comments.", "Write spaces."),
    Code("yaml-directive", "A % directive changes how the file is read.", "Delete it."),
    Code("yaml-documents", "A file holds several documents.", "Write one file for each."),
    Code("yaml-mapping", "A file is a list or a single value.", "Write a mapping of keys."),
    Code("yaml-depth", "Values are nested more than 32 levels deep.", "Flatten them."),
    Code(
        "yaml-alias",
        "An anchor or alias: what it stands for is not visible where it is used.",
        "Write the value where it is needed.",
    ),
    Code(
        "yaml-merge-key", "The merge key <<, which readers treat differently.", "Write the keys; the layers are merged."
    ),
    Code(
        "yaml-key",
        "A key is not text to every reader (on: is the boolean true to some).",
        "Quote it, or choose another.",
    ),
    Code("yaml-duplicate-key", "A key is written twice in one mapping: readers keep different ones.", "Keep one."),
    Code(
        "yaml-tag",
        "A tag other than !remove, or !remove with a value or in a list.",
        "Quote text; write !remove alone after a key.",
    ),
    Code(
        "yaml-ambiguous",
        "YAML 1.1 and 1.2 read the value differently (yes, 010, 12:30, 1_000, 2026-01-01).",
        "Write the form the message names.",
    ),
    Code(
        "yaml-edit",
        "A file is written in a way that no edit keeps its values and comments.",
        "Write it more simply, or change it by hand.",
    ),
)

LAYERS: tuple[Code, ...] = (
    Code("top-level-key", "An unknown key at the top of a file.", "Write it under launch:, deploy: or maxtext:."),
    Code("namespace-type", "launch:, deploy:, maxtext: or checks: is not a mapping.", "Write keys under it."),
    Code(
        "preset-missing",
        "The selectors of launch: name a preset file that does not exist.",
        "Choose an existing model, chips, context and environment, or add the preset.",
    ),
    Code(
        "dataset-missing",
        "deploy.DATASETS_YAML names a dataset that does not exist.",
        "Choose an existing one, or add datasets/<name>.yml.",
    ),
    Code(
        "path-outside",
        "A file lies outside the repository, so it is not reviewed with it.",
        "Move it into the repository.",
    ),
    Code(
        "model-folder",
        "launch.model and the experiment's folder differ.",
        "Make them the same.",
    ),
    Code("experiment-exists", "The experiment to write exists.", "Choose another name."),
    Code("experiment-name", "The name is none for an experiment file.", "Write letters, digits, - _ . only."),
    Code("explain-unknown", "No layer sets the key.", "Correct its spelling."),
    Code("experiment-missing", "No experiment has the name given.", "Name it by its path or as <model>/<name>."),
    Code(
        "stray-file",
        "Something under experiments/ is not an experiment and would be ignored silently.",
        "Rename it to <name>.yml in its model's folder, or move it away.",
    ),
    Code(
        "merge-clash",
        "A mapping in one layer, a single value in another.",
        "Write the same shape in both; !remove takes a mapping out.",
    ),
    Code("remove-nothing", "!remove for a key that no lower layer sets.", "Delete the line."),
    Code(
        "extension",
        "extensions.yml is not as it should be, or changes a key MaxText has.",
        "List only a fork's own keys, and further values of enums.",
    ),
    Code(
        "maxtext-version",
        "deploy.MAXTEXT_VERSION names no known snapshot.",
        "Use a name the message lists, or add one.",
    ),
)

OVERRIDES: tuple[Code, ...] = (
    Code("override-form", "An argument is not KEY=VALUE.", "Write for example learning_rate=1e-4."),
    Code("override-twice", "A key is given twice: the last one would win silently.", "Give it once."),
    Code("override-value", "The value of KEY=VALUE cannot be read.", "Quote it for the shell and for YAML."),
    Code(
        "override-unknown",
        "Neither MaxText nor deploy: knows the key.",
        "Correct its spelling, or write the selector it is.",
    ),
)
