"""The waivers an import makes by itself, and the pair it adds to checks.yml."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from renderer.compare import ABSENT
from renderer.legacy.difference import Difference
from renderer.legacy.import_presets import PLACEHOLDER
from renderer.legacy.pairs import Pair
from renderer.legacy.waivers import KINDS, Context, Waiver, covers, matches
from renderer.location import Location
from renderer.scalars import quote

_REASONS = {
    "placeholder": "The recording has a placeholder: the value belongs to whoever runs it.",
    "launcher": "The launcher's own; ours follow from the experiment.",
    "log-upload": "The bootstrap uploads the log of every run, while it runs.",
    "mounted-run": "run.yml and the pod's scripts are mounted.",
    "optional-secret": "Image mode clones nothing, so the secret may be missing.",
    "bootstrap": "pod/bootstrap.sh installs the same in source mode.",
    "env-block": "It only handed a value on to the pod script; the arguments are compared.",
    "dead-key": "No MaxText of this version has this key.",
    "default": "MaxText's own default.",
    "forced": "The import was forced over this difference: explain it or remove it.",
}
_AUTOMATIC = (
    *("launcher", "placeholder", "log-upload", "mounted-run", "optional-secret", "bootstrap"),
    *("env-block", "dead-key", "default"),
)
_PROVEN = ("default", "env-block")
_INSTALLS = ("pip ", "pip3 ", "uv ", "apt-get ", "apt ", "install_maxtext_", "install_tpu_", "python3 -m venv ")
"""What pod/bootstrap.sh does itself in source mode."""
_DAYS = {"forced": 90}
_PRIORITY = "job.priority"
_FOLDER = "maxtext.base_output_directory"


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of the differences: sets of checks.yml that fit as they are, waivers of its own, and the rest."""

    use: tuple[str, ...]
    own: tuple[Waiver, ...]
    rest: tuple[Difference, ...]

    def pair(
        self, experiment: str, recording: str, version: str | None, sets: Mapping[str, tuple[Waiver, ...]]
    ) -> Pair:
        """Return the pair that checks.yml would hold."""
        shared = tuple(waiver for name in self.use for waiver in sets[name])
        return Pair(experiment, recording, version, shared + self.own, Location(experiment))


def decide(
    found: Sequence[Difference],
    context: Context,
    sets: Mapping[str, tuple[Waiver, ...]],
    today: datetime.date,
    *,
    force: bool,
) -> Decision:
    """Return which differences the design of this tool intends; with `force` the others are waived too, for 90 days."""
    left, use = list(found), []
    for name, waivers in sets.items():
        covered = [item for item in left if any(covers(waiver, item, context) for waiver in waivers)]
        if covered and _all_used(waivers, covered, context):
            use.append(name)
            left = [item for item in left if item not in covered]
    own, rest = [], []
    for item in left:
        kind = next((kind for kind in _AUTOMATIC if _intended(kind, item, context, today)), "forced" if force else "")
        if kind:
            own.append(_waiver(kind, item, today))
        else:
            rest.append(item)
    return Decision(tuple(use), tuple(_joined(own)), tuple(rest))


def _joined(waivers: Sequence[Waiver]) -> Iterator[Waiver]:
    """Yield the waivers, those whose kind proves each path by itself as one."""
    for kind in _PROVEN:
        paths = [path for waiver in waivers if waiver.kind == kind for path in waiver.paths]
        if paths:
            first = next(waiver for waiver in waivers if waiver.kind == kind)
            yield replace(first, name=f"{kind}s", paths=tuple(paths), recorded="*", ours="*")
    yield from (waiver for waiver in waivers if waiver.kind not in _PROVEN)


def _all_used(waivers: Sequence[Waiver], covered: Sequence[Difference], context: Context) -> bool:
    return all(
        any(matches(path, item.path) and covers(waiver, item, context) for item in covered)
        for waiver in waivers
        for path in waiver.paths
    )


def _intended(kind: str, item: Difference, context: Context, today: datetime.date) -> bool:
    if item.path == _FOLDER and kind == "launcher" and item.recorded is not ABSENT:
        return False
    if item.path == _PRIORITY or not any(matches(path, item.path) for path in KINDS[kind][1]):
        return False
    if kind == "placeholder" and not (isinstance(item.recorded, str) and PLACEHOLDER.search(item.recorded)):
        return False
    if kind == "log-upload" and item.recorded is ABSENT:
        return False
    if kind == "bootstrap" and not _installs_only(item):
        return False
    if kind == "mounted-run" and item.texts != ("(absent)", "configMap"):
        return False
    return covers(_waiver(kind, item, today), item, context)


def _installs_only(item: Difference) -> bool:
    recorded, mine = item.texts
    commands = recorded.split(" && ") if item.recorded is not ABSENT else []
    return mine.startswith("bootstrap.sh ") and all(f"{command} ".startswith(_INSTALLS) for command in commands)


def _waiver(kind: str, item: Difference, today: datetime.date) -> Waiver:
    recorded, mine = item.texts
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{kind} {item.path}").strip("-")
    expires = today + datetime.timedelta(days=_DAYS.get(kind, 365))
    reason = _REASONS[kind]
    return Waiver(name, kind, (item.path,), recorded or "*", mine or "*", reason, expires, Location("import"))


def text(decision: Decision, experiment: str, recording: str, version: str | None) -> str:
    """Return the lines of the pair in checks.yml."""
    lines = [f"  {experiment}:", f"    recording: {recording}"]
    if version:
        lines.append(f"    version: {quote(version)}")
    if decision.use:
        lines.append(f"    use: [{', '.join(decision.use)}]")
    if decision.own:
        lines.append("    waivers:")
    for waiver in decision.own:
        lines.append(f"      {waiver.name}:")
        fields = {"kind": waiver.kind, "recorded": waiver.recorded, "ours": waiver.ours, "reason": waiver.reason}
        lines.append(f"        paths: [{', '.join(map(quote, waiver.paths))}]")
        lines += [f"        {key}: {quote(item)}" for key, item in fields.items()]
        lines.append(f"        expires: {quote(str(waiver.expires))}")
    return "\n".join(lines) + "\n"


def insert(checks: str, pair: str) -> str:
    """Return the text of checks.yml with one more pair, after the others."""
    if not re.search(r"^pairs:", checks, re.MULTILINE):
        return checks.rstrip("\n") + ("\n" if checks.strip() else "") + "pairs:\n" + pair
    following = re.search(r"^pairs:[^\n]*\n(?:(?:[ #][^\n]*)?\n)*", checks, re.MULTILINE)
    end = following.end() if following else len(checks)
    return checks[:end] + pair + checks[end:]
