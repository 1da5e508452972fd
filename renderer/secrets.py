"""Finds credentials in texts and masks them. The only module that knows detect-secrets."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

from renderer.scalars import quote

MASK = "****"


class Secret(NamedTuple):
    """A credential in a text: what it looks like, and the part to mask."""

    kind: str
    value: str


# What detect-secrets does not know yet: kind and pattern.
_FURTHER = (
    ("GitHub Token", r"github_pat_[A-Za-z0-9_]{22,}"),
    ("Hugging Face Token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("Google API Key", r"AIza[0-9A-Za-z_-]{35}"),
    ("Google OAuth Token", r"ya29\.[0-9A-Za-z_-]{20,}"),
    ("Private Key", r"BEGIN (?:[A-Z0-9]{1,20} ){0,6}PRIVATE KEY"),
)
_NOTHING = "nothing"
_ASSIGNMENT = r"(?: *)(?:=|:|:=|=>| +|::)(?: *)"
_LINEAR = {
    _ASSIGNMENT: r"(?: *+(?:=|:|:=|=>|::) *+| ++)",
    r"eyJ[A-Za-z0-9-_=]+\.[A-Za-z0-9-_=]+\.?[A-Za-z0-9-_.+/=]*?": (
        rf"eyJ[A-Za-z0-9_=-]++(?:\.[A-Za-z0-9_=-]+\.?|(?P<{_NOTHING}>))"
    ),
    r"\/\/.+\/:_authToken=\s*((npm_.+)|([A-Fa-f0-9-]{36})).*": (
        rf"//(?:.+/:_authToken=\s*+((npm_.+)|([A-Fa-f0-9-]{{36}})).*|(?P<{_NOTHING}>.*+))"
    ),
    r"sk-[A-Za-z0-9-_]*[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}": (
        rf"sk-(?:[A-Za-z0-9_-]*[A-Za-z0-9]{{20}}T3BlbkFJ[A-Za-z0-9]{{20}}|(?P<{_NOTHING}>[A-Za-z0-9_-]*+))"
    ),
}
"""Parts of detect-secrets' patterns that take quadratic or cubic time, and what finds the same in linear time.

