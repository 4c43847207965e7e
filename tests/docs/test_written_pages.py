"""Pages read as they are in the clone: no mark waits for a site generator, and what the code says is up to date."""

import re
from pathlib import Path

import yaml
from tools.pages.declarations import PAGE
from tools.pages.marks import include_marks, pages, written
from tools.redirects import address, on_post_build

from exegete.experiments.tests import built_in_tests
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


def test_pages_open_as_they_are() -> None:
    assert [_named(page) for page in pages() if include_marks(page.read_text(encoding="utf8"))] == []


def test_include_marks_are_found() -> None:
    assert include_marks('text\n--8<-- "a.py"\n::: exegete\n    members') == ['--8<-- "a.py"', "::: exegete"]


def test_what_is_read_from_the_code_is_up_to_date() -> None:
    late = [_named(page) for page in pages() if page.read_text(encoding="utf8") != written(page)]
    assert late == [], "run `make pages`"


def test_marks_are_found() -> None:
    filled = [page for page in pages() if "<!-- begin " in page.read_text(encoding="utf8")]
    assert {_named(page) for page in filled} >= {"docs/index.md", "docs/reference/api.md", PAGE}
    for page in filled:
        text = page.read_text(encoding="utf8")
        assert text.count("<!-- begin ") == text.count("<!-- end -->")


def test_every_test_of_the_audit_has_a_section() -> None:
    assert _headings(ROOT / PAGE) >= {*built_in_tests()}


def test_addresses_of_before_lead_to_pages() -> None:
    for old, new in REDIRECTS.items():
        page, _, anchor = new.partition("#")
        assert not (ROOT / "docs" / f"{old}.md").exists(), old
        assert (ROOT / "docs" / page).exists(), old
        assert not anchor or anchor in _headings(ROOT / "docs" / page), old


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
