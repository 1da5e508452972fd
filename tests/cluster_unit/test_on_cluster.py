"""Questions before what cannot be undone, and the API server's refusals as problems."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import cast

import click
import pytest

from renderer import clusters
from renderer.cluster.api import Api, ApiError, Object
from renderer.cluster.damage import Damaged, UnreadableError
from renderer.commands import on_cluster
from renderer.commands.on_cluster import agreed, cluster, warn, warn_of_a_strange_cluster
from renderer.problem import RefusedError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "agrees", "said"),
    [("y\n", True, "Stop it? [y/N]: "), ("\n", False, "Stop it? [y/N]: nothing was changed\n")],
)
def test_a_person_is_asked(answer: str, agrees: bool, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", terminal)
    assert agreed("Stop it?", yes=False) is agrees
    assert terminal.getvalue() == said


def test_nobody_can_be_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(click.UsageError, match="add --yes"):
        agreed("Stop it?", yes=False)
    assert agreed("Stop it?", yes=True)


def test_a_refusal_without_words_gives_its_number() -> None:
    assert str(ApiError(403, "Forbidden", "")) == "the API server answered 403 Forbidden"
    assert str(ApiError(403, "Forbidden", "you may not")) == "you may not"


UNREADABLE = Damaged("ConfigMap", "control", "one", "is no entry of the ledger: it has no digest", "mend one")


def test_what_could_not_be_read_is_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    warn([UNREADABLE, Damaged("JobSet", "ns", "two", "is \x1b[2J odd")])
    assert tuple(capsys.readouterr()) == (
        "",
        "warning: ConfigMap one in control is no entry of the ledger: it has no digest; "
        "see kubectl get configmap one -n control -o yaml\n"
        "warning: JobSet two in ns is \\x1b[2J odd; see kubectl get jobset two -n ns -o yaml\n",
    )


class Strange:
    """A cluster by the identity that it tells."""

    def __init__(self, uid: str) -> None:
        self.uid = uid

    def get(self, path: str) -> Object:
        assert path == "/api/v1/namespaces/kube-system"
        return {"metadata": {"uid": self.uid}}


def test_a_cluster_that_the_repository_does_not_name_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "presets").mkdir()
    shutil.copy("presets/clusters.yml", tmp_path / "presets")
    ours = clusters.load(tmp_path, []).by_environment["test"]
    warn_of_a_strange_cluster(cast(Api, Strange(ours.identity)), tmp_path)
    assert capsys.readouterr().err == ""
    warn_of_a_strange_cluster(cast(Api, Strange("another")), tmp_path)
    assert capsys.readouterr().err == (
        "warning: this cluster, with the identity another, is none of presets/clusters.yml\n"
    )


def test_what_stops_a_command_is_told_with_how_to_see_and_to_mend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_cluster, "connect", lambda _retries: io.StringIO())  # anything that can be closed
    with pytest.raises(RefusedError) as error, cluster():
        raise UnreadableError(UNREADABLE, Damaged("JobSet", "ns", "two", "is odd"))
    assert str(error.value) == (
        "cluster: ConfigMap one in control is no entry of the ledger: it has no digest\n"
        "    kubectl get configmap one -n control -o yaml\n"
        "    mend one\n"
        "cluster: JobSet two in ns is odd\n"
        "    kubectl get jobset two -n ns -o yaml"
    )
