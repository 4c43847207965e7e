"""Class names: what people call the classes that a data set only numbers.

A name is for people. What is learnt, split and drawn hangs on a class's place alone, so numbers stay what they were;
a checkpoint from before the names is given them when it is loaded.
"""

from collections.abc import Mapping, Sequence

_OPINIONS = {"0": "negative", "1": "positive"}
_NAMES = dict.fromkeys(("rotten_tomatoes", "imdb", "sst", "sst_jw", "eraser_movies"), _OPINIONS)


def named(labels: Sequence[str], task: str) -> tuple[str, ...]:
    """The classes of a task's source, each by its name; one without a name stays as the source writes it.

    >>> named(["0", "1"], "imdb:subset=jw"), named(["0", "1"], "agnews")
    (('negative', 'positive'), ('0', '1'))
    """
    names: Mapping[str, str] = _NAMES.get(task.partition(":")[0], {})
    return tuple(names.get(label, label) for label in labels)
