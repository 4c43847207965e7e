"""Every test of the audit has a page, and pages and tables say what the declarations say."""

from pathlib import Path

import pytest
from tools.audit_pages import MARKS, ROOT, pages

from exegete.experiments.tests import built_in


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_a_page_says_what_is_declared(path: Path) -> None:
    written = path.read_text(encoding="utf8")
    assert written == pages()[path], "run `python -m tools.audit_pages`"
    assert path.stem in built_in() or written.count(MARKS[0]) == written.count(MARKS[1]) == 1


def test_there_are_no_other_pages_and_all_are_in_the_menu() -> None:
    assert {page.stem for page in (ROOT / "docs" / "tests").glob("*.md")} == {*built_in(), "index"}
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf8")
    assert all(f"{name}: tests/{name}.md" in menu for name in built_in())