The group `nothing` takes the rest in which, after a beginning in vain, no later beginning could succeed either.
"""
_LONG = 20
"""No detector finds anything in a shorter text, but for those of _SHORT_RULES."""
_KEYWORD = r"(?i:key|pwd|pw|password|pass|token)[\"']?\]?[ =:>]+[\"']?[A-Za-z0-9_-]{24}"  # Cloudant, IBM, SoftLayer
_SHORT_RULES = (
    ("@", r"://[^\s/]*@"),  # basic auth
    ("akc", r"AKC"),  # Artifactory
    ("ap", r"AP[\dA-F][a-zA-Z0-9]{8}"),
    ("eyj", r"eyJ"),  # JWT
    ("xox", r"(?i:xox)"),  # Slack
    ("private key", r"PRIVATE KEY"),
)
_RULES = (
    *_SHORT_RULES,
    *(("key", _KEYWORD), ("pw", _KEYWORD), ("pass", _KEYWORD), ("token", _KEYWORD)),
    *((part, part.upper() + "[0-9A-Z]") for part in ("a3t", "abia", "acca", "akia", "asia")),  # AWS
    ("aws", r"(?i:aws)[^\n]{0,48}['\"]"),
    ("accountkey=", r"AccountKey="),  # Azure
    ("softlayer", r"(?i:softlayer)"),
    (".", r"\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27}"),  # Discord
    *(("_", r"gh[pousr]_"), ("github_pat", r"github_pat_")),
    *(("gl", r"gl[a-z]{2,5}-"), ("gr1348941", r"GR1348941")),  # GitLab
    ("-us", r"-us[0-9]"),  # Mailchimp
    ("_authtoken=", r":_authToken="),  # npm
    ("t3blbkfj", r"T3BlbkFJ"),  # OpenAI
    ("putty", r"PuTTY-User-Key-File"),
    ("pypi-", r"pypi-Ag"),
    ("sg.", r"SG\.[a-zA-Z0-9_-]{22}"),  # SendGrid
    ("hooks.slack", r"(?i:hooks\.slack)"),
    ("sq0csp-", r"sq0csp-"),  # Square
    ("k_live_", r"k_live_"),  # Stripe
    (":", r"\d:[0-9A-Za-z_-]{35}"),  # Telegram
    *(("ac", r"AC[a-z0-9]{32}"), ("sk", r"SK[a-z0-9]{32}")),  # Twilio
    *(("hf_", r"hf_[A-Za-z0-9]{30}"), ("aiza", r"AIza"), ("ya29", r"ya29\.")),
)


def suspicious(line: str, text: str) -> bool:
    """Return whether a detector could find something in `line`, which holds the value `text` whole.

    Each rule is a part, case folded, and a pattern around it that some detectors' texts always have.
    tests/test_secrets.py draws texts from every pattern of the installed detect-secrets and holds the rules to it.
    """
    folded = line.casefold()
    rules = _RULES if len(text) >= _LONG else _RULES[: len(_SHORT_RULES)]
    for part, pattern in rules:  # noqa: SIM110  any() takes twice the time, and this runs for every value
        if part in folded and re.search(pattern, line):
            return True
    return False


_NAME = r"(?:token|password|passwd|secret|(?:api|access|private|secret)[_-]?key|credentials?)"
_SECRET_NAME = re.compile(rf"(?i)(?:^|[_-]){_NAME}$")
_ASSIGNED = re.compile(rf"(?i)(?<![a-z0-9])(?<!github_token_){_NAME}[\"']?\s?[:=]\s?[\"']?([A-Za-z0-9+/=_.-]{{16,}})")
"""A secret's name and its value in running text; GITHUB_TOKEN_SECRET is the name of a Kubernetes Secret."""
_OPAQUE = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_.-]{16,}")
_PATH = re.compile(r"\.{0,2}/")


@lru_cache(maxsize=16384)
def find(name: str, text: str) -> tuple[Secret, ...]:
    """Return what looks like a credential in the value `text` of the key `name`.

    detect-secrets looks for some kinds beside a telling name only, so it is shown both.
    """
    line = f'{name}: "{text}"'
    if suspicious(line, text) and (found := tuple(dict.fromkeys(_detect(line)))):
        return found
    if len(text) >= _SHORTEST_GROUP and _SECRET_NAME.search(name) and _opaque(text):
        return (Secret(f"credential for {name}", text),)
    return ()


def _opaque(text: str) -> bool:
    return bool(_OPAQUE.fullmatch(text)) and not _PATH.match(text)


def _detect(text: str) -> Iterator[Secret]:
    for kind, pattern in _FURTHER:
        for match in re.finditer(pattern, text):
            yield Secret(kind, match.group())
    for kind, compiled, is_one in _patterns():
        for match in compiled.finditer(text):
            if match.lastgroup != _NOTHING and is_one(match.group()):
                yield Secret(kind, _value(match))


def _value(match: re.Match[str]) -> str:
    """Return the credential itself: detectors mark it as a group, or mark only its kind (`ghp`), or mark nothing."""
    longest = max((group for group in match.groups() if group), key=len, default="")
    return longest if len(longest) >= _SHORTEST_GROUP else match.group()


_SHORTEST_GROUP = 16


@cache
def _patterns() -> list[tuple[str, re.Pattern[str], Callable[[str], bool]]]:
    """Return each pattern of the detectors with its kind, and with what else a text that matches must be."""
    return [
        (detector.secret_type, _linear(pattern), _second_look(detector))
        for detector in _detectors()
        for pattern in detector.denylist
    ]


