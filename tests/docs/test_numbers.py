"""Numbers in the prose of pages: those that are marked with their place in `results/` are what stands there.

A mark is a comment right after a number, which no reader sees: `0.11<!-- = interventions/permutation_summary mean;
task=sst; measure=median_tvd -->`: the table, the column (`100*column` in per cent), and what its row has in other
columns, where * stands for anything.
"""

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"(?P<number>[−+]?\d[\d,]*(?:\.\d+)?)(?: %| points)?<!-- = (?P<place>.+?) -->", re.DOTALL)
ANY = "<!-- = "


@lru_cache
def table(name: str) -> list[dict[str, str | None]]:
    return pl.read_csv(ROOT / "results" / f"{name}.csv", infer_schema=False).to_dicts()


def row_of(place: str) -> dict[str, str | None]:
    """The row that a mark names."""
    first, *where = (part.strip() for part in place.split(";"))
    wanted = dict(part.split("=", 1) for part in where)
    found = table(first.split()[0])
    rows = [row for row in found if all(fnmatchcase(row[key] or "", value) for key, value in wanted.items())]
    assert len(rows) == 1, f"{len(rows)} rows are {place}"
    return rows[0]


def looked_up(place: str) -> float:
    """The number that stands in a place."""
    scale, _, column = place.partition(";")[0].split()[1].rpartition("*")
    return float(row_of(place)[column] or "nan") * float(scale or 1)


def as_written(value: float, number: str) -> str:
    """A number with as many digits, and a sign where one is written."""
    digits = len(number.partition(".")[2])
    said = f"{value:+.{digits}f}" if number[0] in "−+" else f"{value:.{digits}f}"
    return said.replace("-", "−")


def pages() -> list[Path]:
    return [path for path in (ROOT / "docs").rglob("*.md") if ANY in path.read_text(encoding="utf8")]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_marked_numbers_are_those_of_the_results(page: Path) -> None:
    text = page.read_text(encoding="utf8")
    found = list(MARK.finditer(text))
    assert len(found) == text.count(ANY), f"a mark of {page.name} follows no number"
    for match in found:
        number = match["number"].replace(",", "")
        assert number == as_written(looked_up(match["place"]), number), match["place"]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_says_what_is_of_one_training(page: Path) -> None:
    """Numbers of fewer than three trainings are not told as if they held in general."""
    text = page.read_text(encoding="utf8")
    seeds = [row_of(match["place"]).get("seeds") for match in MARK.finditer(text)]
    if any(found is not None and float(found) < 3 for found in seeds):
        assert re.search(r"\b(one|single) (training|seed|checkpoint)", text, re.IGNORECASE), page.name


def test_the_pages_of_the_debate_are_marked() -> None:
    marked = {path.stem for path in pages()}
    assert {path.stem for path in (ROOT / "docs" / "papers").glob("*.md")} <= marked
    assert {"audits", "interventions", "kinds", "minilm", "multiverse", "readable", "saliency"} <= marked
    assert sum(path.read_text(encoding="utf8").count(ANY) for path in pages()) >= 500


def test_a_wrong_number_is_found() -> None:
    row = "task=sst; model=bilstm:vectors=glove-50; class=all; bin=all; measure=flips"
    place = f"interventions/permutation_summary mean; {row}"
    assert as_written(looked_up(place), "0.12") == "0.12"
    assert as_written(looked_up(place), "0.118") != "0.117"
    assert as_written(-0.488, "−0.49") == "−0.49"
