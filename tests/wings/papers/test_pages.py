"""The pages of the papers: what they show is what was kept, and what was kept is what the kept results give."""

from pathlib import Path

import polars as pl
import pytest

from exegete.base.errors import ExegeteError
from exegete.wings.papers.catalogue import PAPERS
from exegete.wings.papers.paper import load_paper
from exegete.wings.papers.reproduce import compare, find_tables
from exegete.wings.papers.reproduction import (
    BEGIN,
    END,
    block_of,
    comparison_tables,
    into_page,
    left_over_table,
    markdown,
)

ROOT = Path(__file__).parents[3]


def _kept(name: str) -> pl.DataFrame:
    path = ROOT / "results" / "papers" / f"{name}.csv"
    numbers = dict.fromkeys(("published", "std", "ours", "low", "high", "reference", "tolerance"), pl.Float64)
    return pl.read_csv(path, schema_overrides={**numbers, "class": pl.String}, infer_schema_length=None)


@pytest.mark.parametrize("name", [*PAPERS])
def test_a_page_shows_what_was_kept(name: str) -> None:
    kept = _kept(name).with_columns(pl.selectors.string().fill_null(""))
    page = (ROOT / "docs" / "papers" / f"{name.replace('_', '-')}.md").read_text(encoding="utf8")
    assert block_of(page) == markdown(load_paper(name), kept)


@pytest.mark.parametrize("name", [*PAPERS])
def test_what_was_kept_is_what_the_results_give(name: str) -> None:
    """Results are added without the comparison? Run `exegete reproduce PAPER --from results` again."""
    found = compare(*find_tables(name), ROOT / "results").frame.with_columns(pl.selectors.float().round(6))
    kept = _kept(name).with_columns(pl.selectors.string().fill_null(""))
    assert found.select(pl.selectors.string()).equals(kept.select(found.select(pl.selectors.string()).columns))
    for column in ("published", "ours", "low", "high"):
        assert found[column].to_list() == pytest.approx(kept[column].to_list(), nan_ok=True)


@pytest.mark.parametrize("name", [*PAPERS])
def test_what_is_reproduced_could_have_failed(name: str) -> None:
    """No effect, had it been printed, would not be reproduced; or it is what is printed, and the row says so."""
    kept = _kept(name).filter(pl.col("verdict") == "reproduced", pl.col("reference").is_not_null())
    margin, level = pl.col("tolerance"), pl.col("reference")
    of_no_effect = kept.filter(level >= pl.col("low") - margin, level <= pl.col("high") + margin)
    assert all(reason.startswith("no effect is what is printed") for reason in of_no_effect["reason"])
    assert of_no_effect.height == {"vashishth_2019": 12}.get(name, 0)


def test_every_number_is_on_the_page_once() -> None:
    paper = load_paper("vashishth_2019")
    frame = compare(paper, tuple(paper.tables), ROOT / "results").frame
    shown = sum(table.frame.height for table in comparison_tables(paper, frame))
    assert shown + left_over_table(frame).frame["numbers"].sum() == frame.height == 170


def test_numbers_go_between_the_marks() -> None:
    page = f"# A\n\n{BEGIN}\nold\n{END}\n\nend\n"
    assert into_page(page, "new") == f"# A\n\n{BEGIN}\nnew\n{END}\n\nend\n"
    assert block_of(into_page(page, "new")) == "new"
    with pytest.raises(ExegeteError, match="the page needs one line"):
        into_page("# A\n", "new")
