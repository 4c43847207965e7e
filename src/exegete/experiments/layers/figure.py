"""Layers: accuracy or BLEU with ever more layers altered (Vashishth et al. 2019, figure 4)."""

import altair as alt
import polars as pl

from exegete.report.panels import WIDTH, columns_of, in_order, series, with_panel
from exegete.report.theme import DASHES, PALETTE, inline, nothing, themed

GROUPS = {
    "encoder": "encoder",
    "decoder": "decoder",
    "cross": "cross attention",
    "attention": "pooling attention",
    "word": "words",
    "sentence": "sentences",
}
UNALTERED = "unaltered"
HOW = {"permute": "permuted", "uniform": "made uniform", "silence": "silenced", "random": "made random"}
ORDERS = {"first": "from the first", "last": "from the last", "alone": "one alone"}
SCORES = ("mean", "low", "high", "unaltered", "majority")
ACROSS = 3  # panels side by side


def layers(summary: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """A line per group over the number of altered layers, a panel per task and model; dotted: the model as it is.

    All rows are of one measure.
    """
    table = layer_points(summary)
    if table.is_empty():
        return nothing("no layer was permuted")
    measure = summary["measure"][0]
    panels = in_order(table["panel"])
    across = min(ACROSS, len(panels))
    drawn = _layers(table, f"{measure} (%)" if measure == "accuracy" else measure, _said(summary))
    sized = drawn.properties(width=min(420, (WIDTH - 80) // across - 20), height=220)
    if len(panels) == 1:
        column = columns_of("panel", panels)
        faceted = sized.facet(column=column, data=inline(table), spacing=24)
    else:
        facet = alt.Facet("panel:N", sort=panels, header=alt.Header(title=None, labelPadding=8))
        faceted = sized.facet(facet=facet, columns=across, data=inline(table), spacing=24)
    lines = [f"{measure[0].upper()}{measure[1:]} with {_said(summary)}, with 95 % intervals."]
    chance = table["majority"].is_not_null().any()
    lines.append(f"Dotted: the model as it is.{' Thin: always the most frequent class.' if chance else ''}")
    told = f"{measure} against the number of altered layers, a line per group of layers, a panel per task and model."
    return themed(faceted.properties(title=lines), told, table)


def _said(summary: pl.DataFrame) -> str:
    """What was done, as far as all lines share it."""
    altered = summary.filter(pl.col("group") != UNALTERED)
    how, order = (in_order(altered[name]) for name in ("intervention", "order"))
    done = HOW.get(how[0], how[0]) if len(how) == 1 else "altered"
    return f"layers {done}{', ' + ORDERS[order[0]] if len(order) == 1 else ''}"


def layer_points(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, group (in words), layers, mean, low, high, unaltered, majority, all in points.

    Every line begins at no layer, with the model as it is. Where there are more lines than colours, what was done to
    the layers has panels of its own.
    """
    altered = summary.filter(pl.col("group") != UNALTERED)
    if altered.is_empty():
        return pl.DataFrame()
    cell = ["task", "model", "split"]
    own = ("intervention", "order", "group", "of")
    begin = summary.filter(pl.col("group") == UNALTERED).drop(own)
    lines = altered.filter(pl.col("order") != "alone").select(*cell, *own).unique(maintain_order=True)
    every = pl.concat([lines.join(begin, on=cell, maintain_order="left").select(altered.columns), altered])
    times = pl.when(pl.col("measure") == "accuracy").then(100.0).otherwise(1.0)
    told = with_panel(every).with_columns(*(pl.col(name).cast(pl.Float64) * times for name in SCORES))
    splits = told["split"].n_unique() > 1
    apart = altered.select(own).n_unique() > len(PALETTE)  # no two lines of a panel may look alike
    more = [pl.col("split")] * splits + [pl.col("intervention").replace(HOW)] * apart
    narrow = apart and altered["model"].n_unique() == 1  # the one model would only make names wider than panels
    first = pl.col("panel").str.split(" · ").list.first() if narrow else pl.col("panel")
    panel = pl.concat_str(first, *more, separator=" · ")
    return told.select(panel.alias("panel"), _line(altered, apart).alias("group"), "layers", *SCORES)


def _line(altered: pl.DataFrame, apart: bool) -> pl.Expr:
    """What a line is: its group, with what was done and from where, as far as these tell lines of a panel apart."""
    words = {"intervention": {} if apart else HOW, "order": ORDERS}
    parts = [pl.col("group").replace(GROUPS)]
    parts += [pl.col(name).replace(said) for name, said in words.items() if said and altered[name].n_unique() > 1]
    return pl.concat_str(parts, separator=", ")


def _layers(table: pl.DataFrame, title: str, done: str) -> alt.LayerChart:
    groups, most = in_order(table["group"]), int(table["layers"].to_numpy().max())
    axis = alt.Axis(title=done, values=list(range(most + 1)), format="d", grid=False)
    x = alt.X("layers:Q", scale=alt.Scale(domain=[0, most], nice=False, padding=8), axis=axis)
    ends = [value for name in SCORES for value in table[name].drop_nulls()]
    scale = alt.Scale(domain=[min(0.0, *ends), max(ends) * 1.02 or 1.0], nice=False)
    said = alt.Axis(title=title, tickCount=5, format="~r")
    ys = {name: alt.Y(f"{name}:Q", scale=scale, axis=said) for name in SCORES}
    legend = alt.Legend(columns=2) if len(groups) > 3 else alt.Undefined  # long names would widen the figure
    colour, shape = series("group", groups, legend)
    base = alt.Chart().encode(x=x)
    once = alt.Chart().transform_aggregate(unaltered="mean(unaltered)", majority="mean(majority)")
    marks = [
        once.mark_rule(style="mark", strokeWidth=1.4, strokeDash=list(DASHES[2])).encode(y=ys["unaltered"]),
        base.mark_area(opacity=0.15).encode(y=ys["low"], y2="high:Q", color=colour),
        base.mark_line(strokeWidth=1.8).encode(y=ys["mean"], color=colour),
        base.mark_point(filled=True, size=48, opacity=1).encode(y=ys["mean"], color=colour, shape=shape),
    ]
    if table["majority"].is_not_null().any():
        marks.insert(0, once.mark_rule(style="chance", strokeWidth=0.7).encode(y=ys["majority"]))
    return alt.LayerChart(layer=marks)
