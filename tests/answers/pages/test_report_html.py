"""The page: well formed, alone, safe, legible, the same every time."""

import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import altair as alt
import polars as pl
import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from exegete.answers.pages.document import render
from exegete.report.blocks import LONG, LONGEST, standalone
from exegete.report.drawing import drawing
from exegete.report.heatmap import HeatMap, HeatRow
from exegete.report.markup import file_link, fill_template
from exegete.report.section import Figure, Note, Report, Section, Table, Verdict, anchor
from exegete.report.theme import SENTINELS, inline, themed
from tests.report.colours import contrast

HOSTILE = '<script>alert("x")</script>\'&'
FRAME = pl.DataFrame({"model": [HOSTILE, "b"], "mean": [0.25, None], "n": [1000, 2]})


def chart(label: str) -> alt.Chart:
    points = alt.Chart(inline(pl.DataFrame({"x": [1, 2], "label": [label, "b"]}))).mark_point(clip=True)
    drawn: alt.Chart = points.encode(x="x:Q", color="label:N")
    return themed(drawn, f"Points of {label}.")


def heat(word: str) -> HeatMap:
    rows = (HeatRow(word, (0.5, 0.2), signed=False), HeatRow("signed", (0.5, -0.2), signed=True))
    return HeatMap(word, (word, "b"), rows, word)


def report(word: str = HOSTILE) -> Report:
    section = Section(
        word,
        word,
        (word,),
        (Table(word, FRAME, word), Table("second", FRAME)),
        (Figure(word, chart(word), word, FRAME), Figure("plain", chart("a"))),
        (heat(word),),
        Note(word, word, word, word),
        (Section(word, paragraphs=(word,), tables=(Table(word, FRAME),)),),
    )
    full = Verdict(
        word, word, word, word, 0.5, 10, (0.4, 0.6), 0.99, 0.0, word, "holds", word, word, word, word, word,
        threshold=0.3, section=word,
    )  # fmt: skip
    return Report(
        title=word,
        question=word,
        answer=f"{word}. {word}\n\n{word}\n\n{word}",
        grade=word,
        first=Figure(word, chart(word), word),
        findings=(word,),
        verdicts=(full, Verdict("quiet", votes=False, doubt=word)),
        facts={word: word},
        sections=(section, section),
        cite=word,
        goal=word,
        user=word,
        untested=(word,),
        comparison=Section("Side", "", (word,), (Table(word, FRAME),), (Figure(word, chart(word)),)),
        appendix=(Section("Data and models", paragraphs=(word,)),),
    )


@cache
def hostile() -> str:
    """A page all of whose words are hostile."""
    return render(report())


@cache
def plain() -> str:
    return render(report("word"))


VOID = frozenset({"meta", "br", "hr", "link", "input", "img"})


