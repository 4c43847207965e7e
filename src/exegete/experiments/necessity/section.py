"""Necessity in a report: accuracy and F1 with other attention, beside the paper's layout."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, better, chapter, shown
from exegete.experiments.necessity.experiment import NONE
from exegete.experiments.necessity.table import TRAINING
from exegete.report.columns import count, interval, number, share, text, varying, wide
from exegete.report.section import Table

WHEN = {"inference": "at inference only", "training": "in training and inference"}
CONDITIONS = {"none": "no attention"}

MEANING = (
    "Attention was replaced by weights that know nothing of the text: the same for every word (uniform), drawn at "
    "random, or the model's own on other words (permute); or the decoder read the last state, without any attention. "
    "At inference only, the trained model gets weights that it was not made for: a loss shows that it rests on its "
    "own. In training too, another model learns to do without: only a loss there shows that attention is needed."
)
UNFIT = (
    "Where a model that learnt with uniform weights does as well, attention is not needed for this task, and what it "
    "weighs may be arbitrary without harm: Wiegreffe & Pinter call such a data set unfit for asking whether attention "
    "explains. That an interval holds 0 does not show that two models do equally well: look at how far it reaches."
)
WORDS = {"condition": CONDITIONS, "when": WHEN}
CHANGES = shown(
    "",
    varying("metric"), text("condition", "attention"), *wide(text("when", "replaced")), share("before"),
    share("after"), number("change"), interval("low", "high"),
    *wide(text("said", "it does"), share("majority"), count("seeds")), count("n"),
    caption="Accuracy (or BLEU, of 100 %) with the model's attention (before) and another (after); the change is "
    "paired by text, and its reference is 0. Majority: always the most frequent class.",
    words=WORDS, then=lambda frame: frame.with_columns(said=better()),
)  # fmt: skip
F1 = shown(
    "F1 with other attention",
    text("condition", "attention"), text("when", "replaced"), share("f1_before", "before"),
    share("f1_after", "after"), number("f1_change", "change"), interval("f1_low", "f1_high"),
    share("flipped", "other prediction"), count("single", "one word"), count("n"),
    caption="F1 of the second class of two, or the mean over the task's gold classes. Other prediction: texts that get "
    "another class. One word: texts whose only weight is 1 whatever is done; they count too.",
    where=pl.col("f1_before").is_not_null(), words=WORDS,
)  # fmt: skip


def _metrics(summary: pl.DataFrame) -> str:
    """What was measured, in words."""
    return " or ".join(summary["metric"].unique(maintain_order=True))


def _titled(table: Table) -> Table:
    metric = _metrics(table.frame)
    return replace(table, title=f"{metric[0].upper()}{metric[1:]} with other attention")


def _lost(found: QuestionResult) -> Table:
    """Accuracy lost by models that learnt with other attention; at inference, where none was trained."""
    trained = found.summary.filter(pl.col("when") == TRAINING)
    table = _titled(CHANGES.on(found.summary if trained.is_empty() else trained))
    when, metric = table.frame["when"][0], _metrics(table.frame)
    said = f"Attention replaced {when}; the change of {metric} is paired by text, its reference is 0."
    return replace(table, caption=said)


def _f1(found: QuestionResult) -> Table | None:
    table = F1(found)
    return None if table.frame.is_empty() else table


def _paper(found: QuestionResult) -> Table:
    return Table(
        "In the layout of Vashishth et al. 2019, tables 1 to 3",
        found.table("vashishth"),
        "Accuracy (or BLEU) of the model, then absolute changes, in points: means over seeds, and their standard "
        "deviation (±).",
    )


def _said(found: QuestionResult) -> list[str]:
    """With a sentence of the models that were not tried without any attention, though asked for."""
    every = found.summary["model"].unique(maintain_order=True)
    tried = set(found.summary.filter(pl.col("condition") == NONE)["model"])
    lacking = [model for model in every if model not in tried]
    if NONE not in found.experiment.trained or not lacking:
        return [MEANING, UNFIT]
    cannot = "Only bilstm, bigru, average, cnn and flat can be built so: others have no last state to read instead."
    return [MEANING, f"Not trained without any attention: {'; '.join(lacking)}. {cannot}", UNFIT]


headline, sections = chapter(
    _lost,
    Passage(
        "Does the model need its attention?",
        _said,
        [lambda found: _titled(CHANGES(found)), _f1, _paper],
        "What a model loses with other attention",
    ),
)
