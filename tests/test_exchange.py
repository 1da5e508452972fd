"""One folder in the place of another: by the kernel's swap, or by two renames that `recover` finishes."""

from __future__ import annotations

from pathlib import Path

import pytest

from renderer import exchange


def test_replace_puts_the_new_folder_in_place_and_keeps_the_old_aside(tmp_path: Path) -> None:
    for swap in (True, False):
        target, staging = tmp_path / f"target-{swap}", tmp_path / f"staging-{swap}"
        (staging / "new").mkdir(parents=True)
        (staging / "new/a").write_text("new")
        target.mkdir()
        (target / "a").write_text("old")
        with pytest.MonkeyPatch.context() as patch:
            if not swap:
                patch.setattr(exchange, "_swap", lambda *_: False)
            exchange.replace(target, staging)
        assert (target / "a").read_text() == "new"
        assert [path.read_text() for path in staging.rglob("a")] == ["old"]


@pytest.mark.parametrize(
    ("note", "moved"),
    [
        ("rendered", True),
        ("rendered/test", True),
        ("elsewhere", False),
        ("../elsewhere", False),
        ("rendered/../elsewhere", False),
        ("/tmp/elsewhere", False),
    ],
)
def test_recover_puts_nothing_outside_rendered(note: str, moved: bool, tmp_path: Path) -> None:
    """A folder that somebody committed under such a name is no crash of ours."""
    root = tmp_path / "root"
    staging = root / ".renderer-x"
    (staging / "new").mkdir(parents=True)
    (staging / "old").mkdir()
    (staging / "target").write_text(note)
    if note != "rendered":
        (root / "rendered").mkdir()
    before = {path for path in tmp_path.rglob("*") if staging not in (path, *path.parents)}
    exchange.recover(staging, root / "rendered")
    after = set(tmp_path.rglob("*"))
    assert after - before == ({root / note} if moved else set())
    assert not Path("/tmp/elsewhere").exists()


def test_recover_forgets_what_was_never_put_in_place(tmp_path: Path) -> None:
    staging = tmp_path / ".renderer-x"
    (staging / "new").mkdir(parents=True)
    (staging / "new/a").write_text("unfinished")
    exchange.recover(staging, tmp_path / "rendered")
    assert list(tmp_path.iterdir()) == []


def test_swap_says_when_it_cannot(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert exchange._swap(tmp_path / "a", tmp_path / "absent") is False
