"""Agreement in a report: τ of every pair, top-k coefficients beside their chance level, and what ties allow."""

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, chapter, shown
from exegete.experiments.common.tallies import ALL
from exegete.report.columns import count, interval, mean_and_spread, number, share, text
from exegete.report.labels import importance_label, with_pair
from exegete.report.section import Table

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
TAU, OF_ALL = pl.col("measure") == "tau", pl.col("class") == ALL
RELEASED = (pl.col("measure") == "legacy") & pl.col("k").is_in(["average", "nonzeros"])


def _tau(found: QuestionResult) -> Table:
    """τ of every pair over all texts, with interval and chance."""
    kept = found.summary.filter(TAU, OF_ALL)
    undefined = int(kept.group_by("task", "model").agg(pl.col("undefined").max())["undefined"].sum())
    left = f" Up to {undefined:,} texts without a τ (all words tied) are left out." if undefined else ""
    table = shown(
        "Rank agreement",
        text("pair"), number("mean", "τ"), interval("low", "high"), number("chance"), share("significant", "p ≤ .05"),
        count("n"),
        caption=f"Mean τ-b over texts; interval over texts, and seeds if several.{left}", first=with_pair,
    )  # fmt: skip
    return table.on(kept)


def _by_class(found: QuestionResult) -> Table:
    table = shown(
        "By class",
        text("pair"), text("class", "class"), mean_and_spread("mean", "std"), interval("low", "high"),
        share("significant", "p ≤ .05"), count("n"), count("undefined"),
        caption="Mean ± standard deviation of τ-b, and the share of texts with p ≤ 0.05.",
        where=TAU & ~OF_ALL & (pl.col("first") != found.experiment.noise), first=with_pair,
    )  # fmt: skip
    return table(found)


def _topk(found: QuestionResult) -> Table:
    kept = found.summary.filter(pl.col("k") != ALL, OF_ALL, pl.col("second") == found.experiment.against[1])
    wide = kept.pivot("first", index=["task", "model", "measure", "k"], values=["mean", "chance"], maintain_order=True)
    both = [
        column
        for first in kept["first"].unique(maintain_order=True)
        for column in (number(f"mean_{first}", importance_label(first)), number(f"chance_{first}", "chance"))
    ]
    caption = "Mean over texts (and seeds), and its chance level."
    return shown("Top-k τ with gradient", text("measure"), text("k"), *both, caption=caption).on(wide)


def _topk_by_class(found: QuestionResult) -> Table:
    table = shown(
        "Top-k τ by class",
        text("pair"), text("k"), text("class", "class"), mean_and_spread("mean", "std"), number("chance"), count("n"),
        caption="The released coefficient: mean ± standard deviation over texts, and what unrelated rankings score.",
        where=RELEASED & ~OF_ALL & (pl.col("first") != found.experiment.noise), first=with_pair,
    )  # fmt: skip
    return table(found)


def _ties(found: QuestionResult) -> Table:
    index = ["task", "model", "first", "second"]
    kept = found.summary.filter(pl.col("k") == ALL, OF_ALL, pl.col("first") != found.experiment.noise)
    wide = kept.pivot("measure", index=index, values="mean", maintain_order=True)
    maximum = kept.filter(TAU).select(*index, "maximum")
    table = shown(
        "Corrected for ties",
        text("pair"), number("tau", "τ-b"), number("maximum", "attainable"),
        number("tau_corrected", "τ-b / attainable"), number("gamma", "γ"), number("spearman", "ρ"),
        caption="Means over texts; the attainable maximum is that of each text's own ties.", first=with_pair,
    )  # fmt: skip
    return table.on(wide.join(maximum, on=index, maintain_order="left"))


TITLES = {
    "histogram": ("τ by predicted class", "Share of texts in each of 30 bins of τ."),
    "density": ("τ of the pairs", "Densities, reflected at ±1; all seeds together."),
}
headline, sections = chapter(
    _tau,
    Passage("Do importances agree?", [AGREEMENT], [_tau, _by_class], TITLES),
    Passage(
        "Top-k agreement and its chance level",
        [TOP_K],
        [_topk, _topk_by_class],
        {
            "topk": "Attention and random scores against gradient",
            "topk_density": ("Top-k coefficients of the pairs", "Densities of the released coefficient, k non-zeros."),
        },
    ),
    Passage("What ties allow", [TIES], [_ties], {"ties": "τ-b, its attainable maximum, and what remains"}),
)
