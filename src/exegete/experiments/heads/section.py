"""Heads in a report: what each head is worth, where it looks, and how many can go."""

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, chapter, shown
from exegete.experiments.heads.figure import MEASURES, ORDERS, WAYS
from exegete.report.columns import count, interval, number, share, text
from exegete.report.section import Table

SHOWN = 12  # heads of the table: those that are worth most
MEANING = (
    "One head after the other gives nothing, in all texts, and what the prediction loses is told in log-odds of its "
    "class: above 0 it is worse without the head. A head with nothing to do rests on a symbol or on the first token; "
    "silenced but for these sinks, it loses only what it reads from words. Heads can stand in for each other, so a "
    "head that costs nothing alone may be needed once another is gone."
)
LOOKING = (
    "Where heads look as the model is: shares of weight on single tokens, the mean over all tokens that look; how "
    "even and how far; how sensitive the loss is to the head; and how far the weights that it gives rank words as an "
    "importance does. Entropy and distance stand here twice, with sinks and without: a head that rests on a symbol "
    "looks sharp and far whatever else it does."
)
PRUNING = (
    "Ever more heads give nothing, and nothing is trained. The order is that of the loss's sensitivity to a head, "
    "found on other texts and asked anew after every step; beside it stand random orders. A flat beginning says that "
    "many heads are not needed, not that their weights may be read."
)
COLUMNS = (
    text("how", "silenced"), text("site"), count("head"), number("mean", "log-odds lost"), interval("low", "high"),
    share("unaltered", "as it is"), share("accuracy"), number("change"),
    interval("change_low", "change_high", "95 % of the change"), count("n"),
)  # fmt: skip


def _most(found: QuestionResult) -> Table:
    """The heads that are worth most, of the first way."""
    frame = found.summary
    first = frame.filter(pl.col("how") == frame["how"][0])
    cells = first.with_columns(size=pl.col("mean").abs()).sort("size", descending=True, maintain_order=True)
    kept = cells.group_by("task", "model", "split", maintain_order=True).head(SHOWN)
    said = f"The {SHOWN} largest of {first['head'].len()}. {_count(first)}"
    return shown("Heads that the prediction hangs on", *COLUMNS, caption=said, words={"how": WAYS}).on(kept)


def _count(first: pl.DataFrame) -> str:
    """How many intervals leave 0 out, and how many would by chance."""
    told = int(((first["low"] > 0) | (first["high"] < 0)).sum())
    return f"{told} of {first.height} intervals leave 0 out; about {0.05 * first.height:.0f} would by chance."


GOES_WITH = shown(
    "Do heads that matter look in the same places?",
    text("measure", "where a head looks"), number("rho", "Spearman's ρ"), interval("low", "high"), count("heads"),
    count("n"), of="correlations", words={"measure": MEASURES},
    caption="Over all heads of a model, with the mean size of what the prediction loses without one. Unrelated: 0.",
)  # fmt: skip
CURVE = shown(
    "Accuracy without heads",
    text("order"), count("gone", "pruned"), count("of"), share("unaltered", "as it is"), share("mean", "accuracy"),
    interval("low", "high"), number("change"), interval("change_low", "change_high", "95 % of the change"),
    share("majority"), of="pruning", words={"order": ORDERS},
)  # fmt: skip

headline, sections = chapter(
    _most,
    Passage("Which heads does the prediction hang on?", [MEANING], [_most], {"heads": "What a head is worth"}),
    Passage("Where do heads look?", [LOOKING], [GOES_WITH], {"looks": "Where heads look"}),
    Passage("How many heads can go?", [PRUNING], [CURVE], {"pruning": "Accuracy with ever more heads pruned"}),
)
