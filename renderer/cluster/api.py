"""The Kubernetes API as this package uses it: plain objects, a few verbs, retries. Hides the official client.

Authentication, TLS and kubeconfig are the official client's. Its models are passed over: a manifest is sent as it was
reviewed, and unknown fields are the API server's to refuse. Connections that break, throttling and 5xx are tried again
with growing pauses (tries.py). A write may thus take effect twice in a row, so callers read AlreadyExists and Conflict
as "look what is there".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import kubernetes.client
import urllib3
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.utils.quantity import parse_quantity
from urllib3.exceptions import HTTPError

from renderer.cluster import plugin
from renderer.cluster.tries import Tries

FIELD_MANAGER = "renderer"
"""Owner of the fields that this package writes, in managedFields."""

Object = dict[str, Any]

_APPLY = "application/apply-patch+yaml"
_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_MERGE = "application/merge-patch+json"
_OWN = {"fieldManager": FIELD_MANAGER}
_STRICT = {"fieldValidation": "Strict"}
_PAGE = 500
_TIMEOUT = urllib3.Timeout(connect=10, read=40)
_PASSING = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class ApiError(Exception):
    """The API server refused or did not answer. `status` is HTTP's (0: no answer), `reason` Kubernetes' word for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message or f"the API server answered {status} {reason}".rstrip())
        self.status, self.reason, self.message = status, reason, message

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later: the infrastructure failed, not the request."""
        return self.status in _PASSING or not HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR


class NoClusterError(Exception):
    """There is no usable kubeconfig; the text says why."""


def core(namespace: str, kind: str, name: str = "") -> str:
    """Return the path of core/v1 objects, such as pods, in a namespace."""
    return f"/api/v1/namespaces/{namespace}/{kind}/{name}".rstrip("/")


def jobsets(namespace: str, name: str = "") -> str:
    """Return the path of JobSets in a namespace."""
    return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets/{name}".rstrip("/")


def deployments(namespace: str, name: str = "") -> str:
    """Return the path of Deployments in a namespace."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}".rstrip("/")


def whole(quantity: str | int) -> int:
    """Return a quantity as a whole number: the API server writes 2000 as 2k."""
    return int(parse_quantity(quantity))  # type: ignore[no-untyped-call]


