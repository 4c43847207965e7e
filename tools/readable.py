"""What predicts that attention may be read? `python -m tools.readable results/readable`, from the tables of that study.

Neely & Schouten (2020, section 7) close with a question: is a model that relies on its attention harder to fool? The
outcomes and predictors below were declared before a model was trained. Of every task Spearman's ρ over its models; what
is told is the mean over tasks with Student's t over them (n = tasks): models of one task share texts and labels. Seeds
are averaged first. Of tasks with one text and with two the means are told beside each other; with so few tasks that is
no claim about kinds. A model that may only guess with some seed is left out.
"""

import sys
from pathlib import Path

import altair as alt
import polars as pl
import torch
from scipy.stats import spearmanr

from exegete.base.files import write_text
from exegete.measures.statistics import t_interval
from exegete.report.labels import name_columns
from exegete.report.panels import series
from exegete.report.theme import inline, themed, to_svg
from exegete.runs.tables import write_csv

OUTCOMES = {"ranks": "Γ: weights order words", "reads": "M: words act through weights", "jsd": "JSD of adversaries"}
PREDICTORS = {
    "reliance": "reliance: accuracy lost with uniform weights",
    "mixing": "mixing: 1 − a word's share in its state",
    "sparsity": "sparsity: 1 − entropy of attention",
}
CELL = ["task", "model"]
SIZE = 190


def models(folder: Path) -> pl.DataFrame:
    """A row per model that does more than guess: outcomes and predictors."""

    def table(name: str) -> pl.DataFrame:
        return pl.read_csv(folder / f"{name}.csv", infer_schema_length=None)

    better = (pl.col("skill_low") > pl.col("skill_chance")).all()
    trained = table("models").group_by(CELL, maintain_order=True)
    learnt = trained.agg(pl.col("test_accuracy").mean(), better=better).filter("better").drop("better")
    own = table("mediation_summary").filter(pl.col("method") == "attention", pl.col("split") == "test")
    read = own.group_by(CELL, maintain_order=True).agg(pl.col("ranks", "reads").mean())  # over all specifications
    relied = table("necessity_summary").select(*CELL, reliance=-pl.col("change"))
    searched = table("adversary_search_summary").filter(
        pl.col("who") == "model", pl.col("class") == "all", pl.col("bin") == "all"
    )
    spread = table("dispersion_summary")
    share = spread.filter(pl.col("measure") == "own_share").select(*CELL, mixing=1 - pl.col("mean"))
    sparse = spread.filter(pl.col("measure") == "entropy_attention").select(*CELL, sparsity=1 - pl.col("mean"))
    found = learnt
    for part in (read, relied, searched.select(*CELL, jsd="mean"), share, sparse):
        found = found.join(part, on=CELL, how="left", maintain_order="left")
    return found


def relations(found: pl.DataFrame) -> pl.DataFrame:
    """Of every predictor and outcome the mean ρ over tasks with its interval."""
    rows = []
    for predictor in PREDICTORS:
        for outcome in OUTCOMES:
            by_task = [_rho(part[predictor], part[outcome]) for part in found.partition_by("task", maintain_order=True)]
            over = t_interval(torch.tensor(by_task, dtype=torch.float64))
            bounds = {"rho": over.mean, "low": max(-1.0, over.low), "high": min(1.0, over.high)}
            about = {"tasks": over.n, "models": _both(found, predictor, outcome)}
            rows.append({"predictor": predictor, "outcome": outcome} | bounds | about)
    return pl.DataFrame(rows)


def kinds(found: pl.DataFrame) -> pl.DataFrame:
    """Means of outcomes and predictors by kind of task, over tasks, with their intervals."""
    kind = pl.when(pl.col("model").str.starts_with("pair")).then(pl.lit("two texts")).otherwise(pl.lit("one text"))
    by_task = found.group_by(kind.alias("kind"), "task", maintain_order=True).agg(pl.col(*OUTCOMES, *PREDICTORS).mean())
    rows = []
    for part in by_task.partition_by("kind", maintain_order=True):
        for name in (*OUTCOMES, *PREDICTORS):
            over = t_interval(torch.tensor(part[name].drop_nulls().to_list(), dtype=torch.float64))
            about = {"kind": part["kind"][0], "what": name, "tasks": over.n}
            rows.append(about | {"mean": over.mean, "low": over.low, "high": over.high})
    return pl.DataFrame(rows)


def _both(found: pl.DataFrame, predictor: str, outcome: str) -> int:
    """The models that have both: Γ and M are void where no word matters."""
    return found.drop_nulls([predictor, outcome]).height


def _rho(a: pl.Series, b: pl.Series) -> float:
    there = a.is_not_null() & b.is_not_null()
    return float(spearmanr(a.filter(there).to_numpy(), b.filter(there).to_numpy()).statistic)


def drawn(found: pl.DataFrame, told: pl.DataFrame) -> alt.VConcatChart:
    """Every model by predictor and outcome, with the mean ρ over tasks and its interval above each panel."""
    table = name_columns(found)
    rows = [alt.hconcat(*(_panel(table, told, x, y) for x in PREDICTORS), spacing=22) for y in OUTCOMES]
    said = (
        "Every model by what might predict that attention may be read, and by whether it may; ρ is the mean over tasks."
    )
    whole: alt.VConcatChart = themed(alt.vconcat(*rows, spacing=18), said, table)  # type: ignore[type-var]
    return whole


def _panel(table: pl.DataFrame, told: pl.DataFrame, x: str, y: str) -> alt.Chart:
    rho, low, high = told.filter(predictor=x, outcome=y).select("rho", "low", "high").row(0)
    colour, shape = series("task", table["task"].unique(maintain_order=True).to_list())
    first, last = x == next(iter(PREDICTORS)), y == [*OUTCOMES][-1]
    title = f"ρ = {rho:.2f} [{low:.2f}, {high:.2f}]".replace("-", "−")
    scale = alt.Scale(zero=False, nice=True)
    chart: alt.Chart = (
        alt.Chart(inline(table))
        .mark_point(filled=True, size=48)
        .encode(
            x=alt.X(
                f"{x}:Q", scale=scale, axis=alt.Axis(title=PREDICTORS[x] if last else None, grid=False, tickCount=4)
            ),
            y=alt.Y(f"{y}:Q", scale=scale, axis=alt.Axis(title=OUTCOMES[y] if first else None, tickCount=4)),
            color=colour,
            shape=shape,
        )
        .properties(width=SIZE, height=SIZE * 0.75, title=alt.TitleParams(title))
    )
    return chart


def main(folder: Path) -> None:
    """Write the tables and the figure beside the study's."""
    found = models(folder)
    told = relations(found)
    write_csv(folder / "readable_models.csv", found)
    write_csv(folder / "readable_relations.csv", told)
    write_csv(folder / "readable_kinds.csv", kinds(found))
    write_text(folder / "readable.svg", to_svg(drawn(found, told)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
