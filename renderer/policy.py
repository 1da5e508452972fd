"""What may be launched: presets/policy.yml, a reviewed file. Without it nothing is restricted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from renderer import tables
from renderer.codes import CODES
from renderer.configure import Configuration
from renderer.content_files import read_optional
from renderer.key_types import Form, Key, Kind
from renderer.layers import ENVIRONMENTS
from renderer.location import Location
from renderer.problem import Problem, Severity, counted
from renderer.run_spec import Run
from renderer.schema import nearest
from renderer.yaml_io import Node

FILE = "presets/policy.yml"
_CODE = "policy-file"
_SECTIONS = ("environments", "checks", "merge", "paused")

_RULES = (
    Key("buckets", Kind.TEXT_LIST, "The buckets a run may write to."),
    Key("namespaces", Kind.TEXT_LIST, "The namespaces a run may live in."),
    Key("images", Kind.TEXT_LIST, "The images a run may use; * stands for anything."),
    Key("repositories", Kind.TEXT_LIST, "What source mode may clone, with the token; * stands for anything."),
    Key("image_form", Kind.TEXT, "tag or digest.", form=Form("tag|digest", "tag or digest")),
    Key(
        "scale_from_zero", Kind.BOOLEAN, "Node pools without nodes are there and grow when a run waits.", default=False
    ),
)
_LISTS = ("buckets", "namespaces", "images", "repositories")
_LIMITS = (
    Key("launches", Kind.INTEGER, "Most runs that one merge may launch."),
    Key("stops", Kind.INTEGER, "Most runs that one merge may stop."),
    Key("chips", Kind.INTEGER, "Most chips that the launches of one merge may take."),
)
_RULING = (
    Key("severity", Kind.TEXT, "error, warning or off.", form=Form("error|warning|off", "error, warning or off")),
    Key("reason", Kind.TEXT, "why, in words", form=Form(r"(?s).*\S.*", "a reason")),
)


@dataclass(frozen=True, slots=True)
class Rules:
    """What runs of one environment may use; None where everything is allowed. `image_form` is tag, digest or empty.

    `scale_from_zero` says that node pools may have no nodes before a run waits for them.
    """

    buckets: tuple[str, ...] | None = None
    namespaces: tuple[str, ...] | None = None
    images: tuple[str, ...] | None = None
    repositories: tuple[str, ...] | None = None
    image_form: str = ""
    scale_from_zero: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """How a check's code is taken: None is off."""

    severity: Severity | None
    reason: str
    place: Location


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one merge may do; None is no limit."""

    launches: int | None = None
    stops: int | None = None
    chips: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be launched, and how problems are taken. `paused` is the reason why nothing is launched, or empty."""

    rules: Mapping[str, Rules] = field(default_factory=dict)
    rulings: Mapping[str, Ruling] = field(default_factory=dict)
    limits: Limits = Limits()
    paused: str = ""


def load(root: Path, problems: list[Problem]) -> Policy:
    """Return the policy of the content under `root`; append what is wrong in its file to `problems`."""
    node = read_optional(root, FILE, problems)
    if node is None:
        return Policy()
    tables.known(node.value, _SECTIONS, "", _CODE, problems)
    empty = Node(None, node.at)
    section = {name: node.value.get(name, empty) for name in _SECTIONS}
    environments = tables.mapping(section["environments"], "environments", _CODE, problems)
    tables.known(environments, ENVIRONMENTS, "environments", _CODE, problems)
    return Policy(
        rules={name: _rules(child, f"environments.{name}", problems) for name, child in environments.items()},
        rulings=_rulings(section["checks"], problems),
        limits=Limits(**tables.read(section["merge"], _LIMITS, "merge", _CODE, problems)),
        paused=_paused(section["paused"], problems),
    )


def _rules(node: Node, path: str, problems: list[Problem]) -> Rules:
    read = tables.read(node, _RULES, path, _CODE, problems)
    lists = {name: None if read[name] is None else tuple(read[name]) for name in _LISTS}
    return Rules(**lists, image_form=read["image_form"] or "", scale_from_zero=read["scale_from_zero"])


def _paused(node: Node, problems: list[Problem]) -> str:
    if node.value is None:
        return ""
    if not isinstance(node.value, str) or not node.value.strip():
        message = "must be the reason why nothing is launched, or absent"
        problems.append(Problem(_CODE, node.at, "paused", message))
        return ""
    return node.value


def _rulings(node: Node, problems: list[Problem]) -> dict[str, Ruling]:
    found = {}
    for name, child in tables.mapping(node, "checks", _CODE, problems).items():
        path = f"checks.{name}"
        before = len(problems)
        read = tables.read(child, _RULING, path, _CODE, problems, required=("severity",))
        if len(problems) == before:
            problems.extend(_allowed(name, read["severity"], read["reason"], child, path))
        if len(problems) == before:
            severity = None if read["severity"] == "off" else Severity(read["severity"])
            found[name] = Ruling(severity, read["reason"] or "", child.key_at)
    return found


def _allowed(name: str, severity: str, reason: str | None, node: Node, path: str) -> Iterator[Problem]:
    """Yield why a code may not be taken so: it is unknown, nobody may lower it, or the reason is missing."""
    if name not in CODES:
        near = nearest(name, CODES)
        hint = f"did you mean {' or '.join(near)}?" if near else "docs/checks.md lists them"
        yield Problem(_CODE, node.key_at, path, "no check has this code", hint)
        return
    code = CODES[name]
    if severity == "error" or severity == code.severity:
        return
    if not code.adjustable:
        yield Problem(_CODE, node.key_at, path, "stays an error: no run can be made without it, or nobody may waive it")
    elif not reason:
        yield Problem(_CODE, node.key_at, path, f"{severity} needs a reason: write reason: beside it")


