"""An exported ledger instead of the target's history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from repository import PROD, Repo


def ledger(folder: Path, *runs: dict[str, Any]) -> str:
    path = folder / "ledger.json"
    path.write_text(json.dumps({"runs": runs, "exported": "2026-01-01"}))
    return str(path)


def entry(name: str, state: str, experiment: str = "qwen3-0.6b/run") -> dict[str, Any]:
    return {"name": name, "experiment": experiment, "environment": "prod", "state": state, "chips": 64}


def test_the_ledger_decides_what_lives_and_what_is_pending(repo: Repo, tmp_path: Path) -> None:
    repo.experiment(launch=PROD)
    repo.experiment("waiting", launch=PROD)
    repo.commit()
    name = next((repo.content.root / "rendered/prod/qwen3-0.6b/waiting").parent.glob("waiting/jobset.yml")).read_text()
    waiting = name.split('  name: "')[1].split('"')[0]
    repo.branch("topic")
    repo.experiment(launch={**PROD, "supersede": "stop"}, maxtext={"steps": 7})
    repo.commit()
    live = (
        entry("run-64c-00000000", "launched"),
        entry("run-64c-00000001", "held"),
        entry("run-64c-00000002", "failed"),
    )
    file = ledger(tmp_path, *live, entry(waiting, "pending", "qwen3-0.6b/waiting"))
    rows = repo.data("--ledger", file)["rows"]
    assert [(row["effect"], row["run"].rpartition("-")[0], row["run"][-1]) for row in rows[1:]] == [
        ("stop", "run-64c", "0"),
        ("stop", "run-64c", "1"),
        ("retry", "waiting-64c", waiting[-1]),
    ]
    data = repo.data("--ledger", file)
    assert (data["pending"], data["known_by"]) == (["run-64c-00000001", waiting], "the ledger ledger.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is no exported ledger"),
        ('{"runs": [{"name": "x"}]}', "is no exported ledger"),
        (
            '{"runs": [{"name": "x", "experiment": "m/x", "environment": "prod", "state": "odd"}]}',
            "is no exported ledger",
        ),
    ],
)
def test_what_is_no_ledger_is_refused(repo: Repo, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "ledger.json").write_text(text)
    ran = repo.report("--ledger", str(tmp_path / "ledger.json"))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"ledger.json: {message}")


def test_a_missing_ledger_is_refused(repo: Repo, tmp_path: Path) -> None:
    assert repo.report("--ledger", str(tmp_path / "none.json")).code == 1
