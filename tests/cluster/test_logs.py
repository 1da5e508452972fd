"""`renderer logs` over the real API server, from a node that serves logs as a kubelet does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from renderer.cluster.api import connect
from renderer.cluster.logs import End, Line, Note, Patience, Target, follow, read
from tests.cluster.api import ApiError, jobsets, wait_for
from tests.cluster.node_logs import NodeLogs, node_logs
from tests.cluster.runs import variant
from tests.cluster.sandbox import Sandbox

pytestmark = pytest.mark.cluster

TOPOLOGY, HOSTS = "2x2x2", 2


@pytest.fixture
def nodes(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeLogs]:
    monkeypatch.setenv("KUBECONFIG", str(sandbox.plane.kubeconfig))
    sandbox.pool(TOPOLOGY)
    with node_logs(sandbox, tmp_path) as found:
        yield found


@dataclass
class Reader:
    """Follows a log in a thread, as `renderer logs --follow` does."""

    target: Target
    events: list[Line | Note | End] = field(default_factory=list)
    thread: threading.Thread | None = None

    def start(self) -> Reader:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        return self

    def _run(self) -> None:
        api = connect(retries=0)
        for event in follow(api, self.target, Patience(poll=0.1, quiet=1, longest=0.5)):
            self.events.append(event)
        api.close()

    @property
    def lines(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Line)]

    @property
    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Note)]

    def wait(self, *lines: str) -> None:
        wait_for(f"{lines}, not {self.events}", lambda: self.lines == list(lines), 20)

    def end(self) -> End:
        wait_for("the end", lambda: isinstance(self.events[-1], End), 30)
        assert self.thread
        self.thread.join(5)
        last = self.events[-1]
        assert isinstance(last, End)
        return last


def target(sandbox: Sandbox, name: str) -> Target:
    return Target(sandbox.namespace, name, sandbox.jobset(name)["metadata"]["uid"])


def answers(sandbox: Sandbox) -> bool:
    try:
        sandbox.jobsets()
        sandbox.plane.api.get("/api/v1/nodes", limit="1")
    except (ApiError, OSError):
        return False
    return True


def test_a_log_is_followed_to_the_end_over_a_lost_node_and_a_restart(sandbox: Sandbox, nodes: NodeLogs) -> None:
    name = sandbox.launch(variant(TOPOLOGY, namespace=sandbox.namespace))
    first = sandbox.pods(name)
    log = nodes.of(first[0])
    log.write("out 1", "twice", "twice")
    log.write("err 1", stream="stderr", at="2026-11-29T21:00:00.500000000Z")
    reader = Reader(target(sandbox, name)).start()
    reader.wait("out 1", "twice", "twice", "err 1")
    nodes.lose()
    log.write("while lost", at="2026-11-29T21:00:00.600000000Z")
    nodes.return_()
    reader.wait("out 1", "twice", "twice", "err 1", "while lost")
    sandbox.end(first[0], 143)
    sandbox.wait_running(name, HOSTS, not_among=first)
    second = sandbox.pods(name)
    nodes.of(second[0]).write("out 1", at="2026-11-29T21:00:05.000000000Z")
    reader.wait("out 1", "twice", "twice", "err 1", "while lost", "out 1")
    for pod in second:
        sandbox.end(pod, 0)
    assert reader.end() == End(f"{name} has finished")
    names = [pods[0]["metadata"]["name"] for pods in (first, second)]
    assert [note for note in reader.notes if note.startswith("log of")] == [f"log of {name}" for name in names]


def test_a_reader_survives_a_crash_of_the_api_server(only_own: None, sandbox: Sandbox, nodes: NodeLogs) -> None:
    name = sandbox.launch(variant(TOPOLOGY, namespace=sandbox.namespace))
    pods = sandbox.pods(name)
    log = nodes.of(pods[0])
    log.write("before")
    reader = Reader(target(sandbox, name)).start()
    reader.wait("before")
    sandbox.plane.running.kill("kube-apiserver")
    log.write("meanwhile", at="2026-11-29T21:00:00.100000000Z")
    wait_for("a note", lambda: any(note.endswith("; trying again") for note in reader.notes))
    sandbox.plane.running.start_again("kube-apiserver")
    sandbox.plane.api.close()
    wait_for("the API server", lambda: answers(sandbox))
    reader.wait("before", "meanwhile")
    log.write("after", at="2026-11-29T21:00:02.000000000Z")
    reader.wait("before", "meanwhile", "after")
    for pod in pods:
        sandbox.end(pod, 0)
    assert reader.end() == End(f"{name} has finished")


def test_a_reader_waits_for_the_pod_and_sees_the_run_fail(sandbox: Sandbox, nodes: NodeLogs) -> None:
    name = sandbox.hold(variant(TOPOLOGY, namespace=sandbox.namespace))
    reader = Reader(target(sandbox, name)).start()
    wait_for("a note", lambda: reader.notes == [f"waiting for pod 0 of {name}; it has no pods now"])
    sandbox.release(name)
    sandbox.wait_running(name, HOSTS)
    pod = sandbox.pods(name)[0]
    nodes.of(pod).write("bad key")
    reader.wait("bad key")
    sandbox.end(pod, 2)
    end = reader.end()
    assert end.failed
    assert end.text.startswith(f"{name} has failed: ")


def test_a_run_that_is_stopped_ends_its_reader(sandbox: Sandbox, nodes: NodeLogs) -> None:
    name = sandbox.launch(variant(TOPOLOGY, namespace=sandbox.namespace))
    nodes.of(sandbox.pods(name)[0]).write("one")
    reader = Reader(target(sandbox, name)).start()
    reader.wait("one")
    sandbox.plane.api.delete(jobsets(sandbox.namespace, name))
    assert reader.end() == End(f"{name} was stopped or removed")


def test_the_log_as_it_is_now(sandbox: Sandbox, nodes: NodeLogs) -> None:
    name = sandbox.launch(variant(TOPOLOGY, namespace=sandbox.namespace))
    nodes.of(sandbox.pods(name)[1]).write("one", "two")
    found = target(sandbox, name)
    api = connect()
    assert list(read(api, Target(found.namespace, found.name, found.uid, 1))) == [Line("one"), Line("two")]
    nobody = Target(found.namespace, found.name, found.uid, 7)
    assert list(read(api, nobody)) == [End(f"{name} has no pod with index 7; --index can be 0-1 now")]
    api.close()
