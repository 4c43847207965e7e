"""Adversary training in a report: can a model learn to predict the same with other attention?"""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from exegete.experiments.adversary_training.figure import KINDS
from exegete.experiments.common.section import Found, which
from exegete.page.columns import count, interval, number, share, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "A model is trained to predict as this one does and to attend elsewhere: its loss is the TVD of predictions less λ "
    "times the KL divergence of its weights from the model's. From scratch, all of it is new; where only attention "
    "moves, it starts as the model itself. TVD is ½ Σ |p − q|, for two classes the difference of the probabilities; "
    "Wiegreffe & Pinter print half of it. JSD is in natural logarithms, at most 0.693. Flat weights are near all "
    "others: the ratio is JSD over that with the adversary's weights permuted, about 1 for weights that share nothing "
    "but their shape. Searched weights are one set per text that no model computes; other seeds say how far "
    "attention goes by itself."
)
READ = (
    "Attention that can be moved far at no cost in predictions is not the only explanation that this architecture "
    "could give; that does not make it a wrong one. Compare with searched weights, which need no model, and with other "
    "seeds, which nobody pushed."
)
TITLES = {"curve": "How far, and at what price", "violins": "Divergence by largest weight"}


NARROW = ("task", "model", "kind", "λ", "ε", "JSD", "TVD", "TVD ≤ 0.05", "n")  # what a terminal has room for


def headline(found: Found) -> Table:
    """Divergence and change of predictions for every adversary, without intervals."""
    whole = _adversaries(found)
    return replace(whole, columns=[column for column in whole.columns if column.title in NARROW])


def _adversaries(found: Found) -> Table:
    shown = named(found.summary).with_columns(
        pl.col("kind").replace_strict(KINDS), pl.col("lam", "tolerance").map_elements(lambda v: f"{v:g}", pl.String)
    )
    columns = [
        *which(shown), text("kind"), text("lam", "λ"), text("tolerance", "ε"), number("jsd", "JSD"),
        interval("jsd_low", "jsd_high"), number("ratio", "of permuted"), number("tvd", "TVD"),
        interval("tvd_low", "tvd_high"), share("within_0.01", "TVD ≤ 0.01"), share("within_0.05", "TVD ≤ 0.05"),
        count("seeds"), count("n"), count("undefined"),
    ]  # fmt: skip
    caption = "Means over texts. Undefined: texts of one word, which have one weight and no divergence."
    return Table("Adversaries", shown, caption, columns)


def sections(found: Found) -> Iterator[Section]:
    """All adversaries, then as the two papers print them."""
    figures = found.figures(**TITLES)
    tables = [_adversaries(found), _wiegreffe_pinter(found), _meister(found)]
    yield Section("Can other attention be learnt that predicts the same?", "", [MEANING, READ], tables, figures)


def _wiegreffe_pinter(found: Found) -> Table:
    shown = _said(found.table("wiegreffe_pinter"))
    columns = [
        *which(shown), text("kind"), text("lam", "λ"), number("base_f1", "F1, model"), number("f1", "F1, adversary"),
        number("tvd", "TVD"), number("tvd_halved", "TVD, halved"), number("jsd", "JSD"), count("seeds"), count("n"),
    ]  # fmt: skip
    caption = "F1 is that of the second class of two, or the mean over gold classes. Their tables have the halved TVD."
    return Table("As Wiegreffe & Pinter print it", shown, caption, columns)


def _meister(found: Found) -> Table:
    shown = _said(found.table("meister_5"))
    columns = [
        *which(shown), text("kind"), text("lam", "λ"), number("jsd", "JSD"), number("base_accuracy", "accuracy, model"),
        number("accuracy", "accuracy, adversary"), number("difference"), interval("difference_low", "difference_high"),
        count("seeds"), count("n"),
    ]  # fmt: skip
    return Table("As Meister et al. print it (table 5)", shown, "Differences are paired by text.", columns)


def _said(frame: pl.DataFrame) -> pl.DataFrame:
    return named(frame).with_columns(
        pl.col("kind").replace_strict(KINDS), pl.col("lam").cast(pl.Float64).map_elements(lambda v: f"{v:g}", pl.String)
    )
