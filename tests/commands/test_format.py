"""`renderer format`: the stable form of files, checked or written."""

from __future__ import annotations

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
