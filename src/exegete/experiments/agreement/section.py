"""Agreement in a report: τ of every pair, top-k coefficients beside their chance level, and what ties allow."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.agreement.experiment import Agreement
from exegete.experiments.common.section import Found, which
from exegete.experiments.common.tallies import ALL
from exegete.page.columns import count, interval, number, share, spread, text
from exegete.page.labels import importance_label, pair_label
from exegete.page.panels import named
from exegete.page.section import Figure, Section, Table

AGREEMENT = (
    "Kendall's τ-b between the rankings that two importances give the words of a text, averaged over texts. Unrelated "
    "rankings score 0 on average. Wiegreffe & Pinter (2019) object that τ disfavours models whose states mix words."
)
TOP_K = (
    "The coefficient behind the published top-k numbers (here: legacy) leaves out pairs of words of which each list "
    "holds only one. Lists that share nothing then score about +0.8. Random scores show it: if they do as well as "
    "attention, the coefficient tells nothing. Fagin's coefficient counts those pairs; every value stands beside what "
    "unrelated rankings of the same length, k and ties score."
)
TIES = (
    "Sparse attention gives many words exactly 0. Tied words cap τ-b: with s non-zeros among n words it can't exceed "
    "√(1 − C(n−s,2)/C(n,2)). τ-b over this maximum, and Goodman & Kruskal's γ, which ignores tied pairs, are corrected "
    "for it."
)


def headline(found: Found) -> Table:
    """τ of every pair over all texts, with interval and chance."""
    shown = _labelled(found.summary.filter((pl.col("measure") == "tau") & (pl.col("class") == ALL)))
    columns = [*which(shown), text("pair"), number("mean", "τ"), interval("low", "high"), number("chance")]
    columns += [share("significant", "p ≤ .05"), count("n")]
    by_model = shown.group_by("task", "model").agg(pl.col("undefined").max())
    undefined = int(by_model["undefined"].sum())
    left = f" Up to {undefined:,} texts without a τ (all words tied) are left out." if undefined else ""
    caption = f"Mean τ-b over texts; interval over texts, and seeds if several.{left}"
    return Table("Rank agreement", shown, caption, columns)


def sections(found: Found) -> Iterator[Section]:
    """Agreement by pair and class, top-k agreement and its chance level, and what ties allow."""
    asked: Agreement = found.experiment
    summary = found.summary
    charts = found.charts()
    histogram = Figure("τ by predicted class", charts["histogram"], "Share of texts in each of 30 bins of τ.")
    density = Figure("τ of the pairs", charts["density"], "Densities, reflected at ±1; all seeds together.")
    tables = [headline(found), _by_class(summary, asked)]
    yield Section("Do importances agree?", "", [AGREEMENT], tables, [histogram, density])
    if "topk" in charts:
        figure = Figure("Attention and random scores against gradient", charts["topk"])
        yield Section("Top-k agreement and its chance level", "", [TOP_K], [_topk(summary, asked)], [figure])
    figure = Figure("τ-b, its attainable maximum, and what remains", charts["ties"])
    yield Section("What ties allow", "", [TIES], [_ties(summary, asked)], [figure])


def _labelled(summary: pl.DataFrame) -> pl.DataFrame:
    """Task, model and pair as people say them."""
    pairs = pl.struct("first", "second").map_elements(lambda p: pair_label(p["first"], p["second"]), pl.String)
    return named(summary).with_columns(pairs.alias("pair"))


def _by_class(summary: pl.DataFrame, asked: Agreement) -> Table:
    shown = _labelled(
        summary.filter((pl.col("measure") == "tau") & (pl.col("class") != ALL) & (pl.col("first") != asked.noise))
    )
    columns = [
        *which(shown), text("pair"), text("class", "class"), spread("mean", "std"), interval("low", "high"),
        share("significant", "p ≤ .05"), count("n"), count("undefined"),
    ]  # fmt: skip
    return Table("By class", shown, "Mean ± standard deviation of τ-b, and the share of texts with p ≤ 0.05.", columns)


def _topk(summary: pl.DataFrame, asked: Agreement) -> Table:
    kept = summary.filter((pl.col("k") != ALL) & (pl.col("class") == ALL) & (pl.col("second") == asked.against[1]))
    index = ["task", "model", "measure", "k"]
    shown = named(kept.pivot("first", index=index, values=["mean", "chance"], maintain_order=True))
    pairs = [(first, importance_label(first)) for first in kept["first"].unique(maintain_order=True)]
    columns = [*which(shown), text("measure"), text("k")]
    for first, label in pairs:
        columns += [number(f"mean_{first}", label), number(f"chance_{first}", "chance")]
    return Table("Top-k τ with gradient", shown, "Mean over texts (and seeds), and its chance level.", columns)


def _ties(summary: pl.DataFrame, asked: Agreement) -> Table:
    over_all = summary.filter((pl.col("k") == ALL) & (pl.col("class") == ALL) & (pl.col("first") != asked.noise))
    index = ["task", "model", "first", "second"]
    wide = over_all.pivot("measure", index=index, values="mean", maintain_order=True)
    maximum = over_all.filter(pl.col("measure") == "tau").select(*index, "maximum")
    shown = _labelled(wide.join(maximum, on=index, maintain_order="left"))
    columns = [
        *which(shown), text("pair"), number("tau", "τ-b"), number("maximum", "attainable"),
        number("tau_corrected", "τ-b / attainable"),        number("gamma", "γ"), number("spearman", "ρ"),
    ]  # fmt: skip
    return Table(
        "Corrected for ties",
        shown,
        "Means over texts; the attainable maximum is that of each text's own ties.",
        columns,
    )
