"""Pages read as they are in the clone: no mark waits for a site generator, and what the code says is up to date."""

import re
from pathlib import Path

import pytest
import yaml
from tools.pages.declarations import PAGE
from tools.pages.marks import include_marks, pages, written
from tools.redirects import address, on_post_build

from exegete.experiments.tests import built_in
from tests.docs.pages import ROOT

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf8"))
REDIRECTS: dict[str, str] = CONFIG["extra"]["redirects"]


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _headings(page: Path) -> set[str]:
    return {
        re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", page.read_text(encoding="utf8"), re.MULTILINE)
    }


@pytest.mark.parametrize("page", pages(), ids=_named)
def test_a_page_opens_as_it_is(page: Path) -> None:
    assert include_marks(page.read_text(encoding="utf8")) == []


def test_include_marks_are_found() -> None:
    assert include_marks('text\n--8<-- "a.py"\n::: exegete\n    members') == ['--8<-- "a.py"', "::: exegete"]


@pytest.mark.parametrize("page", pages(), ids=_named)
def test_what_is_read_from_the_code_is_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf8") == written(page), "run `make pages`"


def test_marks_are_found() -> None:
    filled = [page for page in pages() if "<!-- begin " in page.read_text(encoding="utf8")]
    assert {_named(page) for page in filled} >= {"docs/index.md", "docs/reference/api.md", PAGE}
    for page in filled:
        text = page.read_text(encoding="utf8")
        assert text.count("<!-- begin ") == text.count("<!-- end -->")


def test_every_test_of_the_audit_has_a_section() -> None:
    assert _headings(ROOT / PAGE) >= {*built_in()}


@pytest.mark.parametrize("old", REDIRECTS)
def test_an_address_of_before_leads_to_a_page(old: str) -> None:
    page, _, anchor = REDIRECTS[old].partition("#")
    assert not (ROOT / "docs" / f"{old}.md").exists()
    assert not anchor or anchor in _headings(ROOT / "docs" / page)


def test_redirects_are_written(tmp_path: Path) -> None:
    on_post_build({"site_dir": str(tmp_path), "extra": {"redirects": {"tests/reads": "tests/index.md#reads"}}})
    assert 'url=../#reads"' in (tmp_path / "tests" / "reads" / "index.html").read_text()
    assert address("how-to/own-model", "reference/own-model.md") == "../../reference/own-model/"


def test_the_overview_has_every_concept_in_the_groups_of_the_menu() -> None:
    [menu] = [part["Concepts"] for part in CONFIG["nav"] if "Concepts" in part]
    groups = {
        name: [path for page in listed for path in page.values()]
        for part in menu
        for name, listed in part.items()
        if isinstance(listed, list)
    }
    text = (ROOT / "docs/concepts/index.md").read_text(encoding="utf8")
    told = {
        part.partition("\n")[0]: [f"concepts/{page}" for page in re.findall(r"\n\| \[[^]]+\]\((.+?)\)", part)]
        for part in text.split("\n## ")[1:]
    }
    assert told == groups
    there = {f"concepts/{path.name}" for path in (ROOT / "docs/concepts").glob("*.md")} - {"concepts/index.md"}
    assert {page for listed in groups.values() for page in listed} == there
