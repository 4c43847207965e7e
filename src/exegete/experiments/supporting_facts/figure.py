"""Supporting facts: which methods find the sentences that answer the question, by task."""

import altair as alt
import polars as pl

from exegete.page.dots import dots, table_of
from exegete.page.labels import task_labels
from exegete.page.theme import nothing, themed


def supporting_facts(summary: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """Dots with intervals: a line per method, a column per task, a row per model; ticks are chance."""
    table = precisions(summary)
    if table.is_empty():
        return nothing("every sentence supports the answer")
    read = (
        "Precision at k of the supporting sentences where the answer is right, with 95 % intervals. Dot: by signed "
        "score; ring: by size. Tick: chance."
    )
    return themed(
        dots(table, "precision at k").properties(title=read),
        "Precision at k of the sentences that answer a question by method and task, with intervals and chance.",
        table,
    )


def precisions(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: texts that were answered right; tasks are columns."""
    kept = summary.filter(
        pl.col("measure") == "precision_at_k", pl.col("texts") == "correct", pl.col("mean").is_not_null()
    )
    if kept.is_empty():
        return pl.DataFrame()
    labels = task_labels(kept["task"])
    columned = kept.with_columns(column=pl.col("task").replace_strict(labels), task=pl.lit(kept["task"][0]))
    return table_of(columned, pl.col("column"), list(labels.values()))
