"""Plausibility: which methods mark the words that people marked (DeYoung et al. 2020)."""

import altair as alt
import polars as pl

from exegete.report.dots import dots, dots_table
from exegete.report.theme import figure

MEASURES = {"auprc": "average precision", "token_f1": "token F1", "iou_f1": "span F1 (IOU)"}


def plausibility_levels(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: all texts, predicted right or not."""
    kept = summary.filter(pl.col("texts") == "all", pl.col("mean").is_not_null())
    return dots_table(kept, pl.col("measure").replace_strict(MEASURES), list(MEASURES.values()))


@figure(plausibility_levels, "no text has words with and without mark")
def plausibility(table: pl.DataFrame) -> alt.FacetChart:
    """Average precision, token F1 and span F1 against human rationales by method, with intervals and chance."""
    read = "Means over all texts with 95 % intervals, against the words that people marked. Tick: chance."
    return dots(table, "mean").properties(title=read)
