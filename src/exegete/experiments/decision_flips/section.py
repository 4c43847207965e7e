"""Decision flips in a report: the 2 × 2 table of Serrano & Smith, with intervals."""

from collections.abc import Iterator

from exegete.experiments.common.section import Found, which
from exegete.page.columns import count, interval, number, probability, share, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "The highest weight of the last attention is set to 0, or a random other one, and the others are renormalised (in "
    "a model with a null key, that key takes the weight instead): does the class with the highest probability change? "
    "Texts where both removals do the same say nothing of one against the other. McNemar's exact p compares the texts "
    "that only the highest flips with those that only the other flips; of several seeds it is the largest."
)


def headline(found: Found) -> Table:
    """How often each removal flips the decision."""
    shown = named(found.table("margins"))
    columns = [
        *which(shown), share("top", "without the highest"), share("random", "without another"),
        probability("p", "McNemar p"), count("n"),
    ]  # fmt: skip
    return Table("Texts whose decision flips", shown, "", columns)


def _margins(found: Found) -> Table:
    shown = named(found.table("margins"))
    columns = [
        *which(shown), share("top", "without the highest"), interval("top_low", "top_high"),
        share("random", "without another"), interval("random_low", "random_high"),
        number("difference"), interval("low", "high"), probability("p", "McNemar p"), count("n"), count("undefined"),
    ]  # fmt: skip
    return Table("Texts whose decision flips", shown, "Undefined: texts of one key.", columns)


def sections(found: Found) -> Iterator[Section]:
    """Margins, the joint table, its layout in the paper, and tiles."""
    summary = named(found.summary)
    columns = [
        *which(summary), text("remove_top", "highest flips"), text("remove_random", "other flips"), share("share"),
        interval("low", "high"), count("count"), count("n"), count("emptied"),
    ]  # fmt: skip
    joint = Table("Joint shares", summary, "Emptied: no weight is left without the highest.", columns)
    paper = Table("As in table 2 of Serrano & Smith, in percent", named(found.table("serrano_smith")))
    figures = found.figures("Decision flips")
    yield Section("Does the highest weight decide?", "", [MEANING], [_margins(found), joint, paper], figures)
