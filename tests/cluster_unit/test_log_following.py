"""Following a log over broken connections: every line once, none cut, none lost."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from renderer.cluster import logs
from renderer.cluster.api import ApiError, connect
from renderer.cluster.logs import End, Line, Note, Patience, Target, follow, read, spans
from tests.cluster_unit.log_server import BROKEN, OPEN, Recorded, serving
from tests.cluster_unit.seen import pod

PATIENCE = Patience(poll=0.01, quiet=0.3, longest=0.02)
TARGET = Target("ns", "run", "u")
POD = pod()
FINISHED = End("run has finished")


def line(text: str, second: float = 0) -> str:
    return f"2026-11-29T10:00:{second:012.9f}Z {text}\n"


def followed(recorded: Recorded, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Line | Note | End]:
    with serving(recorded, folder) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        api = connect(retries=0)
        events = list(follow(api, TARGET, PATIENCE))
        api.close()
    return [event for event in events if not (isinstance(event, Note) and event.text.startswith("log of "))]


def lines(*texts: str) -> list[Line]:
    return list(map(Line, texts))


def test_a_lost_connection_repeats_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = line("one"), line("two", 5.2), line("three", 5.3)
    recorded = Recorded([[one, two, BROKEN], [two, three], [two, three]], POD)
    assert followed(recorded, tmp_path, monkeypatch) == [*lines("one", "two", "three"), FINISHED]
    assert [asked.get("sinceTime") for asked in recorded.asked] == [
        None,
        "2026-11-29T10:00:04Z",
        "2026-11-29T10:00:04Z",
    ]
    assert {asked["timestamps"] for asked in recorded.asked} == {"true"}
    assert [asked["follow"] for asked in recorded.asked] == ["true", "true", "false"]


def test_equal_lines_of_one_moment_all_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = line("same", 5)
    recorded = Recorded([[same, same, BROKEN], [same, same, same], [same, same, same]], POD)
    assert followed(recorded, tmp_path, monkeypatch) == [*lines("same", "same", "same"), FINISHED]


def test_streams_that_are_out_of_order_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late, early = line("out", 5.3), line("err", 4.9)
    recorded = Recorded([[late, BROKEN], [late, early], [late, early]], POD)
    assert followed(recorded, tmp_path, monkeypatch) == [*lines("out", "err"), FINISHED]


@pytest.mark.parametrize("ending", [[BROKEN], []], ids=["broken", "clean"])
def test_a_line_that_was_cut_is_printed_once_and_whole(
    ending: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = line("one"), line("completed step: 12, loss: 1.5", 1)
    recorded = Recorded([[one, two[:40], *ending], [one, two], [one, two]], POD)
    expected = [*lines("one", "completed step: 12, loss: 1.5"), FINISHED]
    assert followed(recorded, tmp_path, monkeypatch) == expected


def test_a_last_line_without_a_break_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, last = line("one"), line("killed", 1).rstrip("\n")
    recorded = Recorded([[one], [one, last], [one, last]], POD)
    recorded.phase = "Failed"
    recorded.condition = "Failed"
    events = followed(recorded, tmp_path, monkeypatch)
    assert events == [*lines("one", "killed"), End("run has failed: why", failed=True)]


def test_a_silent_log_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = line("one"), line("two", 1)
    recorded = Recorded([[one, OPEN], [one, two], [one, two]], POD)
    assert followed(recorded, tmp_path, monkeypatch) == [*lines("one", "two"), FINISHED]


def test_what_does_not_answer_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded([(500, "node is gone"), (400, "waits to start"), [line("one")], [line("one")]], POD, failing=3)
    assert followed(recorded, tmp_path, monkeypatch) == [
        Note("etcdserver: leader changed; trying again"),
        Note("node is gone; trying again"),
        Note("waits to start"),
        Line("one"),
        FINISHED,
    ]


def test_what_is_forbidden_ends_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ApiError, match="may not"):
        followed(Recorded([(403, "you may not")], POD), tmp_path, monkeypatch)


def test_a_line_without_a_time_is_printed_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded([["failed to watch the file\n"], []], POD)
    assert followed(recorded, tmp_path, monkeypatch) == [*lines("failed to watch the file"), FINISHED]


def test_reading_goes_on_where_it_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = line("one"), line("two", 1)
    recorded = Recorded([[one, BROKEN], [one, two]], POD)
    with serving(recorded, tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        api = connect(retries=0)
        assert list(read(api, TARGET)) == lines("one", "two")
        api.close()


NO_SUCH = Target("ns", "run", "u", index=7)


@pytest.mark.parametrize(("index", "there"), [(3, "--index can be 3 now"), (None, "it has no pods now")])
def test_a_reader_of_no_pod_is_told_which_there_are(
    index: int | None, there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pod(index=index or 0)
    if index is None:
        found["metadata"]["labels"] = {"batch.kubernetes.io/job-completion-index": "none"}
    with serving(Recorded([[line("one")]], found), tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        api = connect(retries=0)
        assert list(read(api, NO_SUCH)) == [End(f"run has no pod with index 7; {there}")]
        assert next(follow(api, NO_SUCH, PATIENCE)) == Note(f"waiting for pod 7 of run; {there}")
        api.close()


def test_a_waiting_reader_is_told_once_of_the_pods_and_when_the_first_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = ["it has no pods now", "it has no pods now", "--index can be 0-3 now", "--index can be 0-17 now"]
    monkeypatch.setattr(logs, "_there", lambda *_: looks.pop(0))
    recorded = Recorded([[line("one")]], pod())
    pauses = iter(range(6))
    monkeypatch.setattr(logs.time, "sleep", lambda _seconds: next(pauses, None) is None and recorded.logs.clear())
    with serving(recorded, tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        api = connect(retries=0)
        assert list(follow(api, NO_SUCH, PATIENCE)) == [
            Note("waiting for pod 7 of run; it has no pods now"),
            Note("waiting for pod 7 of run; --index can be 0-3 now"),
            FINISHED,
        ]
        assert looks == ["--index can be 0-17 now"]
        api.close()


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([7], "7"), ([0, 1, 2, 3, 7], "0-3, 7"), ([0, 2, 3, 5, 6, 9], "0, 2-3, 5-6, 9"), (range(256), "0-255"), ([], "")],
)
def test_numbers_in_short(numbers: Iterable[int], text: str) -> None:
    assert spans(numbers) == text


def test_a_pod_without_status_has_not_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded([[line("one")], [], []], POD)
    served = Recorded.pods
    monkeypatch.setattr(
        Recorded,
        "pods",
        lambda self: {"items": [{"metadata": POD["metadata"]}]} if len(self.logs) > 2 else served(self),
    )
    assert followed(recorded, tmp_path, monkeypatch) == [*lines("one"), FINISHED]
