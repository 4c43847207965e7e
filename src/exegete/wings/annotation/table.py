"""Annotated, for people: the 2 × 2 tables, the shares of relevant answers, and how far the annotators agree."""

import polars as pl

from exegete.plugins import Table, count, interval, number, share, text
from exegete.wings.annotation.results import Annotated


def tables(found: Annotated) -> list[Table]:
    """What was answered; agreement only where there are two to agree."""
    shown = [_crossed(found), _relevant(found)]
    return [*shown, _agreement(found)] if len(found.annotators) > 1 else shown


def _crossed(found: Annotated) -> Table:
    """A line for the correct predictions of a condition and one for the wrong ones."""
    lines = [
        {
            "annotator": row["annotator"],
            "weights": row["condition"],
            "n": row["n"],
            "prediction": prediction,
            "relevant": row[f"{prediction}_relevant"],
            "not relevant": row[f"{prediction}_not_relevant"],
        }
        for row in found.crossed.iter_rows(named=True)
        for prediction in ("correct", "wrong")
    ]
    columns = (text("annotator"), text("weights"), count("n", "answers"), text("prediction"))
    return Table(
        "Is the prediction correct, and are the highlighted words relevant to it?",
        pl.DataFrame(lines, infer_schema_length=None),
        "Shares of an annotator's answers in a condition: the four cells of a 2 × 2 table add up to 100 %.",
        (*columns, share("relevant"), share("not relevant")),
    )


def _relevant(found: Annotated) -> Table:
    return Table(
        "How often are the highlighted words relevant?",
        found.relevant,
        "95 % intervals: Wilson's, all answers on an item as one observation; of the difference (original − permuted) "
        "Newcombe's. A difference of 0: people can't tell attention from its permutation.",
        (
            text("annotator"),
            text("of", "weights"),
            count("items"),
            count("n", "answers"),
            number("share", "share relevant"),
            interval("low", "high"),
        ),
    )


def _agreement(found: Annotated) -> Table:
    return Table(
        "Do the annotators agree? Cohen's κ",
        found.agreement,
        "κ = (p_o − p_e) / (1 − p_e): p_o is the share of items with equal answers, p_e what it would be by chance. "
        "Over the items that both answered; 95 % interval by bootstrap over items.",
        (
            text("first"),
            text("second"),
            count("n", "items"),
            number("observed", "p_o"),
            number("expected", "p_e"),
            number("kappa", "κ"),
            interval("low", "high"),
        ),
    )
