"""Next word: a translation seen as many classifications, so that everything asked of classes can be asked of it.

At one step of a target the decoder knows the source and the words before, and chooses the next from the vocabulary: the
classes are the rows of the reader, the right one is the reference's own word. Which steps:

- `quartile`: step q of every sentence, where q is the 25th percentile of the reference lengths, as Vashishth et al.
  (2019) look at output distributions; shorter sentences have no step q;
- `all`: every step, the end symbol after the last word included;
- a word: every place where a reference says this whole word.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.example import Example, Task
from exegete.tasks.pieces import MARK
from exegete.tasks.reader import Reader
from exegete.tasks.splits import left_out
from exegete.tasks.translation import ALL, QUARTILE
from exegete.tasks.vocabulary import END, SPECIAL

STEPS = 1000  # of one sentence, so that id · STEPS + step names one step of one sentence
WordPlaces = Callable[[Sequence[str]], list[int]]  # the steps of a target that are asked about, counted from 0


def next_words(task: Task, reader: Reader, step: str) -> Task:
    """The held-out sentences of a translation task as examples whose class is the next piece of the target."""
    notes: list[str] = []
    step = step.lower() if task.lower else step
    held_out = {split: examples for split, examples in task.splits.items() if split != "train"}
    found = {split: _asked(split, examples, reader, step, notes) for split, examples in held_out.items()}
    splits = {split: examples for split, examples in found.items() if examples}
    if not splits:
        raise UsageError(f"no reference of {' or '.join(held_out)} has the word '{step}': choose a word of the target")
    return replace(
        task,
        labels=(*SPECIAL, *reader.words),
        splits=splits,
        notes=(*task.notes, *notes),
        kind="pair",
        step=step,
        alignments={},
    )


def quartile(lengths: Sequence[int]) -> int:
    """The 25th percentile: the smallest length that a quarter of all don't exceed.

    >>> quartile([9, 3, 5, 7])
    3
    """
    return sorted(lengths)[(len(lengths) - 1) // 4]


def _asked(split: str, examples: Sequence[Example], reader: Reader, step: str, notes: list[str]) -> tuple[Example, ...]:
    """An example for every step that is asked about."""
    if step == QUARTILE:
        return _at_quartile(split, examples, reader, notes)
    _check_lengths(split, examples)
    places: WordPlaces = _every if step == ALL else partial(_of_word, word=step)
    found = tuple(e for sentence in examples for e in _at(sentence, places, reader))
    if not found:
        notes.append(f"No reference of {split} has the word '{step}'.")
    return found


def _at_quartile(split: str, examples: Sequence[Example], reader: Reader, notes: list[str]) -> tuple[Example, ...]:
    """Word q of every target that has so many; the example keeps the sentence's id."""
    q = quartile([len(e.texts[1]) for e in examples])
    long = [e for e in examples if len(e.texts[1]) >= q]
    notes.append(f"Explained is step {q} of {split}, the 25th percentile of its reference lengths in pieces.")
    if len(long) < len(examples):
        notes.append(left_out(len(examples) - len(long), "sentence", split, f": shorter than {q} pieces"))
    return tuple(_cut_off(e, q - 1, e.id, reader) for e in long)


def _at(sentence: Example, places: WordPlaces, reader: Reader) -> Iterator[Example]:
    for step in places(sentence.texts[1]):
        yield _cut_off(sentence, step, sentence.id * STEPS + step, reader)


def _cut_off(sentence: Example, step: int, number: int, reader: Reader) -> Example:
    """A source and what was written before a step; the class is what comes next."""
    source, target = sentence.texts
    label = reader.rows(target[step : step + 1])[0] if step < len(target) else END
    return Example(number, (source, target[:step]), label)


def _every(target: Sequence[str]) -> list[int]:
    return list(range(len(target) + 1))


def _of_word(target: Sequence[str], word: str) -> list[int]:
    """The pieces at which a whole word starts: neither letters nor digits touch it."""
    text, starts = "", {}
    for step, piece in enumerate(target):
        starts[len(text) + piece.startswith(MARK)] = step
        text += piece
    matches = re.finditer(rf"(?<!\w){re.escape(word.replace(' ', MARK))}(?!\w)", text)
    return [starts[match.start()] for match in matches if match.start() in starts]


def _check_lengths(split: str, examples: Sequence[Example]) -> None:
    for e in examples:
        if len(e.texts[1]) >= STEPS:
            raise ExegeteError(
                f"row {e.id + 1:,} of {split} has a target of {len(e.texts[1]):,} pieces, and steps are counted below "
                f"{STEPS:,}: use step={QUARTILE}, or leave it out with max_length={STEPS - 1},max_length_in=all"
            )
