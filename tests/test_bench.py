"""The bench measures what it says: its experiments are valid, and its bare merge comes to the same values."""

from __future__ import annotations

from pathlib import Path

from bench.generate import experiments, generate
from bench.inside import configurations, layers_of
from bench.merge_without_history import Bare, merge
from renderer.cli import main
from renderer.layers import Repository
from renderer.merge import values
from renderer.yaml_io import REMOVED, Node


def test_generated_experiments_render(tmp_path: Path) -> None:
    folder = tmp_path / "content"
    generate(60, folder)
    assert len(list(folder.glob("experiments/*/*.yml"))) == 60
    assert main(["--root", str(folder), "render"]) == 0
    assert len(list(folder.glob("rendered/*/*/*/jobset.yml"))) == 60


def test_the_same_number_gives_the_same_experiments() -> None:
    assert list(experiments(300)) == list(experiments(300))
    assert len({name for name, _ in experiments(1000)}) == 1000


def test_generated_experiments_vary() -> None:
    texts = "".join(text for _, text in experiments(1000))
    for part in ("ling3-flash", "deepseek3-671b", "llama3.1-70b", "qwen3-0.6b", "prod", "branch:", "ENV:", "LIBTPU"):
        assert texts.count(part) > 20, part


def test_the_merge_without_history_comes_to_the_same(tmp_path: Path) -> None:
    generate(30, tmp_path / "content")
    repository = Repository(tmp_path / "content")
    found = configurations(repository)
    for configuration, layers in zip(found, layers_of(repository, found), strict=True):
        merged: Bare = {}
        for layer in layers:
            merged = merge(merged, layer.maxtext, [], "maxtext")
        assert bare_values(merged) == values(configuration.maxtext)


def bare_values(merged: Bare) -> dict[str, object]:
    return {
        key: bare_values(item) if isinstance(item, dict) else item.value
        for key, item in merged.items()
        if not (isinstance(item, Node) and item.value is REMOVED)
    }
