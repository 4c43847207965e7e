"""Partition: which texts of a source are in which split, and which number each class has.

A text is a row of columns: `place` (a hash of it in [0, 1)), `longest` (words of its longest text) and `label` (its
class). So the texts that are held in memory and those that are written to disk are cut, filtered and limited alike.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exegete.base.errors import ExegeteError, unknown
from exegete.tasks.class_names import plain_names, sort_classes
from exegete.tasks.settings import LengthFilter
from exegete.tasks.splits import CARVED, PROPORTIONS, SPLITS, left_out

TextColumns = NDArray[Any]  # a structured array: a row for every text


def with_all_splits(
    name: str, found: Mapping[str, TextColumns], notes: list[str], column: str | None = None
) -> dict[str, TextColumns]:
    """Train, dev and test: those of the source, and the missing ones by hash of the text.

    `column` is the one that names the split of every row, if there is one.
    """
    there = {split: rows for split, rows in found.items() if len(rows)}
    source, proportions = _cut(name, list(there), notes, column)
    if source is None:
        return there
    ends = list(accumulate(proportions.values()))
    part = np.searchsorted(ends, there[source]["place"], side="right").clip(max=len(ends) - 1)
    whole = there | {split: there[source][part == number] for number, split in enumerate(proportions)}
    empty = [split for split, rows in whole.items() if not len(rows)]
    if empty:
        different = len(np.unique(there[source]["place"]))
        texts = "1 different text" if different == 1 else f"{different:,} different texts"
        raise ExegeteError(
            f"no text is left for {' and '.join(empty)}: splits are cut from {texts}, and equal texts land in one "
            "split: give more that are different, or name the splits yourself"
        )
    return whole


def _cut(
    name: str, found: Sequence[str], notes: list[str], column: str | None
) -> tuple[str | None, Mapping[str, float]]:
    """Which split of a source is cut into which; none where it has all three."""
    if not found:
        raise ExegeteError(f"task '{name}' has no examples: its source is empty")
    if len(found) == 1 and (column is None or found[0] == "train"):
        why = "The source has no splits" if column is None else f"Column '{column}' says train of every row"
        notes.append(f"{why}: its texts were split 80/10/10 by hash of the text.")
        return found[0], PROPORTIONS
    for split in found:
        if split not in SPLITS:
            raise unknown(f"split of task '{name}'", split, SPLITS)
    if "train" not in found:
        raise ExegeteError(f"task '{name}' has {' and '.join(found)} but no train: give the training examples too")
    missing = [split for split in SPLITS if split not in found]
    if not missing:
        return None, {}
    notes.append(f"The source has no {missing[0]} split: it is {CARVED:.0%} of train, cut off by hash of the text.")
    return "train", {"train": 1 - CARVED, missing[0]: CARVED}


def within_lengths(split: str, rows: TextColumns, lengths: LengthFilter, notes: list[str]) -> TextColumns:
    """The texts of a split that pass the length filter."""
    low, high = lengths.bounds(rows["longest"])
    kept = rows[(rows["longest"] >= low) & (rows["longest"] <= high)]
    if len(kept) < len(rows):
        notes.append(left_out(len(rows) - len(kept), "text", split, " by the length filter"))
    if not len(kept):
        raise ExegeteError(f"no text is left in {split}: give it more examples, or widen min_length and max_length")
    return kept


def first_by_place(rows: TextColumns, limit: int | None) -> TextColumns:
    """The rows with the smallest places (the first of equals), in their own order; all without a limit.

    A smaller sample is part of every larger one, so results on subsamples can be compared.
    """
    return rows[np.sort(rows["place"].argsort(kind="stable")[:limit])]


def number_classes(
    splits: Mapping[str, TextColumns], codes: Mapping[str, int], more: Iterable[str] = ()
) -> tuple[tuple[str, ...], dict[str, int]]:
    """The classes in order, and the number of each by how its source writes it; columns get these numbers.

    `codes` are what the columns hold now, `more` classes that texts may choose from, though none has them.
    """
    there = {code for rows in splits.values() for code in np.unique(rows["label"]).tolist()}
    names = plain_names([*(label for label, code in codes.items() if code in there), *more])
    classes = sort_classes(names.values())
    order = {name: number for number, name in enumerate(classes)}
    number_of = {label: order[name] for label, name in names.items()}
    numbers = np.array([number_of.get(label, -1) for label in codes])
    for rows in splits.values():
        rows["label"] = numbers[rows["label"]]
    return classes, number_of
