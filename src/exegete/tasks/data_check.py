"""Data check: what a person should know of labelled texts before anything is trained on them.

A text is known by its place, a hash of it (`splitting.place`), its class by a number: so a check needs 24 bytes a text
(columns of `partition`), whatever the corpus. What leaves nothing to learn is refused; what makes scores look better
than they are, or a class hard to learn, is a warning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exegete.base.errors import UsageError
from exegete.tasks.class_names import is_number
from exegete.tasks.partition import TextColumns

MANY, NEARLY_ALL = 20, 0.5  # classes, and classes a text, above which labels are no classes
SCALE = 5  # different numbers with decimals, few of them twice, that are no classes
RARE = 5  # texts of a class in train below which it is hardly learnt
NAMED = 3  # rare classes that are named


@dataclass(frozen=True)
class SplitCheck:
    """What was counted in one split."""

    split: str
    texts: int
    words: float  # in the mean
    classes: int
    rarest: int  # texts of its rarest class
    repeated: int  # texts that the split has before
    shared: int  # texts that train has, too


@dataclass(frozen=True)
class DataCheck:
    """What was counted in every split, and what follows from it."""

    splits: tuple[SplitCheck, ...]
    warnings: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """As a manifest keeps it."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "DataCheck":
        """From what a manifest keeps."""
        return cls(tuple(SplitCheck(**each) for each in facts["splits"]), tuple(facts["warnings"]))

    def __str__(self) -> str:
        """A short table for a terminal."""
        titles = ("split", "texts", "mean words", "classes", "rarest class", "repeated", "also in train")
        rows = [
            (
                each.split,
                f"{each.texts:,}",
                f"{each.words:.1f}",
                f"{each.classes:,}",
                f"{each.rarest:,}",
                f"{each.repeated:,}",
                "" if each.split == "train" else percent(each.shared, each.texts),
            )
            for each in self.splits
        ]
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (titles, *rows)
        )


def check_data(splits: Mapping[str, TextColumns], labels: Sequence[str]) -> DataCheck:
    """Count what the splits of a task hold, from the place, the class and the words of every text."""
    train = splits["train"]
    found = tuple(_counted(name, each, train) for name, each in splits.items())
    return DataCheck(found, tuple(_warnings(found, splits, labels)))


def _counted(name: str, columns: TextColumns, train: TextColumns) -> SplitCheck:
    texts, (_, sizes) = len(columns["place"]), np.unique(columns["label"], return_counts=True)
    shared = 0 if columns is train else int(np.isin(columns["place"], train["place"]).sum())
    repeated = texts - len(np.unique(columns["place"]))
    return SplitCheck(name, texts, float(columns["longest"].mean()), len(sizes), int(sizes.min()), repeated, shared)


def _warnings(found: Sequence[SplitCheck], splits: Mapping[str, TextColumns], labels: Sequence[str]) -> list[str]:
    said = []
    for each in found:
        if each.shared:
            which = f"{each.shared:,} of {each.texts:,} texts"
            said.append(
                f"{percent(each.shared, each.texts)} of {each.split} ({which}) are in train, too: a model may know "
                "them by heart, and scores on them are too good. Give the splits different texts."
            )
    said += [f"All texts of {each.split} have one class." for each in found if each.classes == 1]
    if count := _conflicting(list(splits.values())):
        what = "1 text is" if count == 1 else f"{count:,} texts are"
        said.append(f"{what} there more than once, with different classes: no model can get all of them right.")
    if rare := _rare(splits["train"]["label"], labels):
        said.append(rare)
    if len(labels) > MANY and all(map(is_number, labels)):
        said.append(
            f"The labels are {len(labels):,} different numbers, each a class of its own: to a model they have no "
            "order. Cut a scale into a few classes."
        )
    return said


def _conflicting(splits: Sequence[TextColumns]) -> int:
    """Different texts whose copies, in any split, have different classes."""
    both = np.rec.fromarrays(
        [np.concatenate([each["place"] for each in splits]), np.concatenate([each["label"] for each in splits])]
    )
    _, classes = np.unique(np.unique(both)["f0"], return_counts=True)
    return int((classes > 1).sum())


def _rare(train: NDArray[np.int64], labels: Sequence[str]) -> str:
    """A warning of classes that training hardly shows; none where all are shown often enough."""
    sizes = np.bincount(train, minlength=len(labels))
    rare = [(int(size), label) for size, label in zip(sizes, labels, strict=True) if 0 < size < RARE]
    if not rare or len(train) < 2 * RARE * len(labels):  # of few texts, all is rare
        return ""
    few = ", ".join(f"'{label}' ({size})" for size, label in sorted(rare)[:NAMED])
    more = f" and {len(rare) - NAMED:,} more" if len(rare) > NAMED else ""
    return f"Classes with fewer than {RARE} texts in train: {few}{more}. They are hardly learnt: merge or drop them."


def refuse_unlearnable(name: str, labels: Sequence[str], texts: int) -> None:
    """Refuse labels from which nothing can be learnt: one class, or nearly as many as texts."""
    if len(labels) < 2:
        what = f"only the class '{labels[0]}'" if labels else "no classes"
        raise UsageError(f"task '{name}' has {what}: a classifier needs at least two")
    numbers = all(map(is_number, labels))
    decimals = numbers and any("." in label for label in labels)
    if len(labels) <= NEARLY_ALL * texts or len(labels) < (SCALE if decimals else MANY):
        return
    counted = f"{len(labels):,} different ones in {texts:,} texts"
    if numbers:
        raise UsageError(
            f"the labels of task '{name}' are numbers, not classes ({counted}): a classifier needs a few classes: cut "
            "the scale into some, as low and high"
        )
    raise UsageError(
        f"the labels of task '{name}' are no classes ({counted}): name the column of classes with label=COLUMN"
    )


def percent(part: int, whole: int) -> str:
    """A share for people; what is not nothing is never 0 %, and what is not all never 100 %."""
    share = 100 * part / max(1, whole)
    return f"{share:.0f}%" if part in (0, whole) else f"{min(99.9, max(0.1, share)):.1f}%"
