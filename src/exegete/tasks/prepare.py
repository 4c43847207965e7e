"""Prepare: from the records of any source to a task, with every text that is left out counted in a note."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.class_names import name_classes, plain_names, sort_classes
from exegete.tasks.example import Example, Record, Task, check_labels
from exegete.tasks.scripts import SAMPLE, is_uncut
from exegete.tasks.settings import TaskSettings
from exegete.tasks.splits import SPLITS, left_out, place
from exegete.tasks.tokenizers import TOKENIZERS, VERBATIM, Tokenizer, as_written

if TYPE_CHECKING:
    from exegete.tasks.partition import TextColumns

UNCUT = (
    "The texts have no spaces between words, and tokenizer={tokenizer} takes a whole clause for one word: cut them "
    "with tokenizer=characters, or put spaces between words and use tokenizer=whitespace."
)
UNLABELLED = 2_000  # texts without labels that are taken
NO_LABELS = "The texts have no labels: how often the model is right is not known, nor what hangs on that."


class SourceRow(NamedTuple):
    """A record and its row in its source file, counted from 0: filters leave the number as it is."""

    id: int
    record: Record


@dataclass(frozen=True, slots=True)
class NamedExample:
    """An example whose class is still a name."""

    id: int
    texts: tuple[tuple[str, ...], ...]
    label: str
    rationale: tuple[int, ...]
    candidates: tuple[str, ...]
    place: float  # its hash, for splits and limits
    written: tuple[tuple[str, ...], ...] = ()  # as of an `Example`

    def __len__(self) -> int:
        """Length filters look at the longest text."""
        return max(map(len, self.texts))


def prepare(
    name: str, rows: Mapping[str, Iterable[SourceRow]], settings: TaskSettings, origin: str, notes: Sequence[str] = ()
) -> Task:
    """A task from the rows of the splits that the source has; missing splits are cut from train by hash of the text."""
    from exegete.tasks import partition  # numpy, which listings don't need
    from exegete.tasks.data_check import check_data, refuse_unlearnable

    said = list(notes)
    drafts = {split: _drafted(split, each, settings, said) for split, each in rows.items()}
    every = [draft for each in drafts.values() for draft in each]
    codes = {label: code for code, label in enumerate(dict.fromkeys(draft.label for draft in every))}
    if every and not any(draft.candidates for draft in every):
        refuse_unlearnable(name, sort_classes(plain_names(codes).values()), len(every))
    whole = partition.with_all_splits(name, _columns(drafts, codes), said, settings.split_column)
    columns = {}
    for split in SPLITS:
        fitting = partition.within_lengths(split, whole[split], settings.lengths, said)
        columns[split] = partition.first_by_place(fitting, settings.limits[split])
    kept = {split: [every[at] for at in found["at"].tolist()] for split, found in columns.items()}
    candidates = {label for each in kept.values() for draft in each for label in draft.candidates}
    written, number = partition.number_classes(columns, codes, candidates)
    splits = {split: _numbered(found, number, settings.explained) for split, found in kept.items()}
    labels = name_classes(written, name)
    if settings.planting:
        splits, note = settings.planting(splits, labels, settings.min_df)
        said.append(note)
    check_labels(splits["train"], splits, labels)
    return Task(
        name=name,
        labels=labels,
        written=written,
        splits=splits,
        origin=origin,
        notes=tuple(said),
        min_df=settings.min_df,
        lower=settings.lower,
        tokenizer=settings.tokenizer,
        kind="pair" if len(splits["train"][0].texts) > 1 else "classification",
        check=check_data(columns, labels),
    )


def prepare_unlabelled(name: str, rows: Iterable[SourceRow], settings: TaskSettings, origin: str) -> Task:
    """A task of texts whose classes nobody said, for a model that is trained: a fifth is dev, the rest is test.

    Nothing is learnt from them, so that dev is train, too: it lends its words where some are replaced. Of many texts
    those with the smallest hash are taken.
    """
    said, counts, kept = [NO_LABELS], SplitCounts(), list[tuple[float, int, NamedExample]]()
    for number, row in enumerate(rows):
        draft = draft_of("test", row, settings)
        counts.add(row.record.texts, list(map(len, draft.texts)))
        if all(draft.texts) and settings.lengths([draft])[0]:
            keep = heappush if len(kept) < UNLABELLED else heappushpop
            keep(kept, (-draft.place, -number, draft))
    counts.tell("test", settings, said)
    if len(kept) < 5:
        raise UsageError(f"task '{name}' has {len(kept)} texts: give at least 5, and some hundred for an answer")
    if counts.count > len(kept):
        said.append(f"{len(kept):,} of {counts.count:,} texts were taken, by hash of the text.")
    drafts = [draft for _, _, draft in sorted(kept, key=lambda entry: -entry[1])]
    number_of = {"": 0}
    dev, test = (
        _numbered([d for place, d in enumerate(drafts) if (place % 5 == 0) == is_dev], number_of, settings.explained)
        for is_dev in (True, False)
    )
    return Task(
        name=name,
        labels=(),
        written=("",),
        splits={"train": dev, "dev": dev, "test": test},
        origin=origin,
        notes=tuple(said),
        min_df=settings.min_df,
        lower=settings.lower,
        tokenizer=settings.tokenizer,
        kind="pair" if len(drafts[0].texts) > 1 else "classification",
        labelled=False,
    )


def _columns(drafts: Mapping[str, Sequence["NamedExample"]], codes: Mapping[str, int]) -> dict[str, "TextColumns"]:
    """What a selection needs of the texts of every split, and where each is among all of them."""
    import numpy as np

    columns, start = {}, 0
    for split, each in drafts.items():
        rows = [(start + i, draft.place, len(draft), codes[draft.label]) for i, draft in enumerate(each)]
        columns[split] = np.array(rows, [("at", "i8"), ("place", "f8"), ("longest", "i8"), ("label", "i8")])
        start += len(each)
    return columns


@dataclass
class SplitCounts:
    """What is told of the rows of one split: how many there are, the first texts, and those without a word."""

    count: int = 0
    texts: list[str] = field(default_factory=list)  # of the first rows
    empty: Counter[int] = field(default_factory=Counter)  # by which text of a row is, or the first
    pairs: bool = False

    def add(self, texts: Sequence[str], lengths: Sequence[int]) -> None:
        """One more row: its texts, and how many words each has."""
        if self.count < SAMPLE:
            self.texts += texts
        self.count += 1
        self.pairs = len(texts) > 1
        if 0 in lengths:
            self.empty[lengths.index(0)] += 1

    def tell(self, split: str, settings: TaskSettings, notes: list[str]) -> None:
        """Note texts that nobody cut into words and texts that are left out; refuse a split of nothing else."""
        uncut = UNCUT.format(tokenizer=settings.tokenizer)
        if settings.tokenizer != "characters" and uncut not in notes and is_uncut(self.texts):
            notes.append(uncut)
        names = ("passage", "question") if self.pairs else ("text",)
        if self.count and self.empty.total() == self.count:
            what = [names[which] for which in sorted(self.empty)]
            where = f"check which column or field holds the {' and the '.join(what)}"
            raise ExegeteError(f"all {self.count:,} {'s or '.join(what)}s of {split} are empty: {where}")
        notes += [left_out(count, f"empty {names[which]}", split) for which, count in sorted(self.empty.items())]


def _drafted(split: str, rows: Iterable[SourceRow], settings: TaskSettings, notes: list[str]) -> list[NamedExample]:
    """The tokenised rows of one split; a text without a word is left out and counted."""
    seen, read = SplitCounts(), []
    for row in rows:
        draft = draft_of(split, row, settings)
        seen.add(row.record.texts, list(map(len, draft.texts)))
        read.append(draft)
    seen.tell(split, settings, notes)
    return [draft for draft in read if all(draft.texts)]


def draft_of(split: str, row: SourceRow, settings: TaskSettings) -> NamedExample:
    """A row cut into words."""
    record = row.record
    tokenize = TOKENIZERS[settings.tokenizer]
    written = [text.lower() for text in record.texts] if settings.lower else record.texts
    texts = tuple(tuple(tokenize(text)) for text in written)
    rationale = _marked(record, written, texts, tokenize, f"row {row.id + 1:,} of {split}") if record.rationale else ()
    if record.candidates and record.label not in record.candidates:
        where = f"row {row.id + 1:,} of {split}"
        raise ExegeteError(f"{where}: the answer '{record.label}' is not among its candidates: add it, or drop the row")
    where_it_falls = place(record.texts, settings.split_seed)
    characters = characters_of(written, texts, settings.tokenizer)
    return NamedExample(row.id, texts, record.label, rationale, record.candidates, where_it_falls, characters)


def characters_of(
    written: Sequence[str], texts: Sequence[Sequence[str]], tokenizer: str
) -> tuple[tuple[str, ...], ...]:
    """Words with the characters around them, for an `Example`: none where they stand one space apart, or are others."""
    if tokenizer not in VERBATIM or all(" ".join(words) == text for text, words in zip(written, texts, strict=True)):
        return ()
    return tuple(as_written(text, words) for text, words in zip(written, texts, strict=True))


def _marked(
    record: Record, written: Sequence[str], texts: Sequence[Sequence[str]], tokenize: Tokenizer, where: str
) -> tuple[int, ...]:
    """The tokens of a rationale: spans count white-space words, and each of those is one token or more."""
    words = [word for text in written for word in text.split()]
    ends: Sequence[int] = range(len(words) + 1)
    if sum(map(len, texts)) > len(words):  # else every word is one token
        ends = [0, *accumulate(len(tokenize(word)) for word in words)]
    marked: set[int] = set()
    for start, end in record.rationale:
        if not 0 <= start <= end < len(ends):
            raise ExegeteError(
                f"{where}: the rationale span [{start}, {end}) is not within the {len(ends) - 1} words of its text: "
                "spans count white-space words from 0, the end not included"
            )
        marked.update(range(ends[start], ends[end]))
    return tuple(sorted(marked))


def _numbered(drafts: Sequence[NamedExample], number: Mapping[str, int], explained: int) -> tuple[Example, ...]:
    return tuple(
        Example(
            d.id,
            d.texts,
            number[d.label],
            explained_marks(d, explained),
            tuple(sorted({number[label] for label in d.candidates})),
            explained,
            d.written,
        )
        for d in drafts
    )


def explained_marks(draft: NamedExample, explained: int) -> tuple[int, ...]:
    """The marked words of the explained text, counted in it."""
    before = sum(map(len, draft.texts[:explained]))
    return tuple(i - before for i in draft.rationale if 0 <= i - before < len(draft.texts[explained]))