def apply(policy: Policy, problems: Iterable[Problem]) -> list[Problem]:
    """Return `problems` as the policy takes them. Applying it twice changes nothing more."""
    if not policy.rulings:
        return list(problems)
    taken = (_taken(policy.rulings.get(problem.code), problem) for problem in problems)
    return [problem for problem in taken if problem]


def _taken(ruling: Ruling | None, problem: Problem) -> Problem | None:
    if ruling is None or ruling.severity is problem.severity:
        return problem
    if ruling.severity is None:
        return None
    because = f": {ruling.reason}" if ruling.reason else ""
    said = f"{ruling.severity.value} by {ruling.place.in_line}{because}"
    return replace(problem, severity=ruling.severity, hint=f"{problem.hint}\n{said}".lstrip("\n"))


def check(policy: Policy, configuration: Configuration, run: Run) -> Iterator[Problem]:
    """Yield a problem per bucket, namespace, image and repository of the run that its environment may not use."""
    rules = policy.rules.get(run.environment)
    if rules is None:
        return
    yield from _namespace(rules, configuration, run)
    yield from _buckets(rules, configuration)
    yield from _images(rules, configuration, run)
    yield from _repository(rules, configuration, run)


def _namespace(rules: Rules, configuration: Configuration, run: Run) -> Iterator[Problem]:
    if refused := refusal(run.namespace, run.environment, rules.namespaces):
        place = _place(configuration, "deploy", "K8S_NAMESPACE")
        yield Problem("policy-namespace", place, "deploy.K8S_NAMESPACE", refused.message, refused.hint)


def _buckets(rules: Rules, configuration: Configuration) -> Iterator[Problem]:
    if rules.buckets is None:
        return
    written = [("maxtext", key) for key in configuration.maxtext if key.endswith(WRITTEN_ENDINGS)]
    for namespace, key in (*_WRITTEN, *written):
        leaf = configuration.leaf(namespace, key)
        text = str(leaf.node.value) if leaf else ""
        bucket = text.removeprefix("gs://").split("/")[0]
        refused = refusal(bucket, configuration.launch.environment, rules.buckets)
        if leaf and refused and (key == "GCS_BUCKET" or text.startswith("gs://")):
            yield Problem("policy-bucket", leaf.at, f"{namespace}.{key}", refused.message, refused.hint)


_WRITTEN = (("deploy", "GCS_BUCKET"), ("deploy", "HF_OUTPUT_DIRECTORY"))
WRITTEN_ENDINGS = ("_dir", "_directory", "_debug_path")
"""MaxText's keys of folders it writes to: base_output_directory, dump_hlo_gcs_dir, jax_cache_dir, ..."""


def _repository(rules: Rules, configuration: Configuration, run: Run) -> Iterator[Problem]:
    """What is cloned runs on the cluster, and its host is handed the token."""
    leaf = configuration.leaf("deploy", "GIT_REPOSITORY")
    if leaf is None or configuration.launch.mode != "source":
        return
    if refused := refusal(str(leaf.node.value), run.environment, rules.repositories, fnmatchcase):
        yield Problem("policy-repository", leaf.at, "deploy.GIT_REPOSITORY", refused.message, refused.hint)


def _images(rules: Rules, configuration: Configuration, run: Run) -> Iterator[Problem]:
    images = [(configuration.launch.place("image"), "launch.image", run.image)]
    if run.watcher:
        images.append(
            (_place(configuration, "deploy", "HF_WATCHER_IMAGE"), "deploy.HF_WATCHER_IMAGE", run.watcher.image)
        )
    for place, path, image in images:
        if refused := refusal(image, run.environment, rules.images, fnmatchcase):
            yield Problem("policy-image", place, path, refused.message, refused.hint)
    message = image_form(run.image, run.environment, rules.image_form)
    if configuration.launch.image and message:
        yield Problem("policy-image-form", images[0][0], "launch.image", message)


def _place(configuration: Configuration, namespace: str, key: str) -> Location:
    leaf = configuration.leaf(namespace, key)
    return leaf.at if leaf else configuration.start


class Refusal(NamedTuple):
    """Why a value may not be used, and what may."""

    message: str
    hint: str


def refusal(
    value: str,
    environment: str,
    allowed: Sequence[str] | None,
    fits: Callable[[str, str], bool] = str.__eq__,
) -> Refusal | None:
    """Return why `value` may not be used in `environment`; `fits` compares it with each entry of `allowed`."""
    if allowed is None or any(fits(value, entry) for entry in allowed):
        return None
    return Refusal(f"{value} is not allowed in {environment}", f"{FILE} allows: {', '.join(allowed) or 'none'}")


def image_form(image: str, environment: str, form: str) -> str:
    """Return why `image` is not of the `form` (tag, digest, or empty for any) of `environment`, empty if it is."""
    folder, slash, last = image.rpartition("/")
    name, _, tag = last.partition(":")
    if form == "digest" and "@" not in image:
        return f"{image} is no digest: {environment} takes {folder}{slash}{name}@sha256:... only"
    if form == "tag" and "@" not in image and tag in {"", "latest"}:
        return f"{image} does not say which version: write a tag or a digest"
    return ""


def exceeded(policy: Policy, *, launches: int, stops: int, chips: int) -> list[str]:
    """Return what one merge would do above the policy's limits, one sentence each."""
    limits = policy.limits
    asked = (
        ("launch", launches, limits.launches, "run"),
        ("stop", stops, limits.stops, "run"),
        ("take", chips, limits.chips, "chip"),
    )
    return [
        f"would {verb} {counted(count, what)}, at most {most} {'is' if most == 1 else 'are'} allowed"
        for verb, count, most, what in asked
        if most is not None and count > most
    ]
