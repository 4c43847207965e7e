"""Class names: what the classes of a data set are called, and what people call those that it only numbers.

A name is for people. What is learnt, split and drawn hangs on a class's place alone, so numbers stay what they were;
a checkpoint from before the names is given them when it is loaded.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

_OPINIONS = {"0": "negative", "1": "positive"}
_NAMES = dict.fromkeys(("rotten_tomatoes", "imdb", "sst", "sst_jw", "eraser_movies"), _OPINIONS)


def name_classes(labels: Sequence[str], task: str) -> tuple[str, ...]:
    """The classes of a task's source, each by its name; one without a name stays as the source writes it.

    >>> name_classes(["0", "1"], "imdb:subset=jw"), name_classes(["0", "1"], "agnews")
    (('negative', 'positive'), ('0', '1'))
    """
    names: Mapping[str, str] = _NAMES.get(task.partition(":")[0], {})
    return tuple(names.get(label, label) for label in labels)


_WHOLE = re.compile(r"-?\d+(\.0+)?")


def plain_names(labels: Iterable[str]) -> dict[str, str]:
    """The name of every class by how a source writes it; whole numbers that are written as 1.0 are called 1.

    >>> plain_names(["0.0", "1.0"]), plain_names(["0.0", "0.5"])
    ({'0.0': '0', '1.0': '1'}, {'0.0': '0.0', '0.5': '0.5'})
    """
    every = list(labels)
    if not all(map(_WHOLE.fullmatch, every)):
        return {label: label for label in every}
    return {label: str(int(label.partition(".")[0])) if "." in label else label for label in every}


def sort_classes(labels: Iterable[str]) -> tuple[str, ...]:
    """Classes in order, in numerical order where all are numbers."""
    found = sorted(set(labels))
    return tuple(sorted(found, key=float) if all(map(is_number, found)) else found)


def is_number(label: str) -> bool:
    """Whether a class is called by a number."""
    try:
        return isfinite(float(label))
    except ValueError:
        return False