def _linear(pattern: re.Pattern[str]) -> re.Pattern[str]:
    text = pattern.pattern
    for slow, fast in _LINEAR.items():
        text = text.replace(slow, fast)
    return re.compile(text, pattern.flags)


def _second_look(detector: Any) -> Callable[[str], bool]:
    """Return the detector's own look at what matched: the base class only matches again, in more than linear time."""
    if type(detector).analyze_string is _base().analyze_string:
        return lambda _: True

    def is_one(text: str) -> bool:
        try:
            return any(True for _ in detector.analyze_string(text))
        except RecursionError:  # JSON of a thousand levels
            return True

    return is_one


@cache
def _detectors() -> list[Any]:
    """Return detect-secrets' regex detectors. Public IP addresses are left out: they are no secrets.

    Imported late (0.15 s), because hardly any text is suspicious; its entropy detectors take words for secrets.
    """
    package = importlib.import_module("detect_secrets.plugins")
    base = _base()
    found = {}
    for entry in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"detect_secrets.plugins.{entry.name}")
        for thing in vars(module).values():
            if isinstance(thing, type) and issubclass(thing, base) and thing is not base:
                found[thing.__name__] = thing()
    found.pop("IPPublicDetector", None)
    return [found[name] for name in sorted(found)]


def _base() -> Any:
    return importlib.import_module("detect_secrets.plugins.base").RegexBasedDetector


_MOST = 100
"""Nothing is left of a text in which more credentials are to be masked: each of them takes time."""


def mask(text: str, known: tuple[Secret, ...] = ()) -> str:
    """Return `text` with every credential in it masked; of a private key nothing is left but its first words.

    `known` are credentials found before, which only their key's name gave away.
    """
    found = dict.fromkeys(known[: _MOST + 1])
    found |= dict.fromkeys(_detect(text) if suspicious(text, text) else ())
    found |= dict.fromkeys(Secret("assigned", value) for value in _ASSIGNED.findall(text) if _opaque(value))
    if len(known) > _MOST or len(found) > _MOST:
        return MASK
    for secret in found:
        if secret.kind == "Private Key":
            before, header, _ = text.partition(secret.value)
            text = f"{before}{header}{MASK}" if header else text
            continue
        for written in {secret.value, quote(secret.value)[1:-1]} if len(secret.value) >= len(MASK) else ():
            text = text.replace(written, MASK)
    return text


_VALUE = re.compile(
    r"""(?s)"(?:[^"\\]|\\.)*"?"""
    r"""|(?<!\w)'[^']*'?"""
    r"""|[\[{].*"""
    r"""|(?<=unknown\ tag\ )\S+(?=:\ )"""
    r"""|(?<!\S)[!*&](?!remove\b)[^\s:]+"""
    r"""|(?:(?<!\S)|(?<=\s\())(?=\S{3}[^\s,:;)])(?!\S*\.yml:[0-9])\S*[0-9](?:\S*[^\s,:;)])?"""
)
"""What may be a value in a message: a quoted text, list, mapping, tag, alias, anchor, or word with digits; no place."""


_INDEXES = re.compile(r"(?<!\])(?:\[[0-9]+\])+$")
"""The indexes at the end of a name. Only a row's first bracket begins them: each other one would look at the rest."""


def is_secret_path(path: str) -> bool:
    """Return whether a dotted path names a secret, so that its value is shown in no message, whatever it looks like."""
    names = (_INDEXES.sub("", part) for part in path.split("."))
    return any(_SECRET_NAME.search(name) and name != "GITHUB_TOKEN_SECRET" for name in names)


def mask_values(text: str) -> str:
    """Return the message `text` about a secret's key with every value in it masked."""
    return _VALUE.sub(MASK, text)


_GIVEN = re.compile(rf"(?is)((?<![a-z0-9]){_NAME}[:=]).+")


def mask_given(text: str) -> str:
    """Return what a person typed with everything masked that follows a secret's name and a `:` or `=`."""
    return _GIVEN.sub(rf"\1{MASK}", text)
