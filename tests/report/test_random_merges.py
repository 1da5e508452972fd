"""2,000 random merges: never a traceback, never over the limit, every launch and stop counted at the top."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from content import SHIPPED, Content
from memory import MemoryLog
from repository import PROD, make_repo

from renderer.plan import LAUNCHES, Effect
from renderer.problem import RefusedError
from renderer.report import codec, markdown, page
from renderer.report.reading import Reading

MODEL = "qwen3-0.6b"
HOSTILE = (
    "@everyone look",
    "`|](https://example.com) **x**",
    "<img src=x onerror=alert(1)>",
    "--></script><script>alert(1)</script>",
    "\u202egnp.exe\u2028",
    "``` \n# big\n",
    "Ω≈ç√∫ 🜚" * 40,
    "x" * 3000,
)


@cache
def presets() -> Mapping[str, bytes]:
    paths = [*sorted((SHIPPED / "presets" / MODEL).rglob("*.yml")), SHIPPED / "presets/policy.yml"]
    return {path.relative_to(SHIPPED).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="session")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, Mapping[str, bytes]]]:
    """Return experiments of one file's name, each with its rendered files by path."""
    root = tmp_path_factory.mktemp("versions")
    content = Content(root)
    for path, data in presets().items():
        content.write(path, data)
    made = []
    launches = ({}, {"attempt": 2}, {"state": "stopped"}, {"owner": "other"}, PROD, {**PROD, "supersede": "keep"})
    for launch in launches:
        for maxtext in ({}, {"steps": 7}, {"run_name": "mine"}, *({"hf_path": text} for text in HOSTILE[:3])):
            path = content.experiment("NAME", model=MODEL, launch=launch, maxtext=maxtext)
            made.append((path.read_bytes(), rendered(content, path)))
    for text in HOSTILE[3:]:
        path = content.experiment("NAME", model=MODEL, deploy={"ENV": {"TEXT": text.replace("\n", " ")}})
        made.append((path.read_bytes(), rendered(content, path)))
    return made


def rendered(content: Content, path: Path) -> Mapping[str, bytes]:
    """Return the rendered files of an experiment, none of one that is refused."""
    try:
        one = content.render(path)
    except RefusedError:
        return {}
    return {f"{one.folder}/{name}": data for name, data in one.files.items()}


def commit(chance: random.Random, versions: list[tuple[bytes, Mapping[str, bytes]]]) -> dict[str, bytes]:
    """Return the files of some experiments, some of them broken."""
    files = dict(presets())
    for name in chance.sample(("one", "two", "three", "four"), chance.randint(0, 3)):
        experiment, outputs = chance.choice(versions)
        files[f"experiments/{MODEL}/{name}.yml"] = damaged(chance, experiment)
        for path, data in outputs.items():
            if chance.random() > 0.03:
                new = data.replace(b"name-64c", f"{name}-64c".encode())
                files[path.replace("/NAME/", f"/{name}/")] = damaged(chance, new)
    if chance.random() < 0.3:
        file = chance.choice(sorted(presets()))
        files[file] = damaged(chance, files[file].replace(b"\nmaxtext:\n", b"\nmaxtext:\n  adam_eps: 1.0e-7\n"), 0.2)
    if chance.random() < 0.1:
        files[f"results/{MODEL}/one/r.json"] = chance.choice((b'{"step_seconds": 3.5}', b"[]", b"{", b'"x"'))
    return files


def damaged(chance: random.Random, data: bytes, rate: float = 0.02) -> bytes:
    if chance.random() > rate:
        return data
    at = chance.randrange(len(data) + 1)
    return chance.choice((data[:at], data[:at] + b"\xff\x00" + data[at:], data[:at] + b"\n- [" + data[at:], b""))


@pytest.fixture
def quick_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep temporary folders in memory where that is possible: thousands of them are made here."""
    if Path("/dev/shm").is_dir():
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")


@pytest.mark.parametrize("part", range(8))
@pytest.mark.usefixtures("quick_folders")
def test_random_merges(versions: list[tuple[bytes, Mapping[str, bytes]]], part: int) -> None:
    chance = random.Random(part)
    for _ in range(250):
        base = commit(chance, versions)
        fork = base if chance.random() < 0.7 else commit(chance, versions)
        head = {**fork, **commit(chance, versions)} if chance.random() < 0.5 else commit(chance, versions)
        reading, report = MemoryLog(base, fork, head).report()
        text = markdown.render(report)
        judge(text, reading)
        if chance.random() < 0.1:
            assert codec.decode(codec.encode(report).encode()) == report
            assert "<script>alert" not in page.render(report)


def judge(text: str, reading: Reading) -> None:
    """Hold the comment to its limit and to the plan."""
    assert markdown.length(text) <= markdown.LIMIT
    assert text.splitlines()[-1].startswith("Left out here: ")
    headline = text.splitlines()[1].replace(",", "")
    launches = sum(action.effect in LAUNCHES for action in reading.actions)
    stops = sum(action.effect is Effect.STOP for action in reading.actions)
    assert counted(headline, r"(\d+) launch(?:es)? ") == launches
    assert counted(headline, r"(\d+) stops?\b") == stops


def counted(headline: str, pattern: str) -> int:
    found = re.search(pattern, headline)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("seed", range(12))
def test_random_merges_through_git(tmp_path: Path, seed: int) -> None:
    chance = random.Random(f"git {seed}")
    repo = make_repo(tmp_path / "repository")
    for side in ("base", "head"):
        for name in chance.sample(("one", "two", "three"), 2):
            launch = chance.choice(({}, {"attempt": 2}, {"state": "stopped"}, PROD))
            repo.experiment(name, launch=launch, maxtext={"steps": chance.choice((3, 4))})
        if side == "head" and chance.random() < 0.5:
            repo.git(
                "rm", "-r", "--force", "--ignore-unmatch", f"experiments/{MODEL}/one.yml", f"rendered/test/{MODEL}/one"
            )
        repo.commit(side)
        if side == "base":
            repo.branch("topic")
    for form in ("md", "html", "json"):
        ran = repo.report("--format", form)
        assert ran.code == (1 if ran.err.endswith(" would be refused a launch: the report says why\n") else 0), ran.err
