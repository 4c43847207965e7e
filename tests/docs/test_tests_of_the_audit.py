"""Every test of the audit has a page, and the page says what the criteria say."""

from pathlib import Path

import pytest

from exegete.audits.goals import DECIDE
from exegete.audits.scorecard import Criteria, load_criteria

PAGES = Path(__file__).parents[2] / "docs" / "tests"
NAMES = [name for name in Criteria.model_fields if name != "version"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_tells_its_criterion(name: str) -> None:
    criterion, page = getattr(load_criteria(), name), (PAGES / f"{name}.md").read_text()
    for said in (criterion.question, criterion.paper, str(criterion)):
        assert said in page
    named = next(line for line in page.splitlines() if line.startswith("| decides |"))
    for goal, tests in DECIDE.items():
        assert (f"`--goal {goal}`" in named) == (name in tests)
    threshold = float(
        next(line for line in page.splitlines() if "| threshold |" in line).split("|")[2].replace("−", "-")
    )
    assert abs(threshold) == criterion.margin


def test_there_are_no_other_pages() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {*NAMES, "index"}
