"""The debate's map as a figure: a line per claim, its printed numbers by verdict, and what turns it."""

from typing import cast

import altair as alt
import polars as pl

from exegete.report.theme import NEUTRAL, PALETTE, inline, themed
from exegete.wings.papers.paper import load_paper
from exegete.wings.papers.rule import VERDICTS
from tools.debate.claims import NONE

OTHER = "no number of ours"
SHOWN = (*(name for name in VERDICTS if name not in NONE), OTHER)
COLOURS = (PALETTE[2], PALETTE[0], PALETTE[1], PALETTE[3], PALETTE[4], NEUTRAL)
WIDTH, STEP = 230, 21


def authors(paper: str) -> str:
    """How a paper is called: Jain & Wallace 2019."""
    about = load_paper(paper)
    names = [name.strip().split()[-1] for name in about.authors.replace(" and ", ",").split(",")]
    return f"{names[0]} et al. {about.year}" if len(names) > 2 else f"{' & '.join(names)} {about.year}"


def table_of(found: pl.DataFrame) -> pl.DataFrame:
    """A row per claim and verdict that some of its numbers have."""
    rows = []
    for row in found.iter_rows(named=True):
        counts = {name: row[name] for name in SHOWN[:-1]} | {OTHER: sum(row[name] for name in NONE)}
        start = 0.0
        for name, count in counts.items():
            end = start + count / row["numbers"]
            told = {"paper": authors(row["paper"]), "claim": row["name"], "verdict": name, "count": count}
            rows.append(told | {"start": start, "end": end, "turns": row["turns"]})
            start = end
    return pl.DataFrame(rows).filter(pl.col("count") > 0)


def drawn(found: pl.DataFrame) -> alt.VConcatChart:
    """Of every claim the printed numbers by verdict, with how many they are, and what turns the claim."""
    table = table_of(found)
    parts = [_paper(part, last) for part, last in _lasts(table.partition_by("paper", maintain_order=True))]
    whole = alt.vconcat(*parts, spacing=10).properties(
        title=alt.TitleParams(
            "Printed numbers of every claim, by what ours say of them; their count, and what turns the claim."
        )
    )
    said = "Of every published claim of seven papers the printed numbers by our verdict, and what turns it."
    return cast(alt.VConcatChart, themed(cast(alt.LayerChart, whole), said, table))


def _lasts(parts: list[pl.DataFrame]) -> list[tuple[pl.DataFrame, bool]]:
    return [(part, place == len(parts) - 1) for place, part in enumerate(parts)]


def _paper(part: pl.DataFrame, last: bool) -> alt.LayerChart:
    """One paper's claims."""
    claims = part["claim"].unique(maintain_order=True).to_list()
    axis = alt.Axis(title=None, domain=False, ticks=False, labelLimit=320, labelPadding=8, minExtent=290)
    y = alt.Y("claim:N", sort=claims, axis=axis)
    x = alt.X("start:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title=None, format="%", labels=last, grid=False))
    colour = alt.Color("verdict:N", scale=alt.Scale(domain=list(SHOWN), range=list(COLOURS)))
    base = alt.Chart(inline(part)).encode(y=y)
    totals = part.group_by("claim", "turns", maintain_order=True).agg(pl.col("count").sum())
    beside = alt.Chart(inline(totals)).encode(y=y)
    layers = [
        base.mark_bar(height=13).encode(x=x, x2="end:Q", color=colour),
        beside.mark_text(align="left", dx=8, style="note").encode(x=alt.value(WIDTH), text="count:Q"),
        beside.mark_text(align="left", dx=36, style="note").encode(x=alt.value(WIDTH), text="turns:N"),
    ]
    chart = alt.LayerChart(layer=layers).properties(width=WIDTH, height=alt.Step(STEP))
    return chart.properties(title=alt.TitleParams(part["paper"][0], fontWeight="bold", offset=4))
