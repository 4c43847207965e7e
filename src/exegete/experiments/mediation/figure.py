"""Mediation: how attention and every method order words, and M, F and Γ of attention, by specification."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from exegete.base.names import parse
from exegete.experiments.common.margins import grade_edges, margin
from exegete.experiments.mediation.experiment import ATTENTION, TEST
from exegete.experiments.mediation.section import of_attention
from exegete.experiments.mediation.statistics import neutral
from exegete.report.labels import importance_labels
from exegete.report.panels import WIDTH, columns_of, in_order, series, with_panel
from exegete.report.theme import NEUTRAL, PALETTE, figure, inline

BEST = "best single order"
NOISE = "random"
GRADES = ("strong", "partly", "hardly")
KINDS = ("attention", "other", "bound")
NARROW = 330  # pixels of the scale: a phone shows all of it
REMOVED = {"delete": "words deleted", "resample": "words resampled", "unknown": "words made unknown"}


def order_table(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: a row per method and specification that decides (of several models, per model): Γ, and the best
    that one order of words could reach.
    """
    counted = summary.filter(pl.col("split") == TEST, neutral(), pl.col("void") <= 0.5, pl.col("ranks").is_not_null())
    labels = importance_labels(counted["method"])
    kept = with_panel(counted).with_columns(
        row=pl.col("method").replace_strict(labels, return_dtype=pl.String),
        kind=pl.col("method").map_elements(_kind, return_dtype=pl.String),
        gamma=pl.col("ranks"),
        removed=pl.col("removal").replace(REMOVED),
    )
    own = kept.filter(pl.col("kind") == KINDS[0])
    parts = [own] if "ceiling" not in kept.columns else [
        own.filter(pl.col("ceiling").is_not_null()).with_columns(
            row=pl.lit(BEST), kind=pl.lit(KINDS[2]), gamma=pl.col("ceiling")
        ),
        own,
    ]  # fmt: skip
    if kept["panel"].n_unique() > 1:  # a line per model, of attention alone
        parts = [part.with_columns(row=pl.col("panel")) for part in parts]
    else:
        parts.append(kept.filter(pl.col("kind") != KINDS[0]))
    every = pl.concat(parts) if not kept.is_empty() else kept
    means = every.group_by("row", maintain_order=True).agg(pl.col("gamma").mean(), pl.col("kind").last())
    first = pl.when(pl.col("row") == BEST).then(2).when(pl.col("kind") == KINDS[2]).then(0).otherwise(1)
    order = means.sort(first, "gamma", descending=True, maintain_order=True)["row"].to_list()
    return every.select("row", "kind", "removed", "company", "scale", "gamma").sort(
        pl.col("row").replace_strict({row: place for place, row in enumerate(order)}, return_dtype=pl.Int64),
        maintain_order=True,
    )


def _kind(method: str) -> str:
    name = parse(method).name
    return KINDS[0] if name == ATTENTION else KINDS[2] if name == NOISE else KINDS[1]


@figure(order_table, "no text in which a word matters")
def orders(table: pl.DataFrame) -> alt.LayerChart:
    """How far every method goes from a random order of words to the best one, a dot for every way of removing words,
    with the edges between grades.
    """
    rows, places = in_order(table["row"]), grade_edges("ranks")
    least = min(0.0, *table["gamma"])
    scale = alt.Scale(domain=[least, 1], nice=False)
    weight = {"condition": {"test": f"datum.label == '{ATTENTION}'", "value": "bold"}, "value": "normal"}
    named = alt.Axis(
        title=None, domain=False, ticks=False, grid=False, labelPadding=8, labelLimit=230, labelFontWeight=weight
    )
    axis = alt.Axis(title="Γ: from a random order (0) to the best (1)", format="~g", tickCount=6, grid=False)
    base = alt.Chart(inline(table)).encode(y=alt.Y("row:N", sort=rows, axis=named))
    colours = alt.Scale(domain=list(KINDS), range=[PALETTE[1], PALETTE[0], NEUTRAL])
    colour = alt.Color("kind:N", scale=colours, legend=None)
    shown = in_order(table["removed"])
    legend = alt.Legend(offset=24, symbolFillColor=NEUTRAL, symbolStrokeColor=NEUTRAL)
    shapes = alt.Scale(domain=shown, range=["circle", "diamond", "square"][: len(shown)])
    shape = alt.Shape("removed:N", scale=shapes, legend=legend)
    drawn = alt.LayerChart(
        layer=[
            *_grades(places, least, scale),
            base.mark_rule(strokeWidth=2, opacity=0.35).encode(x="min(gamma):Q", x2="max(gamma):Q", color=colour),
            base.mark_point(filled=True, size=55, opacity=0.9).encode(
                x=alt.X("gamma:Q", scale=scale, axis=axis), color=colour, shape=shape
            ),
        ]
    )
    return drawn.properties(width=NARROW, height=alt.Step(22))