class Reader(HTMLParser):
    """Checks that tags are balanced; keeps elements, headings, ids and links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


@cache
def read() -> Reader:
    return Reader(hostile())


def test_nothing_is_fetched() -> None:
    for name, attributes in read().elements:
        for key in ("src", "href", "xlink:href", "action", "srcset", "data"):
            assert not re.match(r"\s*(https?:)?//", attributes.get(key) or ""), (name, attributes)
    assert "@import" not in hostile()
    assert not re.search(r"url\((?!#)", hostile())
    assert {name for name, _ in read().elements}.isdisjoint({"link", "img", "iframe", "object", "base"})


def test_hostile_words_are_text() -> None:
    assert len(read().all("script")) == 1
    assert "<script>alert" not in hostile()
    assert hostile().count("&lt;script&gt;alert") > 15
    assert not any(key.startswith("on") for _, attributes in read().elements for key in attributes)


def test_addresses_are_unique_and_found() -> None:
    ids = [attributes["id"] for _, attributes in read().elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [str(link["href"])[1:] for link in read().all("a") if str(link["href"]).startswith("#")]
    assert targets
    assert set(targets) <= set(ids)
    named = " ".join(str(svg["aria-labelledby"]) for svg in read().all("svg")).split()
    assert set(named) <= set(ids)


def test_a_screen_reader_finds_its_way() -> None:
    names = [name for name, _ in read().elements]
    assert all(names.count(landmark) == 1 for landmark in ("header", "nav", "main", "footer", "h1"))
    levels = [int(name[1]) for name in names if re.fullmatch(r"h[1-6]", name)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert names.count("caption") == names.count("table")
    assert all(cell.get("scope") in ("col", "row") for cell in read().all("th"))
    assert all(svg.get("role") == "img" for svg in read().all("svg"))
    assert read().all("html")[0]["lang"] == "en"


def test_the_answer_comes_first_and_versions_last() -> None:
    page = plain()
    pieces = (
        'class="answer graded"', 'class="more read"', "Figure 1", 'class="meant"', 'id="models"', 'id="scorecard"',
        'id="findings"', 'id="untested"', 'id="word"', 'id="word-2"', 'id="data-and-models"', 'id="facts"', 'id="cite"',
    )  # fmt: skip
    order = [page.index(piece) for piece in pieces]
    assert order == sorted(order)
    assert page.index("Table 1. word") < page.index("Table 2. What decides") < page.index("Table 3. word")
    for kind in ("Table", "Figure", "Text"):
        numbers = [int(n) for n in re.findall(rf"<strong>{kind} (\d+)\.", page)]
        assert numbers == list(range(1, len(numbers) + 1))
    contents = [link["href"] for link in Reader(page).all("a") if str(link["href"]).startswith("#")][1:]
    assert contents[:5] == ["#answer", "#models", "#scorecard", "#findings", "#untested"]


def test_an_answer_of_several_models_has_no_grade() -> None:
    page = render(Report("t", "q", "Of 2 models: partly for 2.\n\nOne: Partly."))
    assert '<p class="answer">Of 2 models: partly for 2.</p>' in page
    assert 'class="grade"' not in page
    assert 'class="more read"' not in page


def test_a_test_leads_to_its_section_and_back() -> None:
    page = plain()
    assert '<a href="#word">word</a>' in page
    section = page[page.index('<section id="word">') :]
    assert section.index('class="strip"') < section.index('class="method"') < section.index("<figure")
    strip = section[: section.index("</ul>")]
    assert "✓ holds" in strip
    assert "0.500 [0.400, 0.600]" in strip


def test_no_sentinel_colours_are_left() -> None:
    assert not any(sentinel in hostile() for sentinel in SENTINELS.values())


def test_the_same_report_gives_the_same_bytes() -> None:
    assert render(report()) == hostile()


def test_files_to_take_away() -> None:
    links = {str(link["download"]): str(link["href"]) for link in read().all("a") if "download" in link}
    drawings = [b64decode(href.partition("base64,")[2]) for name, href in links.items() if name.endswith(".svg")]
    assert len(drawings) == 2 + 2 * (
        2 + 1
    )  # of the answer and the comparison; and two figures and a text of each section
    for svg in drawings:
        root = ET.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert b"var(--" not in svg
    assert b64decode(links["exegete.bib"].partition("base64,")[2]).decode() == HOSTILE
    csv = next(href for name, href in links.items() if name.startswith("table-3"))
    assert pl.read_csv(b64decode(csv.partition("base64,")[2])).equals(FRAME)


def test_a_file_is_the_drawing_on_white() -> None:
    inlined = standalone(drawing(chart("a")).inline("f"))
    body = inlined.partition("/>")[2]
    assert inlined.partition("/>")[0].endswith('fill="#ffffff"')
    assert re.sub(r"\bf-(\d)", r"\1", body) == re.sub(
        r"\bf\w{8}-(\d)", r"\1", drawing(chart("a")).svg.partition("/>")[2]
    )


def test_long_tables_scroll_in_their_own_box() -> None:
    tables = [Table("t", pl.DataFrame({"x": range(n)})) for n in (LONG, LONG + 1)]
    page = render(Report("t", "q", "a", sections=[Section(f"s{len(t.frame)}", tables=[t]) for t in tables]))
    assert page.count('class="scroll"') == page.count('class="scroll long"') == 1


def test_one_table_is_seen_and_the_others_open() -> None:
    section = hostile()[hostile().index('<section id="script-alert') :]
    assert section.index("Table 3.") < section.index('class="more-tables"') < section.index("Table 4.")
    assert "1 more table: second" in hostile()


def test_long_numbers_are_cut_and_say_so() -> None:
    data = pl.DataFrame({"x": range(LONGEST + 50)})
    page = render(Report("t", "q", "a", sections=(Section("s", figures=(Figure("f", chart("a"), data=data),)),)))
    assert "The first 200 of 250 rows" in page
    assert page.count("<tr>") == LONGEST + 1
    csv = re.search(r'data:text/csv;charset=utf-8;base64,([^"]+)', page)
    assert csv is not None
    assert len(pl.read_csv(b64decode(csv[1]))) == len(data)


def test_a_report_may_be_short() -> None:
    read = Reader(render(Report("t", "q", "a")))
    assert not read.all("table")
    assert not read.all("pre")


@pytest.mark.parametrize("scheme", [0, 1])
def test_words_have_contrast_in_both_schemes(scheme: int) -> None:
    css = files("exegete.report").joinpath("style.css").read_text(encoding="utf8")
    colours = {name: pair.split(", ")[scheme] for name, pair in re.findall(r"--(\w+): light-dark\(([^)]+)\)", css)}
    for ink in ("ink", "muted", "link", "holds", "fails", "unsure"):
        assert contrast(colours[ink], colours["paper"]) >= 4.5
    for ground in ("for", "against", "size"):  # words on the strongest shade
        assert contrast(colours["ink"], colours[ground]) >= 4.5
    for ink in ("ink", "muted"):
        assert contrast(colours[ink], colours["wash"]) >= 4.5


def test_colours_are_named_once() -> None:
    css = files("exegete.report").joinpath("report.css").read_text(encoding="utf8")
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=[;, )])", css)
    assert "prefers-reduced-motion" in hostile()


def test_templates_escape_unless_told() -> None:
    link = file_link("x", "text/plain", '"<', "a < b")
    assert link.endswith('download="&#34;&lt;" aria-label="Download &#34;&lt;">Download a &lt; b</a>')
    assert f'<p class="files">{link}</p>' in fill_template("report/templates/figure.html", svg=link, **WITHIN)
    with pytest.raises(UndefinedError):  # what a template needs is given, or nothing is written
        fill_template("report/templates/figure.html", svg=link)
    assert anchor("???") == "section"


WITHIN = {
    "reading": "",
    "figure": Figure("f", chart("a")),
    "label": "Figure 1",
    "name": "f",
    "image": Markup(),
    "numbers": Markup(),
}