class Api:
    """A cluster's API server. Safe for several threads. Every call raises ApiError."""

    def __init__(self, configuration: kubernetes.client.Configuration, tries: Tries) -> None:
        self._configuration = configuration
        self._tries = tries
        self._client = RESTClientObject(configuration)

    def get(self, path: str, **query: str) -> Object | None:
        """Return an object, nothing if it is not there."""
        try:
            return self.call("GET", path, query)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def items(self, path: str, *, only_metadata: bool = False, **query: str) -> Iterator[Object]:
        """Yield the objects of a list, page by page; `only_metadata` keeps the rest, such as secrets, off the wire."""
        accept = _METADATA if only_metadata else _JSON
        token = ""
        while True:
            asked = {**query, "limit": str(_PAGE), **({"continue": token} if token else {})}
            page = self.call("GET", path, asked, accept=accept)
            if "items" not in page:
                raise ApiError(0, "", f"the answer is no list: is {path} served here?")
            yield from page["items"] or ()  # an empty list of metadata only is null
            token = (page.get("metadata") or {}).get("continue", "")
            if not token:
                return

    def create(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Create an object; unknown and duplicate fields are refused. AlreadyExists is an ApiError of status 409."""
        return self.call("POST", path, {**_OWN, **_STRICT, **_dry(dry_run)}, body)

    def apply(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Apply an object server-side; fields that others own are a conflict (409)."""
        return self.call("PATCH", path, {**_OWN, **_STRICT, **_dry(dry_run)}, body, _APPLY)

    def replace(self, path: str, body: Mapping[str, Any]) -> Object:
        """Write an object over the version that its metadata.resourceVersion names; 409 if it has changed since."""
        return self.call("PUT", path, _OWN, body)

    def merge(self, path: str, body: Mapping[str, Any]) -> Object:
        """Change some fields; with metadata.uid or metadata.resourceVersion in `body`, 409 unless they are as given."""
        return self.call("PATCH", path, _OWN, body, _MERGE)

    def delete(self, path: str, *, uid: str = "", version: str = "", propagation: str = "Background") -> bool:
        """Delete an object, only if it has this uid and this resourceVersion, where given. Return whether it did."""
        options: Object = {"propagationPolicy": propagation}
        given = {"uid": uid, "resourceVersion": version}
        if conditions := {key: value for key, value in given.items() if value}:
            options["preconditions"] = conditions
        try:
            self.call("DELETE", path, {}, options)
        except ApiError as error:
            if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                return False
            raise
        return True

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Object:
        """Send one request and return the parsed answer."""
        data = None if body is None else json.dumps(body)
        response = self._send(method, path, data, content_type, query, accept=accept, preload_content=True)
        return _object(response.data) if response.data else {}

    def lines(self, path: str, *, seconds: float, **query: str) -> Iterator[bytes]:
        """Yield an answer line by line as it comes, a log or a watch; ApiError after `seconds` without any.

        Every line keeps its line break: without one, the answer may have been cut. Nothing is tried again.
        """
        timeout = urllib3.Timeout(connect=10, read=seconds)
        response = self._send("GET", path, None, _JSON, query, preload_content=False, timeout=timeout, retries=False)
        rest = b""
        try:
            for chunk in response.stream(1 << 16, decode_content=True):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line + b"\n" for line in whole)
        except HTTPError as error:
            raise ApiError(0, "", _plain(error)) from error
        finally:
            response.close()  # what was not read must not be the next answer's beginning
        if rest:
            yield rest

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _send(
        self,
        method: str,
        path: str,
        data: str | None,
        content_type: str,
        query: Mapping[str, str],
        *,
        accept: str = _JSON,
        preload_content: bool,
        timeout: urllib3.Timeout = _TIMEOUT,
        retries: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": accept, **self._authorization()}
        if data is not None:
            headers["Content-Type"] = content_type
        try:
            response: urllib3.BaseHTTPResponse = self._client.pool_manager.request(
                method,
                url,
                body=data,
                headers=headers,
                timeout=timeout,
                preload_content=preload_content,
                retries=self._tries.begun() if retries else False,
            )
        except HTTPError as error:
            raise ApiError(0, "", _plain(error)) from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _refusal(response)
        return response

    def _authorization(self) -> dict[str, str]:
        try:
            settings = self._configuration.auth_settings().get("BearerToken")
        except plugin.PluginError as error:
            raise ApiError(HTTPStatus.UNAUTHORIZED, "Unauthorized", str(error)) from error
        value = str(settings["value"] or "").strip() if settings else ""  # a file with a token may end its line
        if not (value.isascii() and (value.isprintable() or not value)):
            text = "the kubeconfig's token holds characters that no token has"
            raise ApiError(HTTPStatus.UNAUTHORIZED, "Unauthorized", text)
        return {"Authorization": value} if value else {}


def connect(retries: int = 8) -> Api:
    """Return the cluster of the kubeconfig's current context, found as kubectl finds it. Raises NoClusterError."""
    configuration = kubernetes.client.Configuration()
    configuration.connection_pool_maxsize = 32
    try:
        plugin.load(configuration)
    except plugin.PluginError as error:
        raise NoClusterError(str(error)) from error
    except (ConfigException, OSError) as error:
        raise NoClusterError(f"no usable kubeconfig: {error}") from error
    except Exception as error:  # whatever the client makes of a damaged file; its text may hold what the file holds
        raise NoClusterError(f"no usable kubeconfig: it is damaged ({type(error).__name__})") from error
    return Api(configuration, Tries.most(retries))


def caller(api: Api) -> str:
    """Return the name under which the API server knows us. Raises ApiError."""
    version = "authentication.k8s.io/v1"
    review = {"apiVersion": version, "kind": "SelfSubjectReview"}
    found = api.call("POST", f"/apis/{version}/selfsubjectreviews", {}, review)
    return str(found["status"]["userInfo"]["username"])


def identity(api: Api) -> str:
    """Return what tells a cluster from others, the UID of kube-system; empty if it has none. Raises ApiError."""
    found = api.get("/api/v1/namespaces/kube-system")
    return str(found["metadata"]["uid"]) if found else ""


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _object(data: bytes) -> Object:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise ApiError(0, "", "the answer is not JSON: is this an API server?") from error
    if not isinstance(found, dict):
        raise ApiError(0, "", "the API server's answer is no object")
    return found


def _refusal(response: urllib3.BaseHTTPResponse) -> ApiError:
    data = response.data
    try:
        status = json.loads(data)
        return ApiError(response.status, str(status.get("reason", "")), str(status.get("message", "")))
    except (ValueError, AttributeError):
        text = data[:500].decode("utf-8", "replace").strip()
        return ApiError(response.status, response.reason or "", text or f"HTTP {response.status}")


def _plain(error: HTTPError) -> str:
    reason = getattr(error, "reason", None) or error
    if reason.args and isinstance(reason.args[-1], Exception):  # its own text would show the other as Python writes it
        reason = reason.args[-1]
    return f"no answer from the API server: {str(reason).rpartition(': ')[2] or type(error).__name__}"
