"""Calibration: Γ and M of every draw, with what the audit answered."""

import altair as alt
import polars as pl

from exegete.calibration.count import ANSWERS
from exegete.page.panels import WIDTH, in_order
from exegete.page.theme import NEUTRAL, PALETTE, inline, nothing, themed

COLOURS = {
    "yes": PALETTE[2], "yes by size": PALETTE[0], "no": PALETTE[1], "hangs on": PALETTE[3], "undecided": NEUTRAL,
}  # fmt: skip
SHAPES = {"yes": "circle", "no": "cross", "between": "diamond"}  # of the truth
THRESHOLDS = {"reads": 0.25, "ranks": 0.7}


def calibration(draws: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """A point per draw, a panel per audit: M to the right, Γ upwards; colour is the answer and shape the truth."""
    table = draws.filter(pl.col("ranks").is_not_null()).with_columns(
        pl.format("the {} audit", "audit").alias("audit"),
        reads_at=pl.lit(THRESHOLDS["reads"]),
        ranks_at=pl.lit(THRESHOLDS["ranks"]),
    )
    if table.is_empty():
        return nothing("no draw of a model whose truth is known")
    panels = in_order(table["audit"])
    side = (WIDTH - 60) // len(panels) - 30
    drawn = _layers().properties(width=side, height=side)
    header = alt.Header(title=None)
    faceted: alt.FacetChart = drawn.facet(
        column=alt.Column("audit:N", sort=panels, header=header), data=inline(table), spacing=24
    )
    read = "A point per draw. Attention may be read above and right of both dashed rules."
    return themed(
        faceted.properties(title=read),
        "What the audit answers of models whose truth is known, by how much of what words do goes through their own "
        "weights and by how well weights order words.",
        table.drop("reads_at", "ranks_at"),
    )


def _layers() -> alt.LayerChart:
    scale = alt.Scale(domain=[-1, 1], nice=False)
    ticks = [-1, -0.5, 0, 0.5, 1]
    x = alt.X("reads:Q", scale=scale, axis=alt.Axis(title="M: through its own weight", values=ticks, format="~g"))
    y = alt.Y("ranks:Q", scale=scale, axis=alt.Axis(title="Γ: weights order words", values=ticks, format="~g"))
    colour = alt.Color(
        "answer:N", scale=alt.Scale(domain=list(ANSWERS), range=[COLOURS[said] for said in ANSWERS]),
        legend=alt.Legend(title="answer", columns=len(ANSWERS)),
    )  # fmt: skip
    shape = alt.Shape(
        "truth:N", scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values())),
        legend=alt.Legend(title="truth", columns=len(SHAPES)),
    )  # fmt: skip
    rule = alt.Chart().mark_rule(color=NEUTRAL, strokeDash=[4, 3])
    return alt.LayerChart(
        layer=[
            rule.encode(x=alt.X("reads_at:Q", scale=scale)),
            rule.encode(y=alt.Y("ranks_at:Q", scale=scale)),
            alt.Chart().mark_point(size=26, strokeWidth=1.3).encode(x=x, y=y, color=colour, shape=shape),
        ]
    )
