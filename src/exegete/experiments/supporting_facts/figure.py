"""Supporting facts: which methods find the sentences that answer the question, by task."""

import altair as alt
import polars as pl

from exegete.report.dots import dots, dots_table
from exegete.report.labels import task_labels
from exegete.report.theme import figure


def sentence_precisions(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: texts that were answered right; tasks are columns."""
    kept = summary.filter(
        pl.col("measure") == "precision_at_k", pl.col("texts") == "correct", pl.col("mean").is_not_null()
    )
    if kept.is_empty():
        return pl.DataFrame()
    labels = task_labels(kept["task"])
    columned = kept.with_columns(column=pl.col("task").replace_strict(labels), task=pl.lit(kept["task"][0]))
    return dots_table(columned, pl.col("column"), list(labels.values()))


@figure(sentence_precisions, "every sentence supports the answer")
def supporting_facts(table: pl.DataFrame) -> alt.FacetChart:
    """Precision at k of the sentences that answer a question by method and task, with intervals and chance."""
    read = (
        "Precision at k of the supporting sentences where the answer is right, with 95 % intervals. Dot: by signed "
        "score; ring: by size. Tick: chance."
    )
    return dots(table, "precision at k").properties(title=read)
