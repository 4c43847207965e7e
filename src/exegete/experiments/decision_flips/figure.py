"""Decision flips: four tiles per task and model, in percent of the texts (Serrano & Smith 2019, table 2)."""

import altair as alt
import polars as pl

from exegete.report.panels import WIDTH, lines, with_panel
from exegete.report.theme import NEUTRAL, PALETTE, figure

SIDE = 88  # of a tile, in pixels
KINDS = {
    ("yes", "yes"): "both flip it",
    ("yes", "no"): "only the highest weight",
    ("no", "yes"): "only the random other",
    ("no", "no"): "neither",
}


def kinds(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, top, random, kind, share, percent, interval."""
    kept = summary.filter(pl.col("share").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    said = [KINDS[answers] for answers in kept.select("remove_top", "remove_random").iter_rows()]
    ends = [f"{100 * low:.1f} – {100 * high:.1f}" for low, high in kept.select("low", "high").iter_rows()]
    named = with_panel(kept).with_columns(
        pl.Series("kind", said, dtype=pl.String),
        pl.Series("percent", [f"{100 * share:.1f} %" for share in kept["share"]], dtype=pl.String),
        pl.Series("interval", ends, dtype=pl.String),
    )
    return named.select("panel", "kind", "share", "percent", "interval", "n", top="remove_top", random="remove_random")


@figure(kinds, "no text has more than one key")
def tiles(table: pl.DataFrame) -> alt.FacetChart:
    """Percent of texts whose decision flips without the highest weight, without a random other one, without either or
    with neither; four tiles per task and model.
    """
    columns = max(1, min(table["panel"].n_unique(), WIDTH // (2 * SIDE + 60)))
    drawn = _tiles().properties(width=2 * SIDE, height=SIDE + 30)
    read = "Percent of texts with 95 % intervals: does the decision flip?"
    return lines(drawn, table, columns, spacing=28, letters=30).properties(title=read)


def _tiles() -> alt.LayerChart:
    names = list(KINDS.values())
    scale = alt.Scale(domain=names, range=[PALETTE[2], PALETTE[0], PALETTE[1], NEUTRAL])
    x = alt.X("random:N", sort=["yes", "no"], axis=_axis("without a random other"))
    y = alt.Y("top:N", sort=["yes", "no"], axis=_axis("without the highest"))
    base = alt.Chart().encode(x=x, y=y)
    pale = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.12, 0.5]), legend=None)
    filled = base.mark_rect(cornerRadius=3, xOffset=1, x2Offset=-1, yOffset=1, y2Offset=-1)
    return alt.LayerChart(
        layer=[
            filled.encode(color=alt.Color("kind:N", scale=scale, legend=alt.Legend(symbolType="square")), opacity=pale),
            base.mark_text(style="mark", fontSize=15, dy=-7).encode(text="percent:N"),
            base.mark_text(style="note", dy=11).encode(text="interval:N"),
        ]
    )


def _axis(title: str) -> alt.Axis:
    return alt.Axis(title=title, domain=False, ticks=False, grid=False, labelAngle=0)
