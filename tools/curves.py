"""Learning curves of kept studies: `python -m tools.curves OUT.svg STUDY…`, from results/STUDY/curves.csv."""

import sys
from pathlib import Path

import altair as alt
import polars as pl

from exegete.base.files import write_text
from exegete.report.labels import task_labels
from exegete.report.panels import series
from exegete.report.theme import inline, themed, to_svg
from tools.pages.place import ROOT

SHOWN = ("vashishth_2019_snli_learnt", "vashishth_2019_babi_learnt")


def curves(studies: tuple[str, ...] = SHOWN) -> pl.DataFrame:
    """Accuracy on dev by epoch, a line per study and model."""
    read = [pl.read_csv(ROOT / "results" / study / "curves.csv") for study in studies]
    both = pl.concat([frame.select("task", "model", "seed", "epoch", "kept", "accuracy") for frame in read])
    reads = pl.when(pl.col("model").str.contains("reads=context")).then(pl.lit("blind")).otherwise(pl.lit("sighted"))
    read_on = pl.col("model").str.contains("encoding=conditional")
    encoding = pl.when(read_on).then(pl.lit(", conditional encoding")).otherwise(pl.lit(""))
    tasks = pl.col("task").replace_strict(task_labels(both["task"]))
    return both.with_columns(line=pl.format("{}, {} decoder{}", tasks, reads, encoding))


def drawn(table: pl.DataFrame) -> alt.LayerChart:
    """Accuracy on dev after each epoch; the ring is the epoch that was kept."""
    colour, _ = series("line", table["line"].unique(maintain_order=True).to_list())
    base = alt.Chart(inline(table)).encode(
        x=alt.X("epoch:Q", axis=alt.Axis(title="epoch", format="d", grid=False, tickMinStep=1)),
        y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="accuracy on dev", format="%")),
        color=colour,
    )
    layers = [
        base.mark_line(strokeWidth=1.8),
        base.transform_filter("datum.kept").mark_point(size=90, strokeWidth=2, filled=False),
    ]
    chart = alt.LayerChart(layer=layers).properties(width=520, height=220)
    return themed(chart, "Accuracy on dev after each epoch; the ring is the epoch that was kept.", table)


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), to_svg(drawn(curves(tuple(sys.argv[2:]) or SHOWN))))
