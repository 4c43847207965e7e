"""The debate's map: every paper's claims, each with evidence that is there, as the kept results give them today."""

from pathlib import Path

import polars as pl
import pytest
from tools.curves import curves
from tools.curves import drawn as drawn_curves
from tools.debate.__main__ import main
from tools.debate.claims import NONE, Claim, Point, fits, load_claims, the_map
from tools.debate.figure import OTHER, authors, drawn, table_of
from tools.pages.debate import debate

from exegete.base.errors import UsageError
from exegete.report.theme import to_svg
from exegete.wings.papers.catalogue import PAPERS
from exegete.wings.papers.rule import VERDICTS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def found() -> pl.DataFrame:
    return the_map(RESULTS)


def test_every_paper_has_claims_and_every_page_is_there() -> None:
    claims = load_claims()
    assert list(dict.fromkeys(claim.paper for claim in claims)) == [*PAPERS]
    assert len({claim.name for claim in claims}) == len(claims)
    assert all((ROOT / "docs" / claim.page).is_file() for claim in claims)


def test_counts_and_numbers_are_those_of_the_comparison(found: pl.DataFrame) -> None:
    """By hand, from the files that `exegete reproduce` wrote."""
    kept = pl.read_csv(RESULTS / "papers" / "jain_wallace_2019.csv", infer_schema=False)
    mine = kept.filter(pl.col("quantity") == "tau_grad", pl.col("model") == "BiLSTM", pl.col("table") != "released")
    row = found.filter(name="attention and gradient agree weakly").row(0, named=True)
    assert row["numbers"] == len(mine)
    assert {name: row[name] for name in VERDICTS} == {
        name: mine.filter(pl.col("verdict") == name).height for name in VERDICTS
    }
    one = mine.filter(pl.col("dataset") == "SST", pl.col("class") == "1").row(0, named=True)
    assert (row["published"], round(row["ours"], 6), row["verdict"]) == (0.36, float(one["ours"]), one["verdict"])
    words = found.filter(name="other weights, same prediction").row(0, named=True)
    assert (words["published"], words["verdict"], words["numbers"]) == (None, "direction only", 1)


def test_every_claim_is_counted_once(found: pl.DataFrame) -> None:
    assert (found.select(VERDICTS).sum_horizontal() == found["numbers"]).all()
    shown = table_of(found)
    assert shown["count"].sum() == found["numbers"].sum()
    assert shown.filter(verdict=OTHER)["count"].sum() == found.select(NONE).sum_horizontal().sum()
    ends = shown.group_by("claim").agg(pl.col("end").max())["end"]
    assert ends.to_list() == pytest.approx([1.0] * found.height)


def test_what_is_kept_and_shown_is_of_today(found: pl.DataFrame, tmp_path: Path) -> None:
    """Results were added? `python -m tools.debate results results/map`, and map.svg goes to docs/assets."""
    assert main([str(RESULTS), str(tmp_path)]) == 0
    assert (tmp_path / "map.csv").read_text() == (RESULTS / "map" / "map.csv").read_text()
    assert to_svg(drawn(found)) == (ROOT / "docs" / "assets" / "map.svg").read_text(encoding="utf8")
    assert main([]) == 2


def test_a_page_has_a_row_per_claim(found: pl.DataFrame) -> None:
    text = debate(ROOT / "docs" / "concepts" / "map.md")
    assert sum(line.startswith("| ") for line in text.splitlines()) == found.height + len(PAPERS)
    assert "](../papers/meister-2021.md)" in text
    assert authors("meister_2021") == "Meister et al. 2021"


def test_evidence_that_is_not_one_row_is_refused() -> None:
    point = Point(label="x", study="interventions", table="permutation_summary", where={"task": "sst"})
    with pytest.raises(UsageError, match="a point is exactly one"):
        point.found(RESULTS)
    with pytest.raises(ValueError, match="either rows or a finding"):
        Claim(paper="p", name="n", says="s", turns="t", page="p")
    assert not fits({"a": "b"}, {"a": "c|d"})


def test_learning_curves_are_those_that_were_kept() -> None:
    """Others are shown? `python -m tools.curves docs/assets/curves.svg`."""
    table = curves()
    assert table.filter("kept").height == table["line"].n_unique()
    assert to_svg(drawn_curves(table)) == (ROOT / "docs" / "assets" / "curves.svg").read_text(encoding="utf8")
