"""Tables of pages, as the site renders them: every row has the cells of its header, and no text is lost."""

import re
from html import unescape
from typing import NamedTuple

import markdown  # type: ignore[import-untyped]
import yaml

from exegete.experiments.tests import built_in_tests
from tests.docs.pages import PAGES, ROOT

# The site's own configuration, of which permalinks alone would add text of their own.
EXTENSIONS = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf8"))["markdown_extensions"]
NAMES = [extension if isinstance(extension, str) else next(iter(extension)) for extension in EXTENSIONS]
MARKDOWN = markdown.Markdown(extensions=NAMES)  # to set it up takes longer than to render a line
FENCE = re.compile(r"^([ \t]*)```.*?^\1```$", re.MULTILINE | re.DOTALL)
RULE = re.compile(r"[\s|:-]+")
CODE = re.compile(r"(`+).*?\1")


class SourceTable(NamedTuple):
    """A table as a page writes it: its lines, without the rule below the header."""

    lines: list[str]

    @property
    def cells(self) -> list[list[str]]:
        """The cells of every line: what lies between bars that are neither escaped nor code."""
        return [_split(line) for line in self.lines]


def _split(line: str) -> list[str]:
    """The cells of a line.

    >>> _split(r"| a | `b|c` | \\|d\\| |")
    ['a', '`b|c`', '|d|']
    """
    hidden = CODE.sub(lambda code: code[0].replace("|", "\0"), line.strip().replace(r"\|", "\0"))
    return [cell.strip().replace("\0", "|") for cell in hidden.removeprefix("|").removesuffix("|").split("|")]


def source_tables(text: str) -> list[SourceTable]:
    """All tables of a page that begin with a bar, in order."""
    blocks = re.findall(r"(?:^[ \t]*\|.*\n?)+", FENCE.sub("", text), re.MULTILINE)
    tables = [block.strip("\n").split("\n") for block in blocks]
    return [SourceTable([lines[0], *lines[2:]]) for lines in tables if len(lines) > 1 and RULE.fullmatch(lines[1])]


def rendered_rows(text: str) -> list[str]:
    """The rows of all tables of a page as HTML, in order."""
    return re.findall(r"<tr>(.*?)</tr>", MARKDOWN.reset().convert(text), re.DOTALL)


def _letters(html: str) -> str:
    """What a reader sees of it, without marks and spaces."""
    return re.sub(r"[\W_]", "", unescape(re.sub(r"<!--.*?-->|<[^>]+>", "", html, flags=re.DOTALL)))


def _as_paragraph(line: str) -> str:
    """A row rendered as a line of text, in which no bar means anything."""
    return str(MARKDOWN.reset().convert(" ".join(_split(line)).replace("|", " ")))


def test_every_row_of_a_table_has_the_cells_of_its_header_and_loses_no_text() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf8")
        tables = source_tables(text)
        for table in tables:
            header, *rows = table.cells
            for line, row in zip(table.lines[1:], rows, strict=True):
                assert len(row) == len(header), f"{page.name}: {line}"
        lines = [line for table in tables for line in table.lines]
        rows_there = rendered_rows(text)
        assert len(rows_there) == len(lines), f"{page.name}: a table is not rendered as one"
        for line, html in zip(lines, rows_there, strict=True):
            assert _letters(html) == _letters(_as_paragraph(line)), page.name


def test_text_that_is_lost_is_noticed() -> None:
    text = "| a | b |\n|---|---|\n| statistic | Γ(|e| | α): a coefficient |\n"
    [table] = source_tables(text)
    assert [len(row) for row in table.cells] == [2, 5]
    assert _letters(rendered_rows(text)[1]) != _letters(_as_paragraph(table.lines[1]))


def test_a_table_of_tests_asks_what_the_tests_ask() -> None:
    """One definition of a test on all pages: the declared one."""
    tests = built_in_tests()
    tables = [table.cells for page in PAGES for table in source_tables(page.read_text(encoding="utf8"))]
    for header, *rows in tables:
        if header[0] == "test" and header[1] in ("asks", "question"):
            for name, question, *_ in rows:
                assert question == tests[re.findall(r"`(\w+)`", name)[0]].question
