"""A kubeconfig's credential plugin: what it gives is used, and what it says instead is told in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import kubernetes.client
import pytest
from content import run

from renderer.cluster import plugin
from renderer.cluster.api import ApiError, NoClusterError, connect
from tests.cluster.api import wait_for
from tests.cluster_unit.answers import answering

VERSION = "client.authentication.k8s.io/v1beta1"
Install = Callable[..., Path]


def credential(**status: Any) -> str:
    return json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Write a plugin from lines of sh, and a kubeconfig that names it; return the plugin."""

    def write(script: str | None, server: str = "http://127.0.0.1:9", **more: Any) -> Path:
        path = tmp_path / "plugin"
        if script is not None:
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        config = {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"exec": {"apiVersion": VERSION, "command": "./plugin", **more}}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        return path

    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return write


def refused() -> str:
    with pytest.raises(NoClusterError) as caught:
        connect()
    return str(caught.value)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (
            "printf 'ERROR: no valid account.\\nPlease run:\\n\\n  $ gcloud auth login\\n' >&2; exit 1",
            "failed (exit 1): ERROR: no valid account. Please run: $ gcloud auth login",
        ),
        ("exit 3", "failed (exit 3): it said nothing, run it by hand"),
        (
            "printf '\\033[31mred\\033]0;title\\007 token=abcdef0123456789 \\342\\200\\256x\\n' >&2; exit 1",
            r"failed (exit 1): \x1b[31mred\x1b]0;title\x07 token=**** \u202ex",
        ),
        ("echo hello", "gave no credential: its answer is no JSON: it said nothing, run it by hand"),
        ("echo old >&2; echo '[]'", "gave no credential: its answer is no ExecCredential: old"),
        (f"echo '{credential()}'", "gave no credential: its answer has no clientCertificateData: "),
        (f"echo '{credential(token='')}'", "gave no credential: its answer has no token: "),
        (
            f"printf '%s' '{credential(token='a' + chr(10) + 'b: c')}'",
            "gave no credential: its answer has a token that is not printable ASCII: ",
        ),
        (
            f"echo '{credential(token='a', expirationTimestamp='soon')}'",
            "gave no credential: its answer has an expirationTimestamp that is no time: ",
        ),
        (
            f"echo '{credential(token='a').replace('v1beta1', 'v1')}'",
            f"gave no credential: its answer is not of the version {VERSION}, which the kubeconfig asks for: ",
        ),
        ("head -c 200000 /dev/zero | tr '\\0' '['", "gave no credential: its answer is no JSON: "),
    ],
)
def test_what_went_wrong_is_said_in_one_line(script: str, text: str, install: Install) -> None:
    install(script)
    expected = f"the credential plugin ./plugin {text}"
    assert refused() == expected + ("it said nothing, run it by hand" if text.endswith(": ") else "")


def test_a_missing_plugin_is_told_with_its_kubeconfig_s_advice(install: Install) -> None:
    install(None)
    assert refused() == "the credential plugin ./plugin is not installed: install it"
    install(None, installHint="See\n\x1b[1mhttps://example.com")
    assert refused() == r"the credential plugin ./plugin is not installed: See \x1b[1mhttps://example.com"


def test_a_plugin_that_may_not_run(install: Install) -> None:
    install("exit 0").chmod(0o600)
    assert refused() == "the credential plugin ./plugin cannot be run: Permission denied"


def test_of_many_words_the_end_is_shown(install: Install) -> None:
    install(f"yes word | head -n 100000 >&2; echo ghp_{'a1' * 18} last words >&2; exit 1")
    said = f"{'word ' * 1_000}**** last words"
    assert refused() == f"the credential plugin ./plugin failed (exit 1): ...{said[-1_000:]}"


def test_a_plugin_that_hangs_is_ended_with_what_it_started(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plugin, "SECONDS", 0.5)
    install("echo 'Open https://example.com and enter ABC' >&2; sleep 60 & echo $! > pid; wait")
    started = time.monotonic()
    assert refused() == (
        "the credential plugin ./plugin did not answer within 0.5 s, it may wait for you: "
        "Open https://example.com and enter ABC"
    )
    assert time.monotonic() - started < 10
    wait_for("its end", lambda: not alive(int((tmp_path / "pid").read_text())), seconds=10)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_command_line_says_it_and_ends(install: Install, tmp_path: Path) -> None:
    install("echo 'Please run: gcloud auth login' >&2; exit 1")
    (tmp_path / "presets").mkdir()
    assert tuple(run(tmp_path, "status")) == (
        1,
        "",
        "kubeconfig: the credential plugin ./plugin failed (exit 1): Please run: gcloud auth login\n"
        "    set KUBECONFIG, or get the cluster's credentials\n",
    )


