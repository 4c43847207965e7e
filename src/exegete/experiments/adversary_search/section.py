"""Adversary search in a report: how far attention can go with the same prediction, and what to hold it against."""

from typing import Any

import polars as pl

from exegete.experiments.adversary_search.experiment import MODEL
from exegete.experiments.common.depth import add_places, at_readout
from exegete.experiments.common.section import Passage, QuestionResult, Shown, chapter, shown
from exegete.experiments.common.tallies import ALL
from exegete.report.columns import Column, class_label, count, decimal, interval, number, share, text, varying, wide
from exegete.report.heatmap import HeatMap, HeatRow
from exegete.report.labels import name_columns

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
TWINS = (
    "Texts with the farthest adversaries that were found: the model's own weights and, below, others under which it "
    "predicts the same to within ε. They are the extremes, not typical texts."
)


def _weights(title: str, where: pl.Expr, *by: Column, of: str = "summary") -> Shown:
    return shown(
        title,
        varying("sites", "weights of"), varying("who"), number("epsilon", "ε"), *by,
        number("mean", "ε-max JSD"), interval("low", "high"),
        number("permuted", "permuted"), share("met"), *wide(share("within")), count("n"), *wide(count("undefined")),
        caption="At most ln 2 = 0.693. Permuted: JSD after permuting the weights; met: texts with an adversary within "
        "ε; within: candidates within ε; undefined: texts with a single key.",
        where=where, of=of, first=add_places,
    )  # fmt: skip


OWN, OF_ALL, ANYWHERE = pl.col("who") == MODEL, pl.col("class") == ALL, pl.col("bin") == ALL
WHOLE = _weights("Adversarial weights", ANYWHERE & OF_ALL)
TABLES = [
    WHOLE,
    _weights("By predicted class", OWN & ANYWHERE & ~OF_ALL, text("class")),
    _weights("By largest weight", OWN & ~ANYWHERE & OF_ALL, text("bin", "largest weight")),
    _weights("By normalised entropy of the weights", pl.col("entropy") != ALL, text("entropy"), of="by_entropy"),
]
TITLES = {"histogram": "How far attention can go", "violins": "By largest weight"}  # the pairs are examples
headline, sections = chapter(WHOLE, Passage("Can other weights give the same prediction?", MEANING, TABLES, TITLES))


def examples(found: QuestionResult) -> tuple[str, tuple[HeatMap, ...]]:
    """Adversarial twins: the model's own weights and an adversary's on the same words."""
    from exegete.experiments.adversary_search.figure import telling_rows  # what draws is not for whoever reads a table

    own = at_readout(found.rows).filter(pl.col("epsilon") == found.experiment.epsilons[0], pl.col("who") == MODEL)
    texts = telling_rows(own)
    several = [name for name in ("task", "model") if texts[name].n_unique() > 1]
    maps = (_twins(row, [row[name] for name in several]) for row in name_columns(texts).iter_rows(named=True))
    return TWINS, tuple(maps)


def _twins(row: dict[str, Any], where: list[str]) -> HeatMap:
    predicted = class_label(row["predicted"])
    said = f"Predicted {predicted}. JSD of the weights {decimal(row['jsd'], 2)}, at most 0.69; TVD of the prediction "
    return HeatMap(
        title=" · ".join([*where, f"{said}{decimal(row['tvd'])}."]),
        words=tuple(row["words"]),
        rows=(
            HeatRow("model’s own", tuple(row["attention"]), signed=False, main=True),
            HeatRow("adversary’s", tuple(row["adversary"]), signed=False),
        ),
        toward=predicted,
    )
