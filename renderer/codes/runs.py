"""The codes of runs, of what is rendered, and of policy."""

from __future__ import annotations

from renderer.codes.code import Code

RUNS: tuple[Code, ...] = (
    Code(
        "name-too-long",
        "launch.name leaves no room for the names built on it.",
        "Shorten it to the budget in the message.",
    ),
    Code("name-twice", "Two experiments have the same name.", "Give one another launch.name."),
    Code(
        "output-twice",
        "Two experiments would write into one directory.",
        "Give one another run_name or base_output_directory, or resume the other.",
    ),
    Code(
        "config-map-size",
        "run.yml and derive.json together are larger than a ConfigMap (1 MiB).",
        "Move data out of the values, for example into a file in a bucket.",
    ),
    Code(
        "jobset-schema",
        "A rendered JobSet is not what JobSet v1alpha2 accepts: an unknown, missing or mistyped field.",
        "Correct the value it comes from; if none does, the template in pod/ is wrong.",
    ),
)

RENDERED: tuple[Code, ...] = (
    Code("rendered-missing", "A rendered file is missing.", "Run renderer render."),
    Code("rendered-edited", "A rendered file was edited by hand.", "Change its source, and run renderer render."),
    Code("rendered-stale", "A rendered file is not what its layers render to.", "Run renderer render."),
    Code(
        "rendered-frozen",
        "A rendered file is not the target branch's, though its experiment's content did not change.",
        "Run renderer render, which restores it, or renderer render --refresh for that experiment.",
    ),
    Code(
        "rendered-digest",
        "A digest that a run carries is not that of its files.",
        "Run renderer render; on the target branch, renderer render --refresh for that experiment.",
    ),
    Code("git-failed", "git could not read the repository.", "Mend what git says; fetch the whole history."),
    Code("render-base", "The target branch is not a commit here.", "Fetch it, or name another with --base."),
    Code("rendered-orphan", "No experiment renders the file.", "Run renderer render, which deletes it."),
    Code("rendered-unknown", "A file under rendered/ that the renderer does not write.", "Delete it."),
    Code("rendered-link", "rendered/ is a symbolic link.", "Make it a folder."),
)

POLICY: tuple[Code, ...] = (
    Code(
        "policy-bucket",
        "policy.yml does not allow the bucket in this environment.",
        "Use an allowed one, or have it allowed.",
    ),
    Code(
        "policy-namespace",
        "policy.yml does not allow the namespace in this environment.",
        "Use an allowed one, or have it allowed.",
    ),
    Code(
        "policy-image",
        "policy.yml does not allow the image in this environment.",
        "Use an allowed one, or have it allowed.",
    ),
    Code(
        "policy-repository",
        "policy.yml does not allow the repository that source mode would clone in this environment.",
        "Use an allowed one, or have it allowed.",
    ),
    Code(
        "policy-image-form",
        "policy.yml demands a digest, or a tag that says a version.",
        "Write what the message names.",
    ),
    Code("policy-file", "presets/policy.yml is not as it should be.", "Correct it at the place named."),
    Code("clusters-file", "presets/clusters.yml is not as it should be.", "Correct it at the place named."),
)
