"""Necessity in a report: accuracy and F1 with other attention, beside the paper's layout."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.necessity.experiment import NONE, Necessity
from exegete.experiments.necessity.figure import CONDITIONS, WHEN
from exegete.experiments.necessity.table import TRAINING
from exegete.page.columns import Column, count, interval, number, share, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

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


def headline(found: Found) -> Table:
    """Accuracy lost by models that learnt with other attention; at inference, where none was trained."""
    trained = found.summary.filter(pl.col("when") == TRAINING)
    shown = _in_words(found.summary if trained.is_empty() else trained)
    columns = [
        *which(shown), *_metric(shown), text("condition", "attention"), share("before"), share("after"),
        number("change"), interval("low", "high"), count("n"),
    ]  # fmt: skip
    metric = _metrics(shown)
    caption = f"Attention replaced {shown['when'][0]}; the change of {metric} is paired by text, its reference is 0."
    return Table(f"{metric[0].upper()}{metric[1:]} with other attention", shown, caption, columns)


def _metrics(summary: pl.DataFrame) -> str:
    """What was measured, in words."""
    return " or ".join(summary["metric"].unique(maintain_order=True))


def _metric(summary: pl.DataFrame) -> list[Column]:
    """A column for it, where there are two."""
    return [text("metric")] if summary["metric"].n_unique() > 1 else []


def _changes(summary: pl.DataFrame) -> Table:
    said = (
        pl.when(pl.col("high") < 0).then(pl.lit("worse"))
        .when(pl.col("low") > 0).then(pl.lit("better"))
        .otherwise(pl.lit("cannot tell"))
    )  # fmt: skip
    shown = _in_words(summary).with_columns(said=said)
    columns = [
        *which(shown), *_metric(shown), text("condition", "attention"), text("when", "replaced"), share("before"),
        share("after"), number("change"), interval("low", "high"), text("said", "it does"), share("majority"),
        count("seeds"), count("n"),
    ]  # fmt: skip
    caption = (
        "Accuracy (or BLEU, of 100 %) with the model's attention (before) and another (after); the change is paired by "
        "text, and its reference is 0. Majority: always the most frequent class."
    )
    metric = _metrics(summary)
    return Table(f"{metric[0].upper()}{metric[1:]} with other attention", shown, caption, columns)


def _f1(summary: pl.DataFrame) -> Table:
    shown = _in_words(summary.filter(pl.col("f1_before").is_not_null()))
    columns = [
        *which(shown), text("condition", "attention"), text("when", "replaced"), share("f1_before", "before"),
        share("f1_after", "after"), number("f1_change", "change"), interval("f1_low", "f1_high"),
        share("flipped", "other prediction"), count("single", "one word"), count("n"),
    ]  # fmt: skip
    caption = (
        "F1 of the second class of two, or the mean over the task's gold classes. Other prediction: texts that get "
        "another class. One word: texts whose only weight is 1 whatever is done; they count too."
    )
    return Table("F1 with other attention", shown, caption, columns)


def _in_words(summary: pl.DataFrame) -> pl.DataFrame:
    return named(summary).with_columns(pl.col("condition").replace(CONDITIONS), pl.col("when").replace_strict(WHEN))


def _left_out(asked: Necessity, summary: pl.DataFrame) -> list[str]:
    """Which models were not tried without any attention, though asked for, as a sentence."""
    every = summary["model"].unique(maintain_order=True)
    tried = set(summary.filter(pl.col("condition") == NONE)["model"])
    lacking = [model for model in every if model not in tried]
    if NONE not in asked.trained or not lacking:
        return []
    cannot = "Only bilstm, bigru, average, cnn and flat can be built so: others have no last state to read instead."
    return [f"Not trained without any attention: {'; '.join(lacking)}. {cannot}"]


def sections(found: Found) -> Iterator[Section]:
    """Changes of accuracy and F1, and the paper's table."""
    asked: Necessity = found.experiment
    summary = found.summary
    paper = Table(
        "In the layout of Vashishth et al. 2019, tables 1 to 3",
        found.table("vashishth"),
        "Accuracy (or BLEU) of the model, then absolute changes, in points: means over seeds, and their standard "
        "deviation (±).",
    )
    figures = found.figures("What a model loses with other attention")
    of_classes = [] if summary["f1_before"].is_null().all() else [_f1(summary)]
    tables = [_changes(summary), *of_classes, paper]
    yield Section(
        "Does the model need its attention?", "", [MEANING, *_left_out(asked, summary), UNFIT], tables, figures
    )