def _grades(places: Sequence[float], least: float, scale: alt.Scale) -> list[alt.Chart]:
    """The edges between grades, and their names in between, above all rows."""
    ends = [1.0, *places, least]
    names = GRADES if len(places) > 1 else (GRADES[0], f"not {GRADES[0]}")
    said = [{"at": (ends[i] + ends[i + 1]) / 2, "grade": name} for i, name in enumerate(names)]
    rules = alt.Chart(inline(pl.DataFrame({"edge": list(places)}))).mark_rule(color=NEUTRAL, strokeDash=[4, 3])
    words = alt.Chart(inline(pl.DataFrame(said))).mark_text(style="note", baseline="bottom", fontSize=11)
    return [
        rules.encode(x=alt.X("edge:Q", scale=scale)),
        words.encode(x=alt.X("at:Q", scale=scale), y=alt.value(-4), text="grade:N"),
    ]


MEASURES = {
    "reads": "M: through its weight",
    "carries": "F: differences count",
    "ranks": "Γ of words",
    "locates": "Γ of states",
}
DECIDING = ("reads", "carries", "ranks")  # whose margins are drawn


def mediation_levels(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, specification, measure, mean, low, high, threshold."""
    kept = with_panel(of_attention(summary)).with_columns(
        way=pl.format("{} {}", "removal", pl.col("company").replace("company", "in company"))
    )
    parts = [
        kept.select(
            "panel", "specification", "way", "scale", measure=pl.lit(said), mean=pl.col(name),
            low=pl.col(f"{name}_low"), high=pl.col(f"{name}_high"),
            threshold=pl.lit(margin(name) if name in DECIDING else None, dtype=pl.Float64),
        )
        for name, said in MEASURES.items() if name in kept.columns
    ]  # fmt: skip
    return pl.concat(parts).filter(pl.col("mean").is_not_null())


@figure(mediation_levels, "no text in which a word matters")
def mediation(table: pl.DataFrame) -> alt.FacetChart:
    """How much of what words do goes through their weights and through the differences of these, and how well weights
    order words and states, by model and by the way a word is removed.
    """
    shown = in_order(table["measure"])
    drawn = _layers(table).properties(width=(WIDTH - 240) // len(shown) - 20, height=alt.Step(7))
    faceted = drawn.facet(column=columns_of("measure", shown), data=inline(table), spacing=20)
    read = "Means over texts with 95 % intervals, of log-odds (filled) and probability."
    return faceted.properties(title=f"{read} Attention may be read right of all dashed rules.")


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    panels, order = in_order(table["panel"]), in_order(table["specification"])
    colour, shape = series("way", in_order(table["way"]))
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=False, labelPadding=8, labelLimit=230)
    ends = [value for name in ("mean", "low") for value in table[name].drop_nulls()]
    scale = alt.Scale(domain=[min(0.0, *ends), 1], nice=False)
    x = alt.X("low:Q", scale=scale, axis=alt.Axis(title="mean", values=[-1, -0.5, 0, 0.5, 1], format="~g"))
    base = alt.Chart().encode(
        y=alt.Y("panel:N", sort=panels, axis=plain, scale=alt.Scale(paddingInner=0.25)),
        yOffset=alt.YOffset("specification:N", sort=order),
    )
    filled = alt.condition("datum.scale == 'log-odds'", colour, alt.value("transparent"))
    return alt.LayerChart(
        layer=[
            alt.Chart().mark_rule(color=NEUTRAL, strokeDash=[4, 3]).encode(x=alt.X("threshold:Q", scale=scale)),
            base.mark_rule(strokeWidth=1.5).encode(x=x, x2="high:Q", color=colour),
            base.mark_point(size=30, opacity=1).encode(
                x=alt.X("mean:Q", scale=scale), color=colour, fill=filled, shape=shape
            ),
        ]
    )
