from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from renderer import secrets
from renderer.secrets import Secret, find, is_secret_path, mask, mask_given, mask_values

PATTERNS = {
    f"{detector.secret_type} {index}": pattern
    for detector in secrets._detectors()
    for index, pattern in enumerate(detector.denylist)
} | {f"further {kind}": re.compile(pattern) for kind, pattern in secrets._FURTHER}


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_filter_passes_whatever_a_detector_finds(name: str, data: st.DataObject) -> None:
    pattern: re.Pattern[str] = PATTERNS[name]
    text = data.draw(st.from_regex(pattern))
    assert secrets.suspicious(text, text)
    assert secrets.suspicious(f'x: "{text}"', text)


REWRITTEN = {
    name: (pattern, secrets._linear(pattern))
    for name, pattern in PATTERNS.items()
    if secrets._linear(pattern).pattern != pattern.pattern
}
PIECES = [
    *("eyJ", "a", "eyJa.b", ".", "//", "/:_authToken=", "npm_x", "0" * 36, "sk-", "a" * 20, "T3BlbkFJ", "-", "\n", "!"),
    *("clkey", "ibm_pass", "softlayerpassword", "secret_key", "[", '"', "]", " ", "   ", "=", ":", ">", "0" * 64),
]


def test_every_slow_part_of_a_detector_is_rewritten() -> None:
    """An update of detect-secrets that changes one of them must change _LINEAR too."""
    slow = {part for part in secrets._LINEAR if any(part in pattern.pattern for pattern in PATTERNS.values())}
    assert slow == set(secrets._LINEAR)
    assert len(REWRITTEN) == 8


@pytest.mark.parametrize("name", REWRITTEN)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_was_rewritten_finds_the_same(name: str, data: st.DataObject) -> None:
    theirs, ours = REWRITTEN[name]
    around = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
    text = data.draw(around) + data.draw(st.one_of(st.just(""), st.from_regex(theirs))) + data.draw(around)
    matches = [match for match in ours.finditer(text) if match.lastgroup != "nothing"]
    assert [(match.span(), secrets._value(match)) for match in matches] == [
        (match.span(), secrets._value(match)) for match in theirs.finditer(text)
    ]


def test_finds_a_token_of_which_a_detector_names_an_empty_part() -> None:
    """detect-secrets drops it: the pattern's only group is the optional number of a partition."""
    assert mask("glcbt-" + "a1" * 12) == "****"


def test_masks_a_token_that_holds_json_of_many_levels() -> None:
    payload = base64.urlsafe_b64encode(b'{"a":' + b"[" * 100_000).decode().rstrip("=")
    token = f"eyJhbGciOiJIUzI1NiJ9.{payload}"
    assert find("x", token) == (Secret("JSON Web Token", token),)
    assert mask(f"the text {token} is wrong") == "the text **** is wrong"


def test_shows_nothing_of_a_text_with_very_many_credentials() -> None:
    tokens = [f"ghp_{number:036}" for number in range(101)]
    assert mask("x ".join(tokens[:100])) == "x ".join(["****"] * 100)
    assert mask("x ".join(tokens)) == "****"
    assert mask("x", tuple(Secret("credential", token) for token in tokens[:100])) == "x"
    assert mask("x", tuple(Secret("credential", token) for token in tokens)) == "****"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("run_name", "ghp_" + "a1" * 18, "GitHub Token"),
        ("run_name", "github_pat_" + "a1" * 20, "GitHub Token"),
        ("HF_TOKEN", "hf_" + "a1" * 17, "Hugging Face Token"),
        ("KEY", "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n", "Private Key"),
        ("KEY", '{"private_key": "-----BEGIN ENCRYPTED PRIVATE KEY-----\\nMII"}', "Private Key"),
        ("KEY", "AIza" + "a1-_x" * 7, "Google API Key"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS Access Key"),
        ("id", "AKIA" + "A1B2" * 4, "AWS Access Key"),
        ("dataset_path", "https://me:hunter2@host/data", "Basic Auth Credentials"),
        ("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567", "credential for WANDB_API_KEY"),
        ("hf_access_token", "abcdef0123456789", "credential for hf_access_token"),
    ],
)
def test_finds_and_masks(name: str, text: str, kind: str) -> None:
    found = find(name, text)
    assert kind in {secret.kind for secret in found}
    masked = mask(f"{text!r} is wrong", found)
    assert "****" in masked
    for secret in found:
        assert secret.value not in masked or "PRIVATE KEY" in secret.value
    assert "MII" not in masked


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("owner", "pretrain-team"),
        ("tokenizer_path", "assets/tokenizer_llama3.tiktoken"),
        ("HF_OUTPUT_DIRECTORY", "gs://ant-data-prod/ling3-flash-hf"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/var/secrets/google/key-2026.json"),
        ("image", "registry.example.com/a/b@sha256:" + "0123456789abcdef" * 4),
        ("commit", "0123456789abcdef0123456789abcdef01234567"),
        ("reasoning_end_token", "</reasoning>"),
        ("coordinator", "8.8.8.8:1234"),
        ("remat_policy", "save_dot_with_context_except_mlp"),
        ("train_files", "0.66 /models_prod/datasets/web 0.20 /models_prod/datasets/fin_news"),
    ],
)
def test_leaves_ordinary_values_alone(name: str, text: str) -> None:
    assert find(name, text) == ()


