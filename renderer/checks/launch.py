"""Checks of what must be known to launch: who answers for the run, which code it runs, which run it continues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from renderer.configure import Configuration
from renderer.keys import CHECKS_KEYS, IMAGE_DIGEST
from renderer.problem import Problem, Severity
from renderer.schema import nearest
from renderer.yaml_io import Node


def check(configuration: Configuration) -> Iterator[Problem]:
    """Yield what contradicts itself in `launch:` and `checks:`."""
    launch = configuration.launch
    if launch.image and (launch.branch or launch.commit):
        ignored = "branch" if launch.branch else "commit"
        message = f"is ignored: the image {launch.image} holds its own code"
        yield Problem("launch-ignored", launch.place(ignored), f"launch.{ignored}", message, severity=Severity.WARNING)
    if launch.commit and not launch.branch and not launch.image:
        yield Problem(
            "launch-branch",
            launch.place("commit"),
            "launch.commit",
            "needs the branch it lies on: write launch.branch",
        )
    if launch.resume and configuration.leaf("maxtext", "run_name"):
        message = "sets maxtext.run_name, and so does maxtext: keep one"
        yield Problem("launch-resume", launch.place("resume"), "launch.resume", message)
    yield from unknown_promises(configuration.checks)


def unknown_promises(promises: Mapping[str, Node]) -> Iterator[Problem]:
    """Yield a problem per key of `checks:` that promises nothing."""
    for key, node in promises.items():
        if key not in CHECKS_KEYS:
            near = nearest(key, CHECKS_KEYS) or list(CHECKS_KEYS)
            yield Problem(
                "unknown-checks-key", node.key_at, f"checks.{key}", "unknown key", f"known: {', '.join(near)}"
            )


def needed(configuration: Configuration) -> Iterator[Problem]:
    """Yield what a launch needs and a preview of presets may leave open: owner, image, branch, repositories."""
    launch = configuration.launch
    if launch.environment == "prod":
        for key, reason in (
            ("image", "prod runs an image that can be run again"),
            ("owner", "prod runs have an owner"),
        ):
            if not getattr(launch, key):
                message = f"missing: {reason}; write launch.{key}"
                yield Problem("launch-missing", launch.place("environment"), f"launch.{key}", message)
    elif not launch.image and not launch.branch:
        message = "missing: write launch.branch (the code to clone) or launch.image"
        yield Problem("launch-missing", launch.place("environment"), "launch.branch", message)
    for key in _repositories(configuration):
        if not configuration.leaf("deploy", key):
            reason = "where does the tag live?" if key == "IMAGE_REPOSITORY" else "what is cloned?"
            yield Problem("deploy-missing", launch.place("image"), f"deploy.{key}", f"missing: {reason}")


def _repositories(configuration: Configuration) -> Iterator[str]:
    launch = configuration.launch
    if launch.mode == "source":
        yield "GIT_REPOSITORY"
    elif launch.image and ("/" not in launch.image or IMAGE_DIGEST.fullmatch(launch.image)):
        yield "IMAGE_REPOSITORY"
