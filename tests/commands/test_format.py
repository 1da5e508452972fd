"""`renderer format`: the stable form of files, checked or written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from content import Content

LOOSE = "maxtext:\n    steps: 5  # few\nlaunch:\n    chips: 64\n    model: m\n"
STABLE = "launch:\n  model: m\n  chips: 64\nmaxtext:\n  steps: 5    # few\n"


def test_format_writes_what_differs_and_names_it(content: Content) -> None:
    path = content.write("experiments/ling3-flash/loose.yml", LOOSE)
    check = content.run("format", "--check")
    assert (check.code, check.out) == (1, "")
    assert check.err == "experiments/ling3-flash/loose.yml: is not in its stable form; run renderer format\n"
    assert path.read_text() == LOOSE
    assert content.run("format").out == "experiments/ling3-flash/loose.yml: formatted\n"
    assert path.read_text() == STABLE
    again = content.run("format")
    assert (again.code, again.out, again.err) == (0, "", "")


def test_format_of_named_files_leaves_the_others(content: Content) -> None:
    one = content.write("experiments/ling3-flash/one.yml", LOOSE)
    two = content.write("experiments/ling3-flash/two.yml", LOOSE)
    content.run("format", str(one))
    assert (one.read_text(), two.read_text()) == (STABLE, LOOSE)


def test_nothing_is_written_when_one_file_is_refused(content: Content) -> None:
    loose = content.write("experiments/ling3-flash/loose.yml", LOOSE)
    content.write("experiments/ling3-flash/bad.yml", "a: 010\n")
    code, out, err = content.run("format")
    assert (code, out) == (1, "")
    assert err == (
        "experiments/ling3-flash/bad.yml:1:4: a: leading zero: readers take 010 for octal, decimal or text: "
        'write 10, or "010" for the text\n'
    )
    assert loose.read_text() == LOOSE


def test_a_file_that_is_not_there_is_named(content: Content) -> None:
    code, _, err = content.run("format", str(content.root / "absent.yml"))
    assert (code, err) == (1, "absent.yml: cannot be read: No such file or directory\n")


def test_format_is_idempotent_over_the_shipped_files(content: Content) -> None:
    content.ship()
    assert content.run("format", "--check") == content.run("format", "--check")
    assert content.run("format", "--check").err == ""


def test_a_file_that_no_round_trip_keeps_does_not_stop_the_others(content: Content) -> None:
    loose = content.write("experiments/ling3-flash/loose.yml", LOOSE)
    odd = content.write("experiments/ling3-flash/odd.yml", "maxtext:\n    run_name: -_\n\n")
    code, out, err = content.run("format")
    assert (code, err) == (0, "")
    assert out == "experiments/ling3-flash/loose.yml: formatted\nexperiments/ling3-flash/odd.yml: formatted\n"
    assert (loose.read_text(), odd.read_text()) == (STABLE, "maxtext:\n    run_name: -_\n")


@pytest.mark.parametrize("arguments", [(), ("--check",)])
def test_what_is_no_regular_file_inside_is_a_problem(
    arguments: tuple[str, ...], content: Content, tmp_path: Path
) -> None:
    loose = content.write("experiments/ling3-flash/loose.yml", LOOSE)
    folder = content.root / "experiments/ling3-flash"
    outside = tmp_path / "outside.yml"
    outside.write_text(LOOSE)
    os.mkfifo(folder / "f.yml")
    (folder / "folder.yml").mkdir()
    (folder / "gone.yml").symlink_to("nowhere")
    (folder / "link.yml").symlink_to(outside)
    (folder / "loop.yml").symlink_to("loop.yml")
    code, out, err = content.run("format", *arguments)
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "experiments/ling3-flash/f.yml: is not a regular file",
        "experiments/ling3-flash/folder.yml: is a folder",
        "experiments/ling3-flash/gone.yml: cannot be read: No such file or directory",
        "experiments/ling3-flash/link.yml: lies outside the repository: what is launched must be reviewed here",
        "experiments/ling3-flash/loop.yml: cannot be read: Too many levels of symbolic links",
    ]
    assert (loose.read_text(), outside.read_text()) == (LOOSE, LOOSE)


def test_a_link_inside_is_the_file_it_leads_to(content: Content) -> None:
    path = content.write("experiments/ling3-flash/z.yml", LOOSE)
    (path.parent / "a.yml").symlink_to("z.yml")
    assert content.run("format").out == "experiments/ling3-flash/z.yml: formatted\n"
    assert (path.read_text(), (path.parent / "a.yml").is_symlink()) == (STABLE, True)


def test_nothing_is_written_when_one_file_cannot_be(content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    one = content.write("experiments/ling3-flash/one.yml", LOOSE)
    two = content.write("experiments/ling3-flash/two.yml", LOOSE)
    monkeypatch.setattr(os, "access", lambda path, _: path != two)
    code, out, err = content.run("format")
    assert (code, out, err) == (1, "", "experiments/ling3-flash/two.yml: cannot be written: Permission denied\n")
    assert (one.read_text(), two.read_text()) == (LOOSE, LOOSE)