def test_nothing_of_a_private_key_is_left() -> None:
    assert mask("the text -----BEGIN PRIVATE KEY-----\\nMIIabc is wrong") == "the text -----BEGIN PRIVATE KEY****"


def test_masks_what_only_a_name_gave_away() -> None:
    assert mask("got 0123456789abcdef", (Secret("credential", "0123456789abcdef"),)) == "got ****"


SECRET = "abcdef0123456789"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f'hf_access_token: "{SECRET}"', 'hf_access_token: "****"'),
        (f"HF_TOKEN={SECRET} x", "HF_TOKEN=**** x"),
        (f"--api-key={SECRET}", "--api-key=****"),
        (f'{{"password": "{SECRET}"}}', '{"password": "****"}'),
        (f'GITHUB_TOKEN_SECRET: "{SECRET}"', f'GITHUB_TOKEN_SECRET: "{SECRET}"'),
        ("hf_access_token: must be text, not a number", "hf_access_token: must be text, not a number"),
        (
            "GOOGLE_CREDENTIALS=/var/secrets/google/key-2026.json",
            "GOOGLE_CREDENTIALS=/var/secrets/google/key-2026.json",
        ),
        (f"tokenizer: {SECRET}", f"tokenizer: {SECRET}"),
    ],
)
def test_masks_what_is_assigned_to_a_secrets_name_in_running_text(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            'leading zero: readers take 0123456 for octal, decimal or text: write 123456, or "0123456" for the text',
            "leading zero: readers take **** for octal, decimal or text: write ****, or **** for the text",
        ),
        ("unknown tag !hunter: only !remove is known", "unknown tag ****: only !remove is known"),
        ("unknown tag hunter: only !remove is known", "unknown tag ****: only !remove is known"),
        ("alias *hunter: write the value itself", "alias ****: write the value itself"),
        ("anchor &hunter: write the value where it is needed", "anchor ****: write the value where it is needed"),
        ('"hun\\"ter" is not it', "**** is not it"),
        ('"hunter: while scanning', "****"),
        ("[hunter, two: while scanning", "****"),
        ('it replaces "x" (model, presets/a-1/model.yml:12)', "it replaces **** (model, presets/a-1/model.yml:12)"),
        ("is not MaxText's: YAML 1.1, 64 bits", "is not MaxText's: YAML 1.1, 64 bits"),
    ],
)
def test_masks_every_value_in_a_message(text: str, masked: str) -> None:
    assert mask_values(text) == masked


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("maxtext.hf_access_token", True),
        ("maxtext.hf_access_token[0][1]", True),
        ("deploy.ENV.HF_TOKEN", True),
        ("maxtext.hf_access_token.key", True),
        ("deploy.GITHUB_TOKEN_SECRET", False),
        ("maxtext.tokenizer_path", False),
        ("", False),
    ],
)
def test_paths_of_secrets(path: str, secret: bool) -> None:
    assert is_secret_path(path) is secret


