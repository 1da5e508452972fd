"""What may be read and written under a root, and that several files are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from renderer.content_files import create, exists, read_inside, unwritable
from renderer.problem import Problem
from renderer.yaml_io import plain


def test_what_cannot_be_looked_at_counts_as_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    assert [exists(tmp_path / name) for name in ("link", "absent", "absent/x", "x" * 300)] == [True, False, False, True]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("a/b.yml", None),
        ("there.yml", None),
        ("../b.yml", "n: lies outside the repository: what is launched must be reviewed here"),
        ("a/../../b.yml", "n: lies outside the repository: what is launched must be reviewed here"),
        ("there.yml/b.yml", "n: cannot be written: there.yml is not a folder"),
        ("link/b.yml", "n: link is a symbolic link: nothing is written through"),
        ("x" * 300, "n: cannot be written: File name too long"),
    ],
)
def test_where_a_file_can_be_written(path: str, problem: str | None, tmp_path: Path) -> None:
    (tmp_path / "there.yml").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    found = unwritable(tmp_path, tmp_path / path, "n")
    assert (str(found) if found else None) == problem


def test_all_files_are_written_or_none(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        create({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("b", b"old")]
    create({tmp_path / "c/d": b"1", tmp_path / "e": b"2"})
    assert ((tmp_path / "c/d").read_bytes(), (tmp_path / "e").read_bytes()) == (b"1", b"2")


@pytest.mark.parametrize("file", ["linked.yml", "behind/a.yml"])
def test_what_is_read_is_no_link_and_lies_behind_none(tmp_path: Path, file: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.yml").write_text("a: 1\n")
    (tmp_path / "linked.yml").symlink_to("real/a.yml")
    (tmp_path / "behind").symlink_to("real")
    problems: list[Problem] = []
    assert read_inside(tmp_path, file, problems).value == {}
    assert list(map(str, problems)) == [f"{file}: is a symbolic link, of which git keeps only where it leads"]
    assert plain(read_inside(tmp_path, "real/a.yml", [])) == {"a": 1}
