"""The report's page in a real browser: search, filter and expand work, nothing is loaded, nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import chromium
import pytest
from chromium import Chromium
from hostile import report
from repository import PROD, make_repo

from renderer.report import page
from renderer.report.data import VERSION, Report, Role, Site, Totals, Value

pytestmark = pytest.mark.browser
SHOWN = "[...document.querySelectorAll('.item')].filter((item) => item.checkVisibility())"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a pull request with a new, an edited and a removed experiment."""
    folder = tmp_path_factory.mktemp("page")
    repo = make_repo(folder / "repository")
    for name in ("edited", "gone"):
        repo.experiment(name)
    repo.commit()
    repo.branch("topic")
    repo.experiment("edited", maxtext={"steps": 7})
    repo.experiment("new", launch=PROD)
    repo.remove("gone")
    repo.commit()
    assert repo.report("--format", "html", "--output", str(folder / "report.html")).code == 0
    return (folder / "report.html").as_uri()


@pytest.fixture(params=[(1280, 900), (390, 844)], ids=["desk", "phone"])
def browser(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Chromium]:
    """A browser that must end with an empty console and without having asked for anything but the page."""
    program = chromium.find()
    assert program, "no Chromium here: make test-browser installs it"
    with Chromium(program, tmp_path / "profile", *request.param) as found:
        yield found
        asked = [
            told["params"]["request"]["url"] for told in found.events if told["method"] == "Network.requestWillBeSent"
        ]
        assert len(asked) == 1
        assert asked[0].startswith("file:///")
        wrong = {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"}
        assert [told for told in found.events if told["method"] in wrong] == []


def search(browser: Chromium, text: str) -> list[str]:
    """Type into the search field and return the experiments of the rows that are left."""
    script = f"search.value = {text!r}; search.dispatchEvent(new Event('input'));"
    browser.evaluate(script)
    found: list[str] = browser.evaluate(f"{SHOWN}.map((item) => item.querySelector('strong')?.textContent ?? '')")
    return found


def test_search(browser: Chromium, address: str) -> None:
    browser.open(address)
    everything = len(search(browser, ""))
    assert browser.evaluate("found.textContent") == f"{everything} of {everything}"
    assert set(search(browser, "launch QWEN3 new")) == {"qwen3-0.6b/new"}
    assert search(browser, "nothing has this") == []
    assert browser.evaluate("[...document.querySelectorAll('section')].every((section) => section.hidden)")
    assert len(search(browser, "")) == everything


def test_filter(browser: Chromium, address: str) -> None:
    browser.open(address)
    for kind in ("launch", "value", "warning", "nothing", "refuse"):
        browser.evaluate(f"document.querySelector('[data-filter={kind}]').click()")
    kinds = browser.evaluate(f"{SHOWN}.map((item) => item.querySelector('.kind').textContent)")
    assert kinds == ["stop", "stop"]


def test_expand_side_by_side(browser: Chromium, address: str) -> None:
    browser.open(address)
    changed = "[...document.querySelectorAll('tr.changed')].filter((row) => row.checkVisibility())"
    assert browser.evaluate(f"{changed}.length") == 0
    browser.evaluate("[...document.querySelectorAll('details > summary')].forEach((summary) => summary.click())")
    sides = browser.evaluate(
        f"{changed}.map((row) => [row.querySelector('.old').textContent, row.querySelector('.new').textContent])"
    )
    assert [side for row in sides for side in row if side.startswith("steps: ")] == ["steps: 20", "steps: 7"]


def test_nothing_is_wider_than_the_window(browser: Chromium, address: str) -> None:
    browser.open(address)
    browser.evaluate("[...document.querySelectorAll('details > summary')].forEach((summary) => summary.click())")
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("seed", [0, 1])
def test_hostile_text_runs_nothing(browser: Chromium, tmp_path: Path, seed: int) -> None:
    file = tmp_path / "hostile.html"
    file.write_text(page.render(report(seed)), encoding="utf-8", errors="backslashreplace")
    browser.open(file.as_uri())
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.images.length") == 0
    assert search(browser, "") is not None


def test_letters_from_right_to_left_leave_old_before_new(browser: Chromium, tmp_path: Path) -> None:
    value = Value(Role.CHANGED, "אלף", "בית", "גימל", "model", ("דלת", "הא"), (Site("m/a", ""),), 1)
    made = Report(VERSION, "main", "b" * 40, "c" * 40, "the history of main", Totals(), values=(value,))
    file = tmp_path / "hebrew.html"
    file.write_text(page.render(made), encoding="utf-8")
    browser.open(file.as_uri())
    boxes = "[...document.querySelectorAll('.item code')].map((code) => code.getBoundingClientRect())"
    places = browser.evaluate(f"{boxes}.map((box) => [box.top, box.left])")
    assert len(places) == 5
    assert places == sorted(places), "from the left, line by line"