@pytest.mark.parametrize("part", ["token", "a_token:", '"', "(", " (", "a", "'", "x '", "unknown tag ", "1", "!", "["])
def test_masking_takes_time_in_proportion_to_the_text(part: str) -> None:
    assert took([part * 50_000], mask, mask_values, mask_given) < 2


SUSPICIOUS = f"key={'a' * 24} eyJ AKIA0 ghp_ :_authToken= T3BlbkFJ PRIVATE KEY "
"""With it in front, every detector looks at the text."""
HOSTILE = [
    *("a", "A", "0", "0a", "-", ".", "/", ":", '"', "'", '["', "(", " ", "  =", "\n", "é", "[0]"),
    *("eyJ", "eyJ2", "eyJa.", "eyJa.!", "//", "//a/:_authToken= ", "//a/:_authToken=npm", "sk-", "sk-" + "a" * 20),
    *(
        "BEGIN ",
        "BEGIN A ",
        "gl",
        "gla",
        "glagent-" + "a" * 1016,
        "aws",
        'awspwdpwd""',
        "awskeykeykey''",
        "key ",
        "token=",
    ),
    *("://", "://a:", "://a:b@", "https://hooks.slack.com/services/T", "xoxb-1-", "xoxb-1", "M" + "a" * 25, "AC", "SK"),
    *(
        "SG.",
        "1:",
        "AccountKey=",
        " AKC",
        " AP0",
        "pypi-AgEIcHlwaS5vcmc",
        "ghp_",
        "github_pat_",
        "hf_",
        "AIza",
        "ya29.",
    ),
    *(
        "cl_key=",
        "softlayerkey=",
        "ibm_key=",
        "secret_key=",
        "sq0csp-",
        "rk_live_",
        "0" * 32 + "-us",
        "AKIA",
        "sk_live_",
    ),
]


def took(texts: Iterable[str], *functions: object) -> float:
    started = time.process_time()
    for text in texts:
        for function in functions:
            function(text)  # type: ignore[operator]
    return time.process_time() - started


@pytest.mark.parametrize("part", HOSTILE)
def test_looking_for_credentials_takes_time_in_proportion_to_the_text(part: str) -> None:
    many = part * (50_000 // len(part))
    assert took([many, SUSPICIOUS + many, f"{SUSPICIOUS}cl_key{many}!"], mask, lambda text: find("x_token", text)) < 2


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_every_detector_takes_time_in_proportion_to_the_text(name: str, data: st.DataObject) -> None:
    pattern: re.Pattern[str] = PATTERNS[name]
    found = data.draw(st.from_regex(pattern, fullmatch=True))[:500]
    cut = data.draw(st.integers(0, len(found) - 1))
    parts = [found, found[: cut + 1], found[cut:], found[cut]]
    texts = [start + part * (30_000 // len(part)) for part in parts for start in ("", found[:cut])]
    linear = secrets._linear(pattern)
    assert took(texts, lambda text: secrets.suspicious(text, text), linear.findall) < 2


@pytest.mark.parametrize(
    "many",
    [
        pytest.param("".join(f"ghp_{number:036} " for number in range(5_000)), id="detected"),
        pytest.param("".join(f"token={number:015}a " for number in range(5_000)), id="assigned"),
        pytest.param("".join(f"BEGIN A{number} PRIVATE KEY " for number in range(5_000)), id="private keys"),
    ],
)
def test_masking_many_credentials_takes_time_in_proportion_to_the_text(many: str) -> None:
    assert took([many], mask) < 2
    known = tuple(Secret("credential", f"{number:016}") for number in range(50_000))
    assert took([many[:200]] * 500, lambda text: mask(text, known)) < 2


def test_a_path_takes_time_in_proportion_to_its_length() -> None:
    assert took(["[0]" * 50_000 + "x", "[0" * 50_000, "[" * 100_000, "a.[0]" * 20_000], is_secret_path) < 2


def test_masks_what_was_typed_after_a_secrets_name() -> None:
    assert mask_given("hf-access-token:a b\nc") == "hf-access-token:****"
    assert mask_given("tokenizer=a token") == "tokenizer=a token"
