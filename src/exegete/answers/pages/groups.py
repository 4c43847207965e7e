"""Groups: what a number for all texts hides, as a part of the chapter that decides.

By class and by length of text; how many texts have no word that matters, and how much weight lies on words that do
nothing.
"""

from collections.abc import Iterator

import polars as pl

from exegete.answers.groups import OFTEN, BesideGrade, Group
from exegete.answers.pages.verdicts import labels_by_place
from exegete.answers.rules import TEXTS
from exegete.answers.scorecard import Audit
from exegete.report.columns import class_label, count, interval, number, text, varying
from exegete.report.section import Section, Table

CAPTION = (
    "Means over the ways of removing words that count. The intervals of one grouping hold together at 90 %, however "
    f"many texts were asked. Groups of fewer than {TEXTS} texts are left out."
)
LENGTHS = {"short": "short texts", "medium": "texts of medium length", "long": "long texts"}


def groups_section(audit: Audit) -> Section | None:
    """Γ of attention by class and by length of text; None of a run that can't tell."""
    labels = labels_by_place(list(audit.beside))
    rows = [
        {"model": labels[where], "texts": name, "ranks": group.mean, "low": group.low, "high": group.high, "n": group.n}
        for where, beside in audit.beside.items()
        for name, group in _groups(beside)
    ]
    said = [f"{labels[where]}: {sentence}" if len(labels) > 1 else sentence
            for where, beside in audit.beside.items() for sentence in _said(beside)]  # fmt: skip
    if not rows and not said:
        return None
    columns = [varying("model"), text("texts"), number("ranks", "Γ"), interval("low", "high", "interval"), count("n")]
    tables = [Table("Γ of attention by class and by length", pl.DataFrame(rows), CAPTION, columns)] if rows else []
    return Section("Is it so of every text?", "", said, tables)


def _groups(beside: BesideGrade) -> Iterator[tuple[str, Group]]:
    for group in beside.classes:
        yield f"predicted {class_label(group.name)}", group
    for group in sorted(beside.lengths, key=lambda group: list(LENGTHS).index(group.name)):
        yield LENGTHS[group.name], group


def _said(beside: BesideGrade) -> Iterator[str]:
    """What is more than now and then, a sentence each."""
    if beside.void >= OFTEN:
        yield f"In {beside.void:.0%} of the texts no word matters enough to be ordered: nothing is said of these."
    if beside.idle >= OFTEN:
        which = f"{beside.idle_is}, which does nothing" if beside.idle_is else "words that do nothing"
        active = f" Without them Γ is {beside.active:.2f}." if beside.active is not None else ""
        yield f"{beside.idle:.0%} of the weight lies on {which}.{active}"
