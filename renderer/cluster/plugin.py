"""Reads a kubeconfig as the official client does, but runs its credential plugin, such as gke-gcloud-auth-plugin, here.

The client prints what a plugin says as it is, goes on without credentials where it fails, and waits for it for ever.
Here what it says is part of the error, cleaned; it has a time to answer in; and nobody can answer what it asks.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import FileOrData, KubeConfigLoader, KubeConfigMerger

from renderer.problem import visible
from renderer.secrets import mask

SECONDS = 60
"""How long a plugin may take: gcloud starts slowly, and asks its own server."""
_PAUSE = 30
"""Seconds in which a plugin is asked once, though many calls find that their token has expired."""
_WORDS = 1_000
"""Of what a plugin said, the end is shown: there it says why it gave up."""

_NOTHING = "it said nothing, run it by hand"


class PluginError(Exception):
    """The plugin gave no credential; the text says which plugin, why and what to do."""


def load(configuration: Configuration) -> None:
    """Set up a client for the kubeconfig's current context.

    Raises PluginError and ConfigException, and whatever the client makes of a damaged file.
    """
    files = KubeConfigMerger(os.environ.get("KUBECONFIG", "~/.kube/config"))  # type: ignore[no-untyped-call]
    if files.config is None:
        raise ConfigException("Invalid kube-config file. No configuration found.")
    loader = _Loader(config_dict=files.config, config_base_path=None, config_persister=files.save_changes)
    loader.load_and_set(configuration)  # type: ignore[no-untyped-call]


class _Loader(KubeConfigLoader):
    """The client's loader: it loads credentials at first, and again whenever a call finds that they have expired."""

    def __init__(self, **given: Any) -> None:
        self._lock = threading.Lock()
        self._next = -math.inf
        self._failure = ""
        super().__init__(**given)  # type: ignore[no-untyped-call]

    def _load_from_exec_plugin(self) -> bool | None:
        if not self._user or "exec" not in self._user:
            return None
        with self._lock:
            if time.monotonic() >= self._next:
                self._failure = self._ask(self._user["exec"], self._cluster)
                self._next = time.monotonic() + _PAUSE
            if self._failure and not self._still_valid():
                raise PluginError(self._failure)
        return True

    def _still_valid(self) -> bool:
        """Return whether an earlier token can still be used: a new one is asked for minutes before that."""
        expiry: datetime | None = getattr(self, "expiry", None)
        return expiry is not None and expiry > datetime.now(UTC)

    def _ask(self, configured: Any, cluster: Any) -> str:
        """Run the plugin and keep its credential. Return what went wrong, nothing if nothing did."""
        base: str = self._get_base_path(cluster.path)  # type: ignore[no-untyped-call]
        plugin = ExecProvider(configured, base, cluster)  # type: ignore[no-untyped-call]
        name = f"the credential plugin {_clean(str(plugin.args[0]))}"
        try:
            answer, words = _run(plugin)
        except FileNotFoundError:
            hint = _clean(str(configured.safe_get("installHint") or "install it"))
            return f"{name} is not installed: {hint}"
        except OSError as error:
            return f"{name} cannot be run: {error.strerror}"
        except subprocess.TimeoutExpired as error:
            return f"{name} did not answer within {SECONDS} s, it may wait for you: {_said(error.stderr, _NOTHING)}"
        except subprocess.CalledProcessError as error:
            return f"{name} failed (exit {error.returncode}): {_said(error.stderr, _NOTHING)}"
        try:
            self._keep(_status(answer, plugin.api_version), base)
        except ValueError as error:
            return f"{name} gave no credential: its answer {error}: {_said(words, _NOTHING)}"
        return ""

    def _keep(self, status: dict[str, Any], base: str) -> None:
        """Keep a token or a client certificate where the client's own code looks for it."""
        if "token" in status:
            self.token = f"Bearer {_text(status, 'token')}"
        else:
            self.cert_file = self._file(status, "clientCertificateData", base)
            self.key_file = self._file(status, "clientKeyData", base)
        if "expirationTimestamp" in status:
            expiry = _time(_text(status, "expirationTimestamp"))
            if expiry.year > 1:  # Go's zero time: none
                self.expiry = expiry

    def _file(self, status: dict[str, Any], key: str, base: str) -> str:
        _text(status, key, printable=False)
        data = FileOrData(  # type: ignore[no-untyped-call]
            status, None, key, base, base64_file_content=False, temp_file_path=self._temp_file_path
        )
        return str(data.as_file())  # type: ignore[no-untyped-call]


def _run(plugin: ExecProvider) -> tuple[bytes, bytes]:
    """Return what a plugin writes to stdout and stderr. Raises CalledProcessError; TimeoutExpired, having ended it."""
    environment = {**plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(_request(plugin))}
    with subprocess.Popen(  # noqa: S603  the command that the person's own kubeconfig names
        plugin.args,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=plugin.cwd,
        env=environment,
        start_new_session=True,  # what it starts ends with it, and has no terminal to write to
    ) as process:
        try:
            answer, words = process.communicate(timeout=SECONDS)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, plugin.args, answer, words)
    return answer, words


def _request(plugin: ExecProvider) -> dict[str, Any]:
    """Return what a plugin is told (client.authentication.k8s.io): to ask nothing, and the cluster if it wants that."""
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster:
        cluster = dict(plugin.cluster.value)
        for extension in cluster.get("extensions") or ():
            if extension["name"] == "client.authentication.k8s.io/exec":
                cluster["config"] = extension["extension"]
        spec["cluster"] = cluster
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}


def _status(answer: bytes, version: str) -> dict[str, Any]:
    """Return the credential in a plugin's answer. Raises ValueError, with no value in its text."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not isinstance(found, dict) or found.get("kind") != "ExecCredential":
        raise ValueError("is no ExecCredential")
    if found.get("apiVersion") != version:
        raise ValueError(f"is not of the version {version}, which the kubeconfig asks for")
    status = found.get("status")
    if not isinstance(status, dict):
        raise ValueError("has no status")
    return status


def _text(status: dict[str, Any], key: str, *, printable: bool = True) -> str:
    """Return a text of a credential. Raises ValueError for what is none, or is to be sent and cannot be."""
    text = status.get(key)
    if not isinstance(text, str) or not text:
        raise ValueError(f"has no {key}")
    if printable and not (text.isascii() and text.isprintable()):
        raise ValueError(f"has a {key} that is not printable ASCII")
    return text


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("has an expirationTimestamp that is no time") from None


def _said(words: bytes | None, otherwise: str) -> str:
    return _clean((words or b"").decode("utf-8", "replace")) or otherwise


def _clean(text: str) -> str:
    """Return what others wrote as one line that may be shown, of a long one the end."""
    text = visible(mask(" ".join(text.split())))  # before it is cut: half a credential is not found
    return text if len(text) <= _WORDS else f"...{text[-_WORDS:]}"
