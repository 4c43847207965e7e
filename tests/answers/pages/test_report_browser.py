"""The page in a browser: nothing overflows, nothing is fetched, paper has no drawers, citations can be copied."""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pytest

from exegete.answers.pages.document import render
from exegete.report.heatmap import HeatMap, HeatRow, Matrix
from exegete.report.markup import block
from exegete.report.markup import page_of_blocks as html_page
from exegete.report.section import Figure, Report, Section, Table
from exegete.report.theme import themed
from tests.answers.pages.test_report_html import chart, report

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


def test_how_to_read_a_figure_wraps_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    read = (
        "Means over texts with 95 % intervals; what lies right of both of the dashed rules may be read, & all else not."
    )
    figure = Figure("told", themed(chart("a").properties(title=read), "a chart"))
    path = tmp_path / "report.html"
    path.write_text(render(replace(page(), sections=(Section("Told", figures=(figure,)),))), encoding="utf8")
    tab, said = opened(browser, f"file://{path}", 390)
    [box] = tab.eval_on_selector_all(".reading", "all => all.map(e => e.getBoundingClientRect().toJSON())")
    assert tab.inner_text(".reading") == read
    assert box["right"] <= 390
    assert box["height"] > 30  # two lines at least
    assert tab.eval_on_selector_all(".plot text", "all => all.filter(e => /Means/.test(e.textContent)).length") == 0
    assert said == []


def test_no_word_of_a_heat_map_is_cut_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    words = (*["a", "film", "that", "nobody", "of", "us", "would", "have", "called", "internationalisation"], "x" * 80)
    rows = [HeatRow(f"method {i}", tuple(range(len(words))), True, ("0.50", "", "3")) for i in range(3)]
    matrix = Matrix(tuple("abcdefghijklmnop"), ((0.5,) * 16,) * 16, "How far the methods rank alike, " * 4)
    drawn = HeatMap("Predicted", words, tuple(rows), "yes", columns=("τ att.", "compr.", "flip"), matrix=matrix)
    path = tmp_path / "it.html"
    path.write_text(html_page("It", block(drawn)), encoding="utf8")
    tab, said = opened(browser, f"file://{path}", 390)
    cut = "all => all.filter(e => e.getBoundingClientRect().right > 390).length"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.eval_on_selector_all(".map tbody *", cut) == 0
    assert tab.eval_on_selector_all("caption", cut) == 0
    shown = tab.eval_on_selector(".map tbody .number", "e => getComputedStyle(e, '::before').content")
    assert "τ att." in shown
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
