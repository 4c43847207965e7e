"""Adversary search in a report: how far attention can go with the same prediction, and what to hold it against."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from exegete.experiments.adversary_search.experiment import MODEL, AdversarySearch
from exegete.experiments.adversary_search.figure import telling
from exegete.experiments.common.section import Found, which
from exegete.page.columns import class_label, count, decimal, interval, number, share, text
from exegete.page.heatmap import HeatMap, Row
from exegete.page.panels import named
from exegete.page.section import Figure, Section, Table

MEANING = (
    "For every text other weights are searched for that are as far from the model's own as possible while the "
    "prediction moves by a total variation distance of at most ε. ε-max JSD is the largest divergence found; the "
    "model's own weights are a candidate too, so a text without an adversary counts as 0.",
    "Don't judge it against 0. A linear decoder fixes one number, so a text of T words leaves T − 2 or more free "
    "directions, and the search finds a large divergence for every such model, also where attention matters. Judge it "
    "against the same search on models that are faithful and unfaithful by construction, at equal entropy, and beside "
    "the divergence after permuting the weights: flat weights are far from anything that is not flat. And attention "
    "claims to be an explanation, not the only one: uniqueness alone never decides (Wiegreffe & Pinter 2019).",
)
TITLES = {"histogram": "How far attention can go", "violins": "By largest weight"}
TWINS = (
    "Texts with the farthest adversaries that were found: the model's own weights and, below, others under which it "
    "predicts the same to within ε. They are the extremes, not typical texts."
)


def headline(found: Found) -> Table:
    """ε-max JSD of all texts, by searched model and ε."""
    whole = _table(named(found.summary.filter(pl.col("bin") == "all", pl.col("class") == "all")))
    return replace(whole, columns=[c for c in whole.columns if c.title not in ("within", "undefined")])


def _table(kept: pl.DataFrame, title: str = "Adversarial weights", by: tuple[str, str] | None = None) -> Table:
    several = [text("who")] if kept["who"].n_unique() > 1 else []
    columns = [
        *which(kept), *several, number("epsilon", "ε"), *([text(*by)] if by else []), number("mean", "ε-max JSD"),
        interval("low", "high"), number("permuted", "permuted"), share("met"), share("within"), count("n"),
        count("undefined"),
    ]  # fmt: skip
    caption = (
        "At most ln 2 = 0.693. Permuted: JSD after permuting the weights; met: texts with an adversary within ε; "
        "within: candidates within ε; undefined: texts with a single key."
    )
    return Table(title, kept, caption, columns)


def sections(found: Found) -> Iterator[Section]:
    """All texts, by class, by largest weight, by entropy; figures."""
    summary = named(found.summary)
    whole = summary.filter(pl.col("bin") == "all", pl.col("class") == "all")
    own = summary.filter(pl.col("who") == "model")
    by_class = own.filter(pl.col("bin") == "all", pl.col("class") != "all")
    by_bin = own.filter(pl.col("bin") != "all", pl.col("class") == "all")
    entropy = named(found.table("by_entropy")).filter(pl.col("entropy") != "all")
    tables = [
        _table(whole),
        _table(by_class, "By predicted class", ("class", "class")),
        _table(by_bin, "By largest weight", ("bin", "largest weight")),
        _table(entropy, "By normalised entropy of the weights", ("entropy", "entropy")),
    ]
    charts = found.charts()
    figures = [Figure(title, charts[name]) for name, title in TITLES.items()]  # the pairs are examples
    yield Section("Can other weights give the same prediction?", "", list(MEANING), tables, figures)


def examples(found: Found) -> tuple[str, tuple[HeatMap, ...]]:
    """Adversarial twins: the model's own weights and an adversary's on the same words."""
    asked: AdversarySearch = found.experiment
    own = found.rows.filter(pl.col("epsilon") == asked.epsilons[0], pl.col("who") == MODEL)
    shown = telling(own)
    several = which(shown) if shown.height else []
    maps = (_twins(row, [row[column.of[0]] for column in several]) for row in named(shown).iter_rows(named=True))
    return TWINS, tuple(maps)


def _twins(row: dict[str, Any], where: list[str]) -> HeatMap:
    predicted = class_label(row["predicted"])
    said = f"Predicted {predicted}. JSD of the weights {decimal(row['jsd'], 2)}, at most 0.69; TVD of the prediction "
    return HeatMap(
        title=" · ".join([*where, f"{said}{decimal(row['tvd'])}."]),
        words=tuple(row["words"]),
        rows=(
            Row("model’s own", tuple(row["attention"]), signed=False, main=True),
            Row("adversary’s", tuple(row["adversary"]), signed=False),
        ),
        toward=predicted,
    )
