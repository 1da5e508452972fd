"""The codes of recording old launchers and comparing with them."""

from __future__ import annotations

from renderer.codes.code import Code

LEGACY: tuple[Code, ...] = (
    Code("record-tool", "The launcher needs a program that the sandbox does not have.", "Give it a stand-in."),
    Code("record-shell", "The launcher is not a script that its shell can run.", "Correct its first line."),
    Code("record-checkout", "The launcher does not lie in the checkout named.", "Say which checkout it belongs to."),
    Code("record-input", "The launcher asks for input.", "Give it as an argument or in the environment."),
    Code(
        "record-failed", "The launcher ended with an error.", "Fix it there first: a broken launcher is not recorded."
    ),
    Code(
        "record-differs",
        "Two recordings of the launcher differ.",
        "Freeze what differs, or remove it from the launcher.",
    ),
    Code("record-launches", "The launcher starts no training program, or several.", "Record one launch at a time."),
    Code("record-output", "The launcher writes without end.", "Stop it, and look at the end of its output."),
    Code("record-time", "The launcher does not end.", "Give it more time, or a stand-in for what it waits for."),
    Code("record-pod", "The container starts something that cannot be followed.", "Start it with bash or sh."),
    Code("legacy-form", "A recording or recipe is not in a known form.", "Record it again."),
    Code("legacy-option", "An option of xpk is unknown or given twice.", "Correct the recipe."),
    Code("legacy-argument", "An argument of MaxText is not key=value.", "Correct it in the launcher."),
    Code("legacy-flag", "A word in LIBTPU_INIT_ARGS is not a flag.", "Correct it in the launcher."),
    Code("legacy-program", "The program is not MaxText's pre-training.", "Record a pre-training launcher."),
    Code("legacy-manifest", "A manifest is not one JobSet with one container.", "Give the manifest of one run."),
    Code("legacy-version", "The recording's MaxText has no snapshot.", "Pair it with a version that has one."),
    Code(
        "legacy-pair", "No recording is paired with the experiment.", "Name a pair that the message lists, or add one."
    ),
    Code(
        "legacy-unpaired",
        "A recording is paired with no experiment.",
        "Pair it, or list it as refused with its reason.",
    ),
    Code("legacy-refused", "A recording listed as refused can be compared.", "Pair it with an experiment."),
    Code("checks-key", "An unknown key in the list of pairs.", "Correct its spelling."),
    Code("checks-form", "A value in the list of pairs has the wrong form.", "Write the form the message names."),
    Code("waiver", "A waiver is not complete or not in the right form.", "Write what the message names."),
    Code("waiver-unused", "A set of waivers that no pair uses.", "Delete it."),
    Code("record-accept", "A code to accept is nothing the examination finds.", "Name one the message lists."),
    Code("record-expected", "The recording to replace is missing or is none.", "Record it first."),
    Code(
        "record-refused",
        "The examination found something, so nothing was recorded.",
        "Fix it, or accept it by its code.",
    ),
    Code("invalid-json", "An argument or variable should be JSON and is not.", "Correct it in the launcher."),
    Code("unset-variable", "A variable is used that nothing sets.", "Set it, or write a default where it is used."),
    Code("swallowed-flag", "An empty value made an option take the next one.", "Quote the value in the launcher."),
    Code("unread-variable", "A variable is set and never read.", "Delete it: whoever sets it expects an effect."),
    Code("unknown-key", "The launcher passes a key this MaxText does not have.", "Correct it in the launcher."),
    Code("repeated-argument", "An argument is passed twice; the last one counts.", "Delete the one without effect."),
    Code("empty-argument", "An argument has no value, which MaxText reads as null.", "Write null, or the value."),
    Code("personal-path", "The launcher holds a path that only one person has.", "Write a shared path."),
    Code("clock", "A name or value follows the clock, so no two launches agree.", "Write one that does not change."),
    Code("import-model", "What is imported names no model.", "Say which model it is."),
    Code("import-topology", "What is imported has no known topology.", "Say which, for example --topology 4x4x4."),
    Code("import-exists", "The experiment to write exists.", "Choose another name."),
)
