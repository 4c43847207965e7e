"""Prepare: from the records of any source to a task, with every text that is left out counted in a note."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from typing import NamedTuple

from exegete.base.errors import ExegeteError, unknown
from exegete.tasks.example import Example, Record, Task, check_labels
from exegete.tasks.settings import TaskSettings
from exegete.tasks.splitting import PROPORTIONS, by_place, place, take
from exegete.tasks.tokenizers import TOKENIZERS, Tokenizer

SPLITS = ("train", "dev", "test")
CARVED = 0.1  # the share of the training texts that one missing split gets


class Row(NamedTuple):
    """A record and its row in its source file, counted from 0: filters leave the number as it is."""

    id: int
    record: Record


@dataclass(frozen=True, slots=True)
class _Draft:
    """An example whose class is still a name."""

    id: int
    texts: tuple[tuple[str, ...], ...]
    label: str
    rationale: tuple[int, ...]
    place: float  # its hash, for splits and limits

    def __len__(self) -> int:
        return sum(map(len, self.texts))


def prepare(
    name: str, rows: Mapping[str, Iterable[Row]], settings: TaskSettings, origin: str, notes: Sequence[str] = ()
) -> Task:
    """A task from the rows of the splits that the source has; missing splits are cut from train by hash of the text."""
    said = list(notes)
    drafts = {split: _drafted(split, found, settings, said) for split, found in rows.items()}
    whole = _with_all_splits(name, drafts, said)
    kept = {split: _selected(split, whole[split], settings, said) for split in SPLITS}
    labels = _labels(name, kept)
    splits = {split: _numbered(found, labels) for split, found in kept.items()}
    if settings.planting:
        splits, note = settings.planting(splits, labels, settings.min_df)
        said.append(note)
    check_labels(splits["train"], splits, labels)
    return Task(
        name=name,
        labels=labels,
        splits=splits,
        origin=origin,
        notes=tuple(said),
        min_df=settings.min_df,
        lower=settings.lower,
        tokenizer=settings.tokenizer,
    )


def _drafted(split: str, rows: Iterable[Row], settings: TaskSettings, notes: list[str]) -> list[_Draft]:
    """The tokenised rows of one split; a text without a word is left out and counted."""
    read = [_draft(split, row, settings) for row in rows]
    kept = [draft for draft in read if all(draft.texts)]
    if read and not kept:
        raise ExegeteError(f"all {len(read):,} texts of {split} are empty: check which column or field holds the text")
    if len(kept) < len(read):
        notes.append(_left_out(len(read) - len(kept), "empty text", split))
    return kept


def _draft(split: str, row: Row, settings: TaskSettings) -> _Draft:
    record = row.record
    tokenize = TOKENIZERS[settings.tokenizer]
    written = [text.lower() for text in record.texts] if settings.lower else record.texts
    texts = tuple(tuple(tokenize(text)) for text in written)
    rationale = _marked(record, written, tokenize, f"row {row.id + 1:,} of {split}") if record.rationale else ()
    return _Draft(row.id, texts, record.label, rationale, place(record.texts, settings.split_seed))


def _marked(record: Record, texts: Sequence[str], tokenize: Tokenizer, where: str) -> tuple[int, ...]:
    """The tokens of a rationale: spans count white-space words, and each of those is one token or more."""
    ends = [0, *accumulate(len(tokenize(word)) for text in texts for word in text.split())]
    marked: set[int] = set()
    for start, end in record.rationale:
        if not 0 <= start <= end < len(ends):
            raise ExegeteError(
                f"{where}: the rationale span [{start}, {end}) is not within the {len(ends) - 1} words of its text: "
                "spans count white-space words from 0, the end not included"
            )
        marked.update(range(ends[start], ends[end]))
    return tuple(sorted(marked))


def _with_all_splits(name: str, drafts: dict[str, list[_Draft]], notes: list[str]) -> dict[str, list[_Draft]]:
    """Train, dev and test: those of the source, and the missing ones by hash of the text."""
    found = {split: examples for split, examples in drafts.items() if examples}
    if not found:
        raise ExegeteError(f"task '{name}' has no examples: its source is empty")
    if len(found) == 1:
        notes.append("The source has no splits: its texts were split 80/10/10 by hash of the text.")
        return by_place(next(iter(found.values())), _place, PROPORTIONS)
    for split in found:
        if split not in SPLITS:
            raise unknown(f"split of task '{name}'", split, SPLITS)
    if "train" not in found:
        raise ExegeteError(f"task '{name}' has {' and '.join(found)} but no train: give the training examples too")
    missing = [split for split in SPLITS if split not in found]
    if not missing:
        return found
    notes.append(f"The source has no {missing[0]} split: it is {CARVED:.0%} of train, cut off by hash of the text.")
    return {**found, **by_place(found["train"], _place, {"train": 1 - CARVED, missing[0]: CARVED})}


def _selected(split: str, drafts: Sequence[_Draft], settings: TaskSettings, notes: list[str]) -> list[_Draft]:
    """The drafts of one split that pass the length filter, at most as many as its limit."""
    kept, dropped = settings.lengths(drafts)
    if dropped:
        notes.append(_left_out(dropped, "text", split, " by the length filter"))
    if not kept:
        raise ExegeteError(f"no text is left in {split}: give it more examples, or widen min_length and max_length")
    return take(kept, settings.limits[split], _place)


def _place(draft: _Draft) -> float:
    return draft.place


def _labels(name: str, splits: Mapping[str, Sequence[_Draft]]) -> tuple[str, ...]:
    """All classes in order, in numerical order where all are numbers."""
    found = sorted({draft.label for drafts in splits.values() for draft in drafts})
    if len(found) < 2:
        raise ExegeteError(f"task '{name}' has only the class '{found[0]}': a classifier needs at least two")
    return tuple(sorted(found, key=float) if all(map(_is_number, found)) else found)


def _is_number(label: str) -> bool:
    try:
        return isfinite(float(label))
    except ValueError:
        return False


def _numbered(drafts: Sequence[_Draft], labels: Sequence[str]) -> tuple[Example, ...]:
    number = {label: i for i, label in enumerate(labels)}
    return tuple(Example(d.id, d.texts, number[d.label], d.rationale) for d in drafts)


def _left_out(count: int, what: str, split: str, how: str = "") -> str:
    plural, verb = ("", "was") if count == 1 else ("s", "were")
    return f"{count:,} {what}{plural} {verb} left out of {split}{how}."
