"""Known answer: which methods find planted words, by the kind of shortcut (Bastings et al. 2021)."""

import altair as alt
import polars as pl

from exegete.report.dots import dots, dots_table
from exegete.report.theme import figure

SHORTCUTS = {"token": "one word", "context": "a word in context", "pair": "an ordered pair"}


def planted_precisions(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn; a shortcut that a model has not learnt says so.

    The settings that make tasks differ are the shortcuts, which have columns of their own: one panel per model.
    """
    kept = summary.filter(pl.col("measure") == "precision_at_k", pl.col("mean").is_not_null())
    kept = kept.filter(pl.col("where") == "obeys")
    column = pl.col("shortcut").replace_strict(SHORTCUTS)
    obeyed = (100 * pl.col("obedience")).round().cast(pl.Int64).cast(pl.String)
    note = (
        pl.when("learnt")
        .then(pl.lit(""))
        .otherwise(pl.concat_str(pl.lit("not learnt: obeyed in "), obeyed, pl.lit(" %")))
    )
    return dots_table(kept.with_columns(task=_without_planting(kept["task"])), column, list(SHORTCUTS.values()), note)


@figure(planted_precisions, "the model follows the planted words in no text")
def known_answer(table: pl.DataFrame) -> alt.FacetChart:
    """Precision at k of planted words by method and kind of shortcut, with intervals and chance."""
    read = (
        "Precision at k of the planted words, where the model follows them, with 95 % intervals. Dot: words ranked by "
        "signed score; ring: by size. Tick: chance."
    )
    return dots(table, "precision at k").properties(title=read)


def _without_planting(tasks: pl.Series) -> pl.Series:
    """Tasks without the settings that say what was planted.

    >>> _without_planting(pl.Series(["sst:planted=pair,lower=true", "imdb:planted_share=0.3,planted=token"])).to_list()
    ['sst:lower=true', 'imdb']
    """
    plain = tasks.str.replace_all(r"planted(_share)?=[^,]*,?", "")
    return plain.str.strip_chars_end(",:")
