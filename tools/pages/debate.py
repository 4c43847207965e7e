"""The debate's map as tables of a page: one per paper, a row per claim."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from exegete.report.columns import significant
from exegete.wings.papers.catalogue import PAPERS
from exegete.wings.papers.rule import VERDICTS
from tools.debate.claims import NONE, the_map
from tools.debate.figure import authors
from tools.pages.place import ROOT, to
from tools.pages.table import markdown_table

HEADER = ("claim", "printed", "ours, 95 %", "verdict", "all its numbers", "what turns it")


def debate(page: Path) -> str:
    """Every claim with its evidence, our verdict, and what turns it, from `results/`."""
    papers: dict[str, list[tuple[str, ...]]] = {}
    for row in the_map(ROOT / "results").iter_rows(named=True):
        papers.setdefault(row["paper"], []).append(_cells(row, page))
    titles = {name: f"### [{authors(name)}]({to(_page(name), page)})" for name in papers}
    return "\n".join(f"{titles[name]}\n\n{markdown_table(HEADER, rows)}" for name, rows in papers.items())


def verdicts(page: Path) -> str:
    """How many printed numbers of every paper have each verdict, as `results/papers` keeps them."""
    rows = [(f"[{authors(name)}]({to(_page(name), page)})", *_by_verdict(name)) for name in PAPERS]
    return markdown_table(("paper", "numbers", *VERDICTS[:5], "without ours"), rows)


def _by_verdict(paper: str) -> list[str]:
    kept = pl.read_csv(ROOT / "results" / "papers" / f"{paper}.csv", infer_schema=False)["verdict"].to_list()
    return [str(len(kept)), *(str(kept.count(name)) for name in VERDICTS[:5]), str(sum(map(NONE.__contains__, kept)))]


def _page(paper: str) -> str:
    return f"docs/papers/{paper.replace('_', '-')}.md"


def _cells(row: Mapping[str, Any], page: Path) -> tuple[str, ...]:
    printed = row["evidence"] + (f": {significant(row['published'])}" if row["published"] is not None else "")
    ours = _interval(row["ours"], row["low"], row["high"])
    turned = _interval(row["turned_value"], row["turned_low"], row["turned_high"])
    beside = f": {row['turned']} {turned}" if row["turned"] else ""
    more = f"[{row['turns']}]({to('docs/' + row['page'], page)}){beside}"
    return row["says"], printed, ours, f"**{row['verdict']}**", _counts(row), more


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    return "–" if value is None else f"{significant(value)} [{significant(low)}, {significant(high)}]"


def _counts(row: Mapping[str, Any]) -> str:
    """How many of the printed numbers have each verdict; what is missing is one word."""
    said = [f"{row[name]} {name}" for name in VERDICTS if name not in NONE and row[name]]
    missing = sum(row[name] for name in NONE)
    return ", ".join([*said, *([f"{missing} without ours"] if missing else [])])
