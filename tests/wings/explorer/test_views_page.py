"""The views of a run in a browser: its texts, its words and its scorecard, to look at and to take away."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from exegete.answers.audit import judge_run
from exegete.runs.results import Run
from exegete.wings.explorer.data import page_of_texts
from exegete.wings.explorer.messages import RunTexts
from exegete.wings.explorer.replies import ServedCell
from exegete.wings.explorer.run_texts import JudgedRun
from tests.browser import Browser
from tests.wings.explorer.serving import Running, running

pytestmark = pytest.mark.slow
WAIT = 120_000


@pytest.fixture(scope="module")
def served(run: Path, folders: tuple[Path, Path]) -> Iterator[Running]:
    with running([str(run), str(folders[0])]) as found:
        yield found


@contextmanager
def opened(browser: Browser, served: Running, fragment: str, refused: str = "nothing", **context: Any) -> Iterator[Any]:
    """A view; nothing is fetched from elsewhere, and nothing goes wrong."""
    said: list[str] = []
    place = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context)
    place.set_default_timeout(WAIT)
    tab = place.new_page()
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("console", lambda message: said.append(message.text))
    tab.on(
        "request",
        lambda asked: None if asked.url.startswith((served.origin, "blob:", "data:")) else said.append(asked.url),
    )
    tab.goto(served.entrance + fragment)
    yield tab
    place.close()
    assert [line for line in said if refused not in line] == []


def texts(run: Path, at: Path, **asked: Any) -> list[str]:
    """As Python sorts them."""
    found = JudgedRun(run, at).texts(asked.pop("cell", 0))
    rows = page_of_texts(Path(found["texts"]), RunTexts(run=0, count=25, **asked), ServedCell(**found["cell"]))["rows"]
    return [row["text"] for row in rows]


def shown(tab: Any) -> list[str]:
    tab.wait_for_load_state("networkidle")
    tab.locator(
        "exegete-data:not(.stale) .texts tbody tr, exegete-data:not(.stale) .count:has-text('no text')"
    ).first.wait_for()
    tab.wait_for_timeout(400)
    found: list[str] = tab.locator(".texts tbody th").all_inner_texts()
    return found


def saved(tab: Any, name: str, view: str, folder: Path) -> Path:
    with tab.expect_download() as coming:
        tab.locator(view).get_by_role("button", name=name, exact=True).first.click()
    path: Path = folder / coming.value.suggested_filename
    coming.value.save_as(path)
    return path


def test_texts_are_sorted_searched_and_opened(browser: Browser, served: Running, run: Path, tmp_path: Path) -> None:
    with opened(browser, served, "#view=data") as tab:
        tab.locator(".texts tbody tr").first.wait_for()
        assert shown(tab) == texts(run, tmp_path)
        tab.get_by_label("First", exact=True).select_option("error")
        assert shown(tab) == texts(run, tmp_path, sort="error")
        tab.get_by_label("the other way round").check()
        assert shown(tab) == texts(run, tmp_path, sort="error", turned=True)
        tab.get_by_label("with the words").fill("fine")
        tab.wait_for_timeout(400)
        found = shown(tab)
        assert found == texts(run, tmp_path, sort="error", turned=True, search="fine")
        assert all("fine" in text.split() for text in found)
        tab.wait_for_function("location.hash.includes('data.search=fine')")
        address = tab.evaluate("location.hash")
        tab.locator(".texts tbody button").first.focus()
        tab.keyboard.press("Enter")  # the text view, with that text
        assert tab.input_value("#text") == found[0]
        assert tab.locator("#view-data").is_hidden()
        tab.locator("exegete-model .column").first.wait_for()
        tab.wait_for_timeout(500)
        assert " ".join(tab.locator("exegete-model").first.locator(".column .word").all_inner_texts()) == found[0]
    with opened(browser, served, address) as tab:  # an address restores it
        tab.locator(".texts tbody tr").first.wait_for()
        assert shown(tab) == found
        assert tab.get_by_label("with the words").input_value() == "fine"


def test_another_model_of_the_run_and_no_text_that_matches(
    browser: Browser, served: Running, run: Path, tmp_path: Path
) -> None:
    with opened(browser, served, "#view=data&data.cell=1") as tab:
        tab.locator(".texts tbody tr").first.wait_for()
        assert shown(tab) == texts(run, tmp_path, cell=1)
        tab.get_by_label("with the words").fill("nowhere")
        tab.get_by_text("no text matches").wait_for()
        assert shown(tab) == []


def test_words_are_marks_and_lead_to_their_texts(browser: Browser, served: Running) -> None:
    with opened(browser, served, "#view=data&data.least=1") as tab:
        tab.locator("exegete-words svg").wait_for()
        rows = tab.evaluate("document.querySelector('exegete-data').wordPage.rows")
        marks = tab.locator("exegete-words .word-mark, exegete-words .word-dot")
        assert marks.count() == len(rows)
        words = tab.locator("exegete-words .word-mark").evaluate_all("(all) => all.map((m) => m.firstChild.data)")
        assert set(words) <= {row["word"] for row in rows}
        tab.get_by_text("As a table").click()
        table = tab.get_by_role("region", name="Words as a table")
        assert table.locator("tbody tr").count() == len(rows)
        button = table.get_by_role("button").first
        word = button.inner_text()
        button.click()
        tab.wait_for_timeout(400)
        assert all(word in text.split() for text in shown(tab))


def test_the_scorecard_and_its_chapters(browser: Browser, served: Running, run: Path) -> None:
    with opened(browser, served, "#view=scorecard") as tab:
        tab.locator(".one-card .card").first.wait_for()
        audit = judge_run(Run.read(run).study, run)
        said = tab.locator(".card .verdict").all_text_contents()
        assert sorted(each.partition(" ")[2] for each in said) == sorted(test.outcome for test in audit.tests)
        link = tab.locator(".card tbody a").first
        with tab.context.expect_page() as coming:
            link.click()
        report = coming.value
        report.wait_for_load_state()
        assert report.url == f"{served.address}/runs/0/report#agreement"
        assert report.locator("#agreement").is_visible()
        assert report.evaluate("window.origin") == "null"  # no cookie, no API
        report.close()


def test_two_runs_stand_side_by_side(browser: Browser, served: Running) -> None:
    with opened(browser, served, "") as tab:
        card = served.client.post("/api/scorecard", json={"run": 0}).json()
        first = card["tests"][0]
        other = card | {
            "run": 1,
            "report": False,
            "tests": [first | {"verdict": "holds", "outcome": "holds", "sign": "✓", "statistic": 0.25}],
        }
        models = [model | {"run": True} for model in served.client.get("/api/models").json()]
        tab.route("**/api/models", lambda route: route.fulfill(json=models))
        answers = [card, other]
        tab.route("**/api/scorecard", lambda route: route.fulfill(json=answers[route.request.post_data_json["run"]]))
        tab.goto(f"{served.address}/#view=scorecard")
        tab.reload()
        tab.locator(".beside").wait_for()
        assert tab.locator(".beside thead th").all_inner_texts()[1:] == [f"{first['of']} (run {n})" for n in (1, 2)]
        lines = tab.locator(".beside tbody tr")
        assert lines.count() == len({test["name"] for test in card["tests"]})
        assert lines.first.locator("td").nth(1).inner_text() == "✓ holds 0.25"
        assert lines.last.locator("td").nth(1).inner_text() == "–"
        second = tab.locator(".one-card").nth(1)
        assert second.locator(".card tbody a").count() == 0  # without a report a test is a word
        assert "is not written" in second.inner_text()


def test_what_is_taken_away_is_what_is_shown(browser: Browser, served: Running, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    with opened(browser, served, "#view=data&data.sort=n", color_scheme="light") as tab:
        tab.locator("exegete-words svg").wait_for()
        rows = shown(tab)
        found = json.loads(saved(tab, "Save JSON", "exegete-data", tmp_path).read_text())
        assert [row["text"] for row in found["texts"]["rows"]] == rows
        assert found["asked"]["sort"] == "n"
        assert len(found["words"]["rows"]) == tab.locator("exegete-words .word-mark, exegete-words .word-dot").count()
        page = saved(tab, "Save HTML", "exegete-data", tmp_path)
        drawing = saved(tab, "Save SVG of the words", "exegete-data", tmp_path).read_text()
        assert all(f">{row['word']}" in drawing for row in found["words"]["rows"])
        assert "var(" not in drawing
        picture = image.open(BytesIO(saved(tab, "Save PNG of the words", "exegete-data", tmp_path).read_bytes()))
        assert picture.getpixel((0, 0))[:3] == (255, 255, 255)
        assert len(picture.convert("L").getcolors(1000)) > 10  # there is something on it
    read_offline(browser, page, rows[0], found)


def test_a_scorecard_and_a_text_are_taken_away(browser: Browser, served: Running, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    with opened(browser, served, "#view=scorecard") as tab:
        tab.locator(".one-card .card").first.wait_for()
        found = json.loads(saved(tab, "Save JSON", "exegete-scorecard", tmp_path).read_text())
        said = [each.partition(" ")[2] for each in tab.locator(".card .verdict").all_text_contents()]
        assert sorted(test["outcome"] for test in found[0]["tests"]) == sorted(said)
        read_offline(browser, saved(tab, "Save HTML", "exegete-scorecard", tmp_path), said[0], found)
        tab.get_by_role("button", name="Text", exact=True).click()
        tab.fill("#text", "a fine b")
        panel = tab.locator("exegete-model").first
        panel.get_by_text("fine", exact=True).first.wait_for()
        panel.get_by_role("button", name="Uniform", exact=True).click()
        tab.wait_for_load_state("networkidle")
        tab.wait_for_timeout(500)
        state = json.loads(saved(tab, "Save JSON", "exegete-model", tmp_path).read_text())
        assert state["rows"]["0"] == pytest.approx([1 / 3] * 3, abs=1e-6)
        drawing = saved(tab, "Save SVG", "exegete-model", tmp_path).read_text()
        for said_there in ("fine", "0.333", f"TVD of the prediction {state['result']['tvd']:.3f}"):
            assert said_there in drawing
        assert image.open(BytesIO(saved(tab, "Save PNG", "exegete-model", tmp_path).read_bytes())).size[0] == 1680
        page = saved(tab, "Save HTML", "exegete-model", tmp_path)
        values = panel.locator(".effect > exegete-prediction .value").all_inner_texts()
    read_offline(browser, page, values[0], state)


def read_offline(browser: Browser, page: Path, said: str, found: Any) -> None:
    """A file by itself: it fetches nothing, shows the same, and holds the same numbers."""
    wrong: list[str] = []
    place = browser.new_context(offline=True)
    tab = place.new_page()
    tab.on("console", lambda message: wrong.append(message.text))
    tab.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))
    tab.goto(page.as_uri())
    assert said in tab.locator("main").inner_text()
    assert json.loads(tab.locator("script#exegete").evaluate("(e) => e.textContent")) == found
    assert tab.locator("button, input, select, .hint").count() == 0  # there is nothing to be done
    place.close()
    assert wrong == []


@pytest.mark.parametrize("width", [360, 1280, 3840])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["data", "scorecard"])
def test_no_violation_and_nothing_overflows(
    browser: Browser, served: Running, width: int, scheme: str, view: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    viewport = {"width": width, "height": 900}
    with opened(browser, served, f"#view={view}", viewport=viewport, color_scheme=scheme) as tab:
        tab.locator("exegete-words svg" if view == "data" else ".one-card .card").first.wait_for()
        tab.wait_for_timeout(300)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        ground = "rgb(20, 20, 23)" if scheme == "dark" else "rgb(255, 255, 255)"
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == ground
        found = axe.Axe().run(tab, options={"resultTypes": ["violations"]})
        assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found.response["violations"]] == []


def test_another_page_of_texts_moves_nothing_above_it(browser: Browser, served: Running) -> None:
    with opened(browser, served, "#view=data") as tab:
        tab.locator("exegete-words svg").wait_for()
        shown(tab)
        parts = "[...document.querySelectorAll('exegete-data .choices, .texts thead')]"
        places = f"{parts}.map((e) => e.getBoundingClientRect().top)"
        before = tab.evaluate(places)
        tab.get_by_label("First", exact=True).select_option("n")
        shown(tab)
        assert tab.evaluate(places) == pytest.approx(before, abs=0.6)


def test_a_model_alone_has_no_texts(browser: Browser, server: Running) -> None:
    with opened(browser, server, "#view=data") as tab:
        tab.locator("exegete-model .column").first.wait_for()
        assert tab.get_by_role("button", name="Data", exact=True).is_hidden()
        assert tab.get_by_role("button", name="Scorecard", exact=True).is_visible()
        assert tab.locator("#view-text").is_visible()


def test_what_can_not_be_read_is_one_sentence(browser: Browser, served: Running) -> None:
    with opened(browser, served, "", refused="400 (Bad Request)") as tab:
        tab.route(
            re.compile("api/(run|scorecard)$"),
            lambda route: route.fulfill(status=400, json={"error": "the run is gone"}),
        )
        tab.get_by_role("button", name="Data", exact=True).click()
        tab.locator("exegete-data .wrong").get_by_text("the run is gone").wait_for()
        tab.get_by_role("button", name="Scorecard", exact=True).click()
        tab.locator("exegete-scorecard .wrong").get_by_text("the run is gone").wait_for()
