"""Alignment: how often methods link words as people do, and what they say of the words of a few sentences."""

from collections.abc import Iterator
from typing import Any

import altair as alt
import polars as pl

from exegete.report.dots import dots, dots_table
from exegete.report.families import ATTENTION, RANDOM, family
from exegete.report.labels import importance_labels, model_labels, task_labels
from exegete.report.panels import columns_of, in_order
from exegete.report.theme import PALETTE, figure, inline, nothing, themed

COLUMNS = {"error_rate": "alignment error rate (low is good)", "same_as_attention": "linked as attention does"}
CELL = ("task", "model", "split")
STEP = 19  # pixels of a word
SIGNS = {"for": PALETTE[0], "against": PALETTE[1]}


def alignment_lines(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: the best method first, by error rate where it is known, else by agreement with attention.

    Attention links as attention does: it has no dot there.
    """
    trivial = (pl.col("measure") == "same_as_attention") & (pl.col("method") == ATTENTION)
    kept = summary.filter(pl.col("measure").is_in(list(COLUMNS)), pl.col("mean").is_not_null(), ~trivial)
    if kept.is_empty():
        return pl.DataFrame()
    words = pl.col("measure").replace_strict(COLUMNS)
    column = pl.concat_str(words, pl.lit(", "), "split") if kept["split"].n_unique() > 1 else words
    columns = kept.select(column.alias("column"), "measure").unique(maintain_order=True)
    order = columns.sort(pl.col("measure") != "error_rate", maintain_order=True)["column"].to_list()
    table = dots_table(kept.with_columns(ranking=pl.lit("signed")), column, order)
    labels = importance_labels(kept["method"])
    place = {labels[method]: i for i, method in enumerate(best_first(kept))}
    across = {name: i for i, name in enumerate(order)}
    return table.sort(
        pl.col("column").replace_strict(across), pl.col("method").replace_strict(place), maintain_order=True
    )


@figure(alignment_lines, "no sentence has words to link")
def alignment(table: pl.DataFrame) -> alt.FacetChart:
    """Alignment error rate, and share of words linked as attention does, by method, with intervals and chance."""
    read = [
        "Every word of a reference is linked to the source word of the highest score, with 95 % intervals.",
        "Tick: chance, every word linked to any. Error rates are told where the right links are known.",
    ]
    return dots(table, "share").properties(title=read)


def best_first(summary: pl.DataFrame) -> list[str]:
    """Methods by their mean error rate; those without one follow, by how much they agree with attention."""
    means = summary.pivot("measure", index=[*CELL, "method"], values="mean", maintain_order=True)
    missing = [pl.lit(None, pl.Float64).alias(name) for name in COLUMNS if name not in means.columns]
    by_method = means.with_columns(missing).group_by("method", maintain_order=True).agg(pl.col(*COLUMNS).mean())
    ordered = by_method.sort(list(COLUMNS), descending=[False, True], nulls_last=True, maintain_order=True)
    return ordered["method"].to_list()


def matrices(rows: pl.DataFrame, summary: pl.DataFrame) -> dict[str, Any]:
    """For every task and model the words of a few sentences: attention beside the best method that doesn't read it."""
    found: dict[str, Any] = {}
    cells = rows.filter(pl.col("scores").is_not_null()).partition_by(CELL, as_dict=True, maintain_order=True)
    models, tasks = model_labels(rows["model"]), task_labels(rows["task"])
    for number, (cell, part) in enumerate(cells.items(), start=1):
        own = summary.filter(*(pl.col(name) == value for name, value in zip(CELL, cell, strict=True)))
        name = "alignment_words" if len(cells) == 1 else f"alignment_words_{number}"
        where = "" if len(cells) == 1 else f"{tasks[str(cell[0])]} · {models[str(cell[1])]} · {cell[2]}. "
        found[name] = _matrix(word_lines(part, shown_methods(own)), where)
    return found


def shown_methods(summary: pl.DataFrame) -> list[str]:
    """Attention and the best of the others, by error rate or else by agreement; neither random nor of its family."""
    ordered = best_first(summary)
    others = [method for method in ordered if family(method) not in (ATTENTION, RANDOM)]
    return [*(method for method in ordered if method == ATTENTION), *others[:1]]


def word_lines(part: pl.DataFrame, methods: list[str]) -> pl.DataFrame:
    """What is drawn, of the first seed: a line per sentence, method, target word and source word.

    `strength` is the size of a score over the largest of its target word; places are in front of the words, so that
    a word that occurs twice is two.
    """
    kept = part.filter(pl.col("method").is_in(methods), pl.col("seed") == pl.col("seed").min())
    labels = importance_labels(methods)
    place = {method: i for i, method in enumerate(methods)}
    ordered = kept.sort("example", pl.col("method").replace_strict(place, return_dtype=pl.Int64), maintain_order=True)
    return pl.DataFrame(
        [
            {"sentence": f"sentence {row['example']}", "method": labels[row["method"]], **cell}
            for row in ordered.iter_rows(named=True)
            for cell in _cells(row)
        ]
    )


def _cells(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    gold = set(row["gold"] or ())
    for j, scores in enumerate(row["scores"]):
        largest = max(map(abs, scores)) or 1.0  # all 0: nothing is coloured
        for i, score in enumerate(scores):
            yield {
                "target": f"{j:02d} {row['target'][j]}",
                "source": f"{i:02d} {row['source'][i]}",
                "score": score,
                "strength": abs(score) / largest,
                "sign": "against" if score < 0 else "for",
                "linked": row["aligned"][j] == i,
                "people": "sure" if f"{i}-{j}" in gold else "possible" if f"{i}?{j}" in gold else "",
            }


def _matrix(table: pl.DataFrame, where: str) -> alt.Chart | alt.FacetChart:
    if table.is_empty():
        return nothing("no sentence was kept")
    sentences = in_order(table["sentence"])
    row = alt.Row("sentence:N", sort=sentences, header=alt.Header(title=None, labels=False))
    drawn = _layers(table).properties(width=alt.Step(STEP), height=alt.Step(STEP))
    faceted = drawn.facet(
        row=row, column=columns_of("method", in_order(table["method"])), data=inline(table), spacing=20
    )
    apart: alt.FacetChart = faceted.resolve_scale(x="independent", y="independent").properties(align="each")
    people = (table["people"] != "").any()
    read = [
        f"{where}Reference down, source across; the stronger the colour, the larger the score within its row.",
        f"Dot: the link.{' Frame: a sure link of people, dashed: a possible one.' if people else ''}",
    ]
    told = "Scores of source words for every word of the reference in a few sentences, by attention and another method."
    return themed(apart.properties(title=read), told, table)


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    axis: dict[str, Any] = {"title": None, "domain": False, "ticks": False, "labelExpr": "slice(datum.label, 3)"}
    x = alt.X("source:N", sort="ascending", axis=alt.Axis(labelAngle=-45, labelLimit=90, **axis))
    y = alt.Y("target:N", sort="ascending", axis=alt.Axis(labelLimit=90, **axis))
    signs = [sign for sign in SIGNS if sign in set(table["sign"])]
    legend = alt.Legend() if len(signs) > 1 else None
    colour = alt.Color("sign:N", scale=alt.Scale(domain=signs, range=[SIGNS[s] for s in signs]), legend=legend)
    depth = alt.Opacity("strength:Q", scale=alt.Scale(domain=[0, 1], range=[0, 1]), legend=None)
    base = alt.Chart().encode(x=x, y=y)
    frame: dict[str, Any] = {"style": "mark", "filled": False, "strokeWidth": 1.5}
    layers = [
        base.mark_rect(style="room", filled=False, strokeWidth=0.6),
        base.mark_rect().encode(color=colour, opacity=depth),
        base.transform_filter("datum.people == 'sure'").mark_rect(**frame),
        base.transform_filter("datum.people == 'possible'").mark_rect(**frame, strokeDash=[2, 2]),
        base.transform_filter("datum.linked").mark_point(style="mark", filled=True, size=26, opacity=1),
    ]
    return alt.LayerChart(layer=layers)
