"""The page: one file that loads nothing, in which every text is text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hostile import report
from repository import PROD, Repo

from renderer.report import page, side_by_side

TAGS = {
    *("html", "head", "meta", "link", "title", "style", "body", "h1", "h2", "p", "strong", "div", "input", "label"),
    *("span", "section", "br", "code", "details", "summary", "pre", "table", "tr", "td", "script"),
}


class Page(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("seed", range(20))
def test_no_text_becomes_markup(seed: int) -> None:
    text = page.render(report(seed))
    tags = Page(text).tags
    assert {tag for tag, _ in tags} <= TAGS
    names = {name for _, attributes in tags for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in {"src", "style", "action"}}
    assert [attributes["href"] for _, attributes in tags if "href" in attributes] == ["data:,"]
    assert sum(tag == "script" for tag, _ in tags) == 1


def test_the_policy_allows_the_page_s_own_script_and_style_only() -> None:
    text = page.render(report(0))
    policy = next(attributes["content"] for tag, attributes in Page(text).tags if attributes.get("http-equiv"))
    style, script = (re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("style", "script"))
    assert style
    assert script
    hashes = [base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode() for found in (style, script)]
    assert policy == (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    )


def test_the_page_shows_the_manifests_of_what_changes(repo: Repo) -> None:
    repo.experiment()
    repo.experiment("other")
    repo.commit()
    repo.branch("topic")
    repo.experiment(maxtext={"steps": 7})
    repo.experiment("new", launch=PROD)
    repo.commit()
    text = repo.report("--format", "html").out
    assert re.findall(r"<summary>(.*?)</summary>", text) == [
        *("derive.json (new)", "jobset.yml (new)", "run.yml (new)"),
        *("jobset.yml", "run.yml"),
    ]
    assert re.search(r'<tr class="changed">.*<td class="old"></td>.*<td class="new">steps: 7</td></tr>', text)


def test_no_manifest_becomes_markup() -> None:
    made = next(made for made in map(report, range(20)) if any(row.effect == "launch" for row in made.rows))
    row = next(row for row in made.rows if row.effect == "launch")
    old, new = b"a\n</td><script>alert(1)</script>\n", b"a\n</pre><img src=x>\n"
    files = (*side_by_side.files({"run.yml": old}, {"run.yml": new, "watcher.yml": new}),)
    assert {tag for tag, _ in Page(page.render(made, [(row.experiment, files)])).tags} <= TAGS


def test_of_very_many_manifests_the_first_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_MANIFESTS", 30_000)
    made = report(1)
    files = [(f"m/{index}", side_by_side.files({}, {"run.yml": b"x" * 10_000})) for index in range(10)]
    assert "Left out: the manifests of 7 experiments." in page.render(made, files)


def test_sides_are_aligned_and_equal_lines_folded() -> None:
    old = "\n".join(f"line {number}" for number in range(40))
    new = old.replace("line 20", "line twenty")
    (file,) = side_by_side.files({"run.yml": old.encode()}, {"run.yml": new.encode()})
    assert [(block.folded, len(block.lines)) for block in file.blocks] == [(True, 17), (False, 7), (True, 16)]
    (changed,) = (line for block in file.blocks for line in block.lines if line.changed)
    assert (changed.old_number, changed.old, changed.new_number, changed.new) == (21, "line 20", 21, "line twenty")


def test_credentials_are_masked_in_manifests() -> None:
    token = "ghp_" + "a1B2" * 9
    (file,) = side_by_side.files({}, {"run.yml": f'token: "{token}"\n'.encode()})
    assert token not in file.text
