"""The page in a browser: nothing overflows, nothing is fetched, paper has no drawers, citations can be copied."""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pytest

from exegete.page.section import Report, Section, Table
from exegete.report.html import render
from tests.report.test_report_html import report

Browser: TypeAlias = Any  # playwright's, which is only needed here
pytestmark = pytest.mark.slow
LONG = "rotten_tomatoes:min_df=2,planted=token_and_a_setting_that_never_ends"
ACROSS = """[...document.querySelectorAll("body *")].filter(e => e.scrollWidth > e.clientWidth + 1
  && e.clientWidth > 0 && getComputedStyle(e).overflowX === "visible" && !e.matches(".columns")
  && !e.closest(".unseen, svg, .scroll, thead, nav")).length"""


def page() -> Report:
    long = Section("Long", tables=(Table("long", pl.DataFrame({"x": range(60)})),))
    return replace(report(LONG), facts={"data": LONG * 2}, answer=f"No. Read {LONG}.\n\nMore.", appendix=(long,))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(page()), encoding="utf8")
    return f"file://{path}"


def opened(browser: Browser, address: str, width: int, scheme: str = "light") -> tuple[Any, list[str]]:
    context = browser.new_context(offline=True, viewport={"width": width, "height": 800}, color_scheme=scheme)
    said: list[str] = []
    tab = context.new_page()
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
    tab.goto(address)
    return tab, said


@pytest.mark.parametrize("width", [360, 390, 800, 1280])
def test_nothing_overflows(browser: Browser, address: str, width: int) -> None:
    tab, said = opened(browser, address, width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(ACROSS) == 0
    assert said == []


def test_light_and_dark_by_system_and_by_hand(browser: Browser, address: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    tab, said = opened(browser, address, 390, "dark")
    assert tab.evaluate(ground) == "rgb(20, 20, 23)"
    tab.click("#scheme")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    assert said == []


def test_paper_has_no_drawers(browser: Browser, address: str) -> None:
    tab, _ = opened(browser, address, 794)  # A4
    closed = "[...document.querySelectorAll('details.more-tables')].filter(d => !d.open).length"
    assert tab.evaluate(closed) > 0
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(closed) == 0
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.querySelector('details.raw')).display") == "none"
    assert tab.evaluate("getComputedStyle(document.querySelector('.heat')).breakInside") == "avoid"
    assert tab.evaluate("(e => e.clientHeight >= e.scrollHeight)(document.querySelector('#long .scroll'))")
    assert tab.evaluate("getComputedStyle(document.querySelector('.card')).display") == "table"  # paper is no phone
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(closed) > 0
    assert tab.pdf().startswith(b"%PDF")


def test_citations_are_copied_or_selected(browser: Browser, address: str) -> None:
    tab, _ = opened(browser, address, 800)
    tab.click("#copy")
    assert tab.evaluate("getSelection().toString()") == LONG
    assert tab.inner_text("#copy") in ("Copied", "Selected: press Ctrl+C")


def test_the_keyboard_finds_the_answer_first(browser: Browser, address: str) -> None:
    tab, _ = opened(browser, address, 800)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the answer"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "answer"
