"""Reads and follows the log of one pod of a run, over restarts and lost connections, every line once."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import groupby

from renderer.cluster.api import Api, ApiError, Object, core, jobsets
from renderer.cluster.conditions import ended
from renderer.cluster.labels import CONTAINER, INDEX_LABEL, JOBSET_LABEL
from renderer.cluster.observe import newest_pod

_MARGIN = 1
"""Seconds before the last line that are asked for again: two streams are written, so lines may be out of order."""
_NO_LOG_NOW = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND})
"""The answers for a container that did not start yet, and for a pod that is gone."""
_CHOICE = "--index can be"
_TRIES = 5
"""How often a log that will not grow is asked for where its node does not answer."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log, without its line break."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader should know besides the log."""

    text: str


@dataclass(frozen=True, slots=True)
class End:
    """There is nothing more to read. `failed`: the JobSet has failed."""

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Whose log: a JobSet by name and uid, and the completion index of the pod."""

    namespace: str
    name: str
    uid: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds.

    `poll` lie between two looks at a run with nothing to read, `quiet` before a silent log is asked for again, at most
    `longest` between two tries to reach what does not answer.
    """

    poll: float = 2
    quiet: float = 60
    longest: float = 15


def read(api: Api, target: Target) -> Iterator[Line | End]:
    """Yield the log of the newest pod as it is now. Raises ApiError, also where there is a pod but no log yet."""
    pod = _pod(api, target)
    if pod is None:
        yield End(f"{target.name} has no pod with index {target.index}; {_there(api, target)}")
        return
    log = _Log(api, pod)
    for left in reversed(range(_TRIES)):
        try:
            yield from log.lines(grows=False, seconds=60)
        except ApiError as error:
            if not error.passing or not left:
                raise
        if log.complete:
            return


def follow(api: Api, target: Target, patience: Patience | None = None) -> Iterator[Line | Note | End]:
    """Yield the log as it grows, pod after pod, until the run has ended; tries again for as long as it takes.

    Raises ApiError for what will not change by itself, such as a missing permission.
    """
    return _Follower(api, target, patience or Patience()).events()


class _Follower:
    """Where a reader is: the log of which pod, what was said last, and how often in a row nothing could be read."""

    def __init__(self, api: Api, target: Target, wait: Patience) -> None:
        self._api, self._target, self._wait = api, target, wait
        self._log: _Log | None = None
        self._told = ""
        self._failures = 0

    def events(self) -> Iterator[Line | Note | End]:
        while True:
            start, before = time.monotonic(), self._read
            end: End | None = None
            try:
                pod, end = _pod(self._api, self._target), _end(self._api, self._target)
                yield from self._enter(pod)
                if pod and self._log and not self._log.complete:
                    yield from self._log.lines(grows=not _ended(pod), seconds=self._wait.quiet)
                    end, trouble, self._failures = None, "", 0
                else:
                    trouble = self._waiting(pod)
            except ApiError as error:
                silent = self._read > before or time.monotonic() - start >= self._wait.quiet
                end, trouble = self._failed(error, end, silent=silent)
            if end:
                yield end
                return
            yield from self._tell(trouble)
            if self._read == before:
                time.sleep(min(self._wait.longest, self._wait.poll * 2 ** min(self._failures, 8)))

    @property
    def _read(self) -> int:
        return self._log.count if self._log else 0

    def _enter(self, pod: Object | None) -> Iterator[Note]:
        """Turn to a pod that is not the one whose log was read."""
        if pod is None or (self._log and self._log.uid == pod["metadata"]["uid"]):
            return
        if self._log and not self._log.whole:
            yield Note(f"the end of the log of {self._log.name} may be missing: it was removed meanwhile")
        self._log = _Log(self._api, pod)
        yield Note(f"log of {self._log.name}")

    def _waiting(self, pod: Object | None) -> str:
        index, name = self._target.index, self._target.name
        if pod:
            return f"pod {index} of {name} has ended; waiting for the run"
        waiting = f"waiting for pod {index} of {name}; "
        told = self._told.startswith(f"{waiting}{_CHOICE}")  # once: while pods start, every look finds others
        return self._told if told else waiting + _there(self._api, self._target)

    def _failed(self, error: ApiError, end: End | None, *, silent: bool) -> tuple[End | None, str]:
        """Return the end, if it is one, and what is wrong. `silent`: the connection was there and told nothing more."""
        if error.status in _NO_LOG_NOW:
            return end, error.message
        if not error.passing:
            raise error
        if error.status == 0 and silent:
            return None, ""
        self._failures += 1
        return (end if self._failures > _TRIES else None), f"{error.message}; trying again"

    def _tell(self, trouble: str) -> Iterator[Note]:
        if trouble and trouble != self._told:
            yield Note(trouble)
        self._told = trouble


class _Log:
    """The log of one pod. `whole`: as far as can be known, nothing of it was missed when it was last read.

    `complete`: all of it was read after its container had ended.
    """

    def __init__(self, api: Api, pod: Object) -> None:
        metadata = pod["metadata"]
        self._api = api
        self._path = f"{core(metadata['namespace'], 'pods', metadata['name'])}/log"
        self._seen = _Seen()
        self._cut = b""
        self.name, self.uid = str(metadata["name"]), str(metadata["uid"])
        self.count = 0
        self.whole = True
        self.complete = False

    def lines(self, *, grows: bool, seconds: float) -> Iterator[Line]:
        """Ask once for what was not seen yet; a last line that may have been cut is kept until it is certain."""
        query = {"container": CONTAINER, "timestamps": "true", "follow": str(grows).lower(), **self._seen.since()}
        before, self._cut, self.whole = self._cut, b"", False
        for raw in self._api.lines(self._path, seconds=seconds, **query):
            if not raw.endswith(b"\n"):
                self._cut = raw
            elif self._seen.fresh(raw):
                self.count += 1
                yield Line(_text(raw))
        self.whole = not self._cut
        if not grows and self._cut in {b"", before}:  # twice the same: the container ended without a line break
            self.complete = self.whole = True
            if self._cut and self._seen.fresh(self._cut):
                yield Line(_text(self._cut))


class _Seen:
    """Which lines came already: a log can only be asked for again from a whole second on."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, bytes]] = deque()
        self._again: Counter[bytes] = Counter()
        self._last: int | None = None

    def since(self) -> dict[str, str]:
        """Return what to ask for next, and expect the lines again that this brings back."""
        self._again = Counter(line for _, line in self._recent)
        if self._last is None:
            return {}
        return {"sinceTime": datetime.fromtimestamp(self._last - _MARGIN, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}

    def fresh(self, line: bytes) -> bool:
        """Return whether a line is new, and remember it."""
        if self._again[line] > 0:
            self._again[line] -= 1
            return False
        second = _second(line)
        if second is not None:
            self._last = second
            self._recent.append((second, line))
            while self._recent[0][0] < second - _MARGIN:
                self._recent.popleft()
        return True


def _second(line: bytes) -> int | None:
    """Return the second of a line's timestamp; nothing for a line without, such as a kubelet's own words."""
    try:
        return int(datetime.fromisoformat(line.split(b" ", 1)[0].decode()).timestamp())
    except ValueError:
        return None


def _text(line: bytes) -> str:
    text = line if _second(line) is None else line.split(b" ", 1)[-1]
    return text.decode("utf-8", "replace").removesuffix("\n")


def _pod(api: Api, target: Target) -> Object | None:
    selector = f"{JOBSET_LABEL}={target.name},{INDEX_LABEL}={target.index}"
    return newest_pod(api.items(core(target.namespace, "pods"), labelSelector=selector), target.index)


def _there(api: Api, target: Target) -> str:
    """Say which indexes have pods."""
    selector = f"{JOBSET_LABEL}={target.name}"
    pods = api.items(core(target.namespace, "pods"), only_metadata=True, labelSelector=selector)
    texts = {str((pod["metadata"].get("labels") or {}).get(INDEX_LABEL, "")) for pod in pods}
    numbers = sorted(int(text) for text in texts if text.isdecimal())
    return f"{_CHOICE} {spans(numbers)} now" if numbers else "it has no pods now"


def spans(numbers: Iterable[int]) -> str:
    """Return ascending numbers in short: 0-3, 7."""
    found = []
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        span = [number for _, number in group]
        found.append(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}")
    return ", ".join(found)


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def _end(api: Api, target: Target) -> End | None:
    """Return how the run ended, nothing while it lives."""
    jobset = api.get(jobsets(target.namespace, target.name))
    if jobset is None or jobset["metadata"]["uid"] != target.uid:
        return End(f"{target.name} was stopped or removed")
    how = ended(jobset)
    if how and how["type"] == "Failed":
        return End(f"{target.name} has failed: {how.get('message', '')}", failed=True)
    return End(f"{target.name} has finished") if how else None