def test_nothing_of_a_plugin_reaches_the_terminal(install: Install, tmp_path: Path) -> None:
    """Not even where the output is a terminal, which the client takes for leave to pass it on."""
    install("printf '\\033[31mraw\\n' >&2; printf '\\033[31mraw\\n' > /dev/tty; exit 1")
    (tmp_path / "presets").mkdir()
    master, slave = os.openpty()
    command = [sys.executable, "-m", "renderer", "--root", str(tmp_path), "status"]
    started = subprocess.run(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    shown = os.read(master, 10_000).decode()
    os.close(master)
    assert started.returncode == 1
    assert "\x1b" not in shown
    assert r"failed (exit 1): " in shown


def test_a_token_is_sent_and_a_warning_is_not_shown(install: Install, capfd: pytest.CaptureFixture[str]) -> None:
    with answering() as server:
        install(f"echo old >&2; echo '{credential(token='abc')}'", server.address)
        with closing(connect()) as api:
            assert api.call("GET", "/x", {}) == {}
    assert server.authorizations == ["Bearer abc"]
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_plugin_is_told_what_the_client_tells_it(install: Install, tmp_path: Path) -> None:
    script = f"printf %s \"$KUBERNETES_EXEC_INFO\" > info; echo $A $1 > words; echo '{credential(token='abc')}'"
    install(script, args=["one"], env=[{"name": "A", "value": "two"}], provideClusterInfo=True)
    connect().close()
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "http://127.0.0.1:9"}},
    }
    assert (tmp_path / "words").read_text() == "two one\n"


def test_a_client_certificate_is_used(install: Install) -> None:
    install(f"echo '{credential(clientCertificateData='one', clientKeyData='two')}'", "https://127.0.0.1:9")
    configuration = kubernetes.client.Configuration()
    plugin.load(configuration)
    assert Path(str(configuration.cert_file)).read_text() == "one"
    assert Path(str(configuration.key_file)).read_text() == "two"


def expiring(minutes: float) -> str:
    return credential(token="abc", expirationTimestamp=(datetime.now(UTC) + timedelta(minutes=minutes)).isoformat())


def test_an_expired_token_that_cannot_be_renewed_is_an_answer_that_may_pass(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "_PAUSE", 0)
    with answering() as server:
        install(f"[ -e once ] && echo 'log in again' >&2 && exit 1; touch once; echo '{expiring(-1)}'", server.address)
        with closing(connect()) as api, pytest.raises(ApiError) as caught:
            api.call("GET", "/x", {})
    assert str(caught.value) == "the credential plugin ./plugin failed (exit 1): log in again"
    assert (caught.value.status, caught.value.passing) == (HTTPStatus.UNAUTHORIZED, True)
    assert server.authorizations == []


def test_a_token_is_used_until_it_has_expired(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_PAUSE", 0)
    with answering() as server:
        install(f"[ -e once ] && exit 1; touch once; echo '{expiring(2)}'", server.address)
        with closing(connect()) as api:
            api.call("GET", "/x", {})
    assert server.authorizations == ["Bearer abc"]


def test_many_calls_ask_a_plugin_once(install: Install, tmp_path: Path) -> None:
    with answering() as server:
        install(f"echo x >> asked; echo '{expiring(-1)}'", server.address)
        with closing(connect()) as api:
            for _ in range(5):
                api.call("GET", "/x", {})
    assert (tmp_path / "asked").read_text() == "x\n"


@pytest.mark.parametrize(
    ("token", "sent"), [("abc\n", ["Bearer abc"]), ("", []), ("a\nb", None), ("é", None), ("\x1b", None)]
)
def test_a_token_of_the_kubeconfig_is_sent_as_kubectl_sends_it(
    token: str, sent: list[str] | None, install: Install, tmp_path: Path
) -> None:
    with answering() as server:
        install(None, server.address)
        config = json.loads((tmp_path / "kubeconfig").read_text())
        config["users"][0]["user"] = {"token": token}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        with closing(connect()) as api:
            if sent is None:
                with pytest.raises(ApiError, match=r"^the kubeconfig's token holds characters that no token has$"):
                    api.call("GET", "/x", {})
            else:
                api.call("GET", "/x", {})
                assert [found for found in server.authorizations if found] == sent
