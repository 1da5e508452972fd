from __future__ import annotations

import re
import time

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
    started = time.process_time()
    for masking in (mask, mask_values, mask_given):
        masking(part * 50_000)
    assert time.process_time() - started < 2


def test_masks_what_was_typed_after_a_secrets_name() -> None:
    assert mask_given("hf-access-token:a b\nc") == "hf-access-token:****"
    assert mask_given("tokenizer=a token") == "tokenizer=a token"
