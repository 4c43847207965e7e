"""The page for annotators: well formed, alone, blind, and in a browser everything that a person does with it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from exegete.base.errors import UsageError
from exegete.wings.annotation.page import annotation_page, checked_format
from exegete.wings.annotation.sheets import ItemKey, Secret, SheetItem, read_sheet
from tests.answers.pages.test_report_html import HOSTILE, Reader

Browser: TypeAlias = Any  # playwright's, which is only needed for the tests in a browser
Page: TypeAlias = Any
WORDS = ("a", "fine", HOSTILE, "film")
ITEMS = tuple(SheetItem(f"kabc-{n:03d}", (WORDS, ("who", "?")), 0, (2, 1), HOSTILE) for n in range(1, 6))
PAGE = annotation_page(ITEMS, "kabc")
READ = Reader(PAGE)
KEY = ItemKey("kabc", {}, {item.name: Secret(0, "original", "a", "a", True, "a", ()) for item in ITEMS})


def test_nothing_is_fetched_and_hostile_words_are_text() -> None:
    for name, attributes in READ.elements:
        assert not {"src", "href", "srcset", "action"} & set(attributes), (name, attributes)
        assert not any(key.startswith("on") for key in attributes)
    assert "@import" not in PAGE
    assert "url(" not in PAGE
    assert len(READ.all("script")) == 2
    assert "<script>alert" not in PAGE
    policy = str(READ.all("meta")[1]["content"])
    assert policy.startswith("default-src 'none'")
    assert policy.count("'sha256-") == 2


def test_every_item_is_there_once_with_its_words_marked() -> None:
    assert [article["data-item"] for article in READ.all("article")] == [item.name for item in ITEMS]
    assert len(READ.all("mark")) == 2 * len(ITEMS)
    assert "<mark>fine</mark> <mark>&lt;script&gt;alert(" in PAGE
    assert "who ?" in PAGE
    assert annotation_page(ITEMS, "kabc") == PAGE


def test_the_page_knows_nothing_of_the_key() -> None:
    assert not re.search("permut|condition|gold", PAGE)


def test_a_screen_reader_finds_its_way() -> None:
    names = [name for name, _ in READ.elements]
    assert all(names.count(landmark) == 1 for landmark in ("header", "main", "h1", "noscript"))
    ids = [attributes["id"] for _, attributes in READ.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {"name"} == {label["for"] for label in READ.all("label")}
    assert all(button.get("type") in ("button", "submit") for button in READ.all("button"))


def test_formats() -> None:
    assert checked_format("both") == "both"
    with pytest.raises(UsageError, match="unknown format 'htm': did you mean 'html'"):
        checked_format("htm")


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page, opened from a file, with no network; an error in its script fails the test."""
    (tmp_path / "annotate.html").write_text(PAGE)
    context = browser.new_context(offline=True)
    said: list[str] = []
    tab = context.new_page()
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("console", lambda message: said.append(message.text))
    tab.goto(f"file://{tmp_path / 'annotate.html'}")
    yield tab
    assert said == []
    context.close()


def begin(tab: Page, name: str = "Ann") -> None:
    tab.fill("#name", name)
    tab.keyboard.press("Enter")


def place(tab: Page) -> str:
    return f"{tab.inner_text('#place')}{tab.inner_text('#answered')}"


def wait_until_told(tab: Page, start: str) -> None:
    """Wait by the text itself: polling with a script is what the page's content security policy forbids."""
    tab.locator("#status").filter(has_text=re.compile(f"^{re.escape(start)}")).wait_for()


def saved(tab: Page, path: Path) -> Path:
    with tab.expect_download() as download:
        tab.click("#save")
    download.value.save_as(path)
    return path


@pytest.mark.slow
def test_answering_by_keyboard_and_going_on_later(opened: Page, tmp_path: Path) -> None:
    assert not opened.is_visible("article")
    begin(opened)
    assert (place(opened), opened.locator("article:visible").count()) == ("1 of 5 · 0 answered", 1)
    for key in ("y", "N", "ArrowRight", "y", "ArrowLeft"):
        opened.keyboard.press(key)
    assert place(opened) == "4 of 5 · 3 answered"
    assert opened.get_attribute("#yes", "aria-pressed") == "true"
    opened.keyboard.press("n")  # another answer takes the place of the first
    sheet = read_sheet(saved(opened, tmp_path / "x.json"), KEY)
    assert (sheet.annotator, sheet.answers) == ("Ann", {"kabc-001": True, "kabc-002": False, "kabc-004": False})
    opened.reload()
    assert place(opened) == "3 of 5 · 3 answered"  # the first that is open
    assert opened.inner_text("#status") == "Welcome back, Ann: 3 of 5 items are answered."
    opened.click("#yes")
    opened.keyboard.press("o")
    opened.click("#no")
    assert opened.inner_text("#status").startswith("All 5 items are answered.")
    assert opened.is_disabled("#open")


@pytest.mark.slow
def test_two_people_at_one_browser(opened: Page, tmp_path: Path) -> None:
    begin(opened)
    opened.keyboard.press("y")
    opened.click("#leave")
    begin(opened, "Bob")  # typing a name with n and y in it answers nothing
    assert place(opened) == "1 of 5 · 0 answered"
    opened.keyboard.press("n")
    assert read_sheet(saved(opened, tmp_path / "x.json"), KEY).answers == {"kabc-001": False}
    opened.click("#leave")
    begin(opened, "Ann")
    assert read_sheet(saved(opened, tmp_path / "y.json"), KEY).answers == {"kabc-001": True}


@pytest.mark.slow
def test_loading_saved_answers(opened: Page, tmp_path: Path) -> None:
    def file(name: str, key: str, annotator: str, answers: dict[str, str]) -> Path:
        rows = [{"item": item, "relevant": word} for item, word in answers.items()]
        (tmp_path / name).write_text(json.dumps({"key": key, "annotator": annotator, "answers": rows}))
        return tmp_path / name

    opened.set_input_files("#file", file("1.json", "kabc", "Ann", {"kabc-001": "no", "kabc-002": "yes"}))
    wait_until_told(opened, "Loaded 2")
    assert place(opened) == "3 of 5 · 2 answered"
    for path, said in (
        (file("2.json", "kabc", "Ann", {"kabc-001": "yes", "kabc-003": "no"}), "Loaded 1 answers. 1 differ"),
        (file("3.json", "kxyz", "Ann", {}), "3.json belongs to other items"),
        (file("4.json", "kabc", "Bob", {}), "4.json has the answers of Bob, not of Ann"),
        (tmp_path / "annotate.html", "annotate.html can't be read"),
    ):
        opened.set_input_files("#file", path)
        wait_until_told(opened, said)
        assert opened.get_attribute("#status", "class") == "wrong"
    answers = read_sheet(saved(opened, tmp_path / "x.json"), KEY).answers
    assert answers == {"kabc-001": False, "kabc-002": True, "kabc-003": False}  # what was given here is kept


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marked_words_are_legible_on_both_grounds(opened: Page, scheme: str) -> None:
    from tests.report.colours import contrast

    opened.emulate_media(color_scheme=scheme)
    begin(opened)
    style = "e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    ink, ground = (_hex(colour) for colour in opened.locator("mark:visible").first.evaluate(style))
    assert contrast(ink, ground) > 4.5
    assert contrast(ink, _hex(opened.locator("body").evaluate("e => getComputedStyle(e).backgroundColor"))) > 4.5


def _hex(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])
