"""Calibration: Γ and M of every draw, with what the audit answered."""

import altair as alt
import polars as pl

from exegete.plugins import NEUTRAL, PALETTE, WIDTH, Criteria, in_order, inline, nothing, themed
from exegete.wings.calibration.count import ANSWERS, DIFFER

COLOURS = dict.fromkeys(ANSWERS, NEUTRAL) | {
    "yes": PALETTE[2], "yes by size": PALETTE[0], "partly": PALETTE[4], "no": PALETTE[1],
} | dict.fromkeys(DIFFER, PALETTE[3])  # fmt: skip
SHAPES = {
    "strong": "circle", "partly": "square", "hardly": "cross", "unread": "triangle-down", "flat": "stroke",
    "between": "diamond",
}  # fmt: skip


def calibration(draws: pl.DataFrame, criteria: Criteria) -> alt.Chart | alt.FacetChart:
    """A point per draw, a panel per audit: M to the right, Γ upwards; colour is the answer and shape the truth."""
    table = draws.filter(pl.col("ranks").is_not_null()).with_columns(
        pl.format("the {} audit", "audit").alias("audit"),
        reads_at=pl.lit(criteria["reads"].margin),
        ranks_at=pl.lit(criteria["ranks"].margin),
    )
    if table.is_empty():
        return nothing("no draw of a model whose truth is known")
    panels = in_order(table["audit"])
    said = [answer for answer in ANSWERS if answer in table["answer"]]
    shapes = {truth: shape for truth, shape in SHAPES.items() if truth in table["truth"]}
    side = (WIDTH - 60) // len(panels) - 30
    drawn = _layers(said, shapes).properties(width=side, height=side)
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


def _layers(said: list[str], shapes: dict[str, str]) -> alt.LayerChart:
    """Colours of the answers that were given, and shapes of the truths that were met."""
    scale = alt.Scale(domain=[-1, 1], nice=False)
    ticks = [-1, -0.5, 0, 0.5, 1]
    x = alt.X("reads:Q", scale=scale, axis=alt.Axis(title="M: through its own weight", values=ticks, format="~g"))
    y = alt.Y("ranks:Q", scale=scale, axis=alt.Axis(title="Γ: weights order words", values=ticks, format="~g"))
    colour = alt.Color(
        "answer:N", scale=alt.Scale(domain=said, range=[COLOURS[answer] for answer in said]),
        legend=alt.Legend(title="answer", columns=5),
    )  # fmt: skip
    shape = alt.Shape(
        "truth:N", scale=alt.Scale(domain=list(shapes), range=list(shapes.values())),
        legend=alt.Legend(title="truth", columns=len(shapes)),
    )  # fmt: skip
    rule = alt.Chart().mark_rule(color=NEUTRAL, strokeDash=[4, 3])
    return alt.LayerChart(
        layer=[
            rule.encode(x=alt.X("reads_at:Q", scale=scale)),
            rule.encode(y=alt.Y("ranks_at:Q", scale=scale)),
            alt.Chart().mark_point(size=26, strokeWidth=1.3).encode(x=x, y=y, color=colour, shape=shape),
        ]
    )
