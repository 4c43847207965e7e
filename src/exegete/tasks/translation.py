"""Translation: pairs of sentences in two languages, cut into pieces of one joint vocabulary.

An example has two texts, the pieces of the source and those of the target; there are no classes. What is left out is
counted in a note: pairs with an empty side, and training pairs above the length limit. Held-out pairs are never too
long unless asked: BLEU is that of a whole test set, or not comparable.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import Spec
from exegete.tasks.alignments import check_links, read_alignments, reverse_links
from exegete.tasks.example import Example, Links, Task
from exegete.tasks.pieces import Pieces, learn_pieces, unknown_count, whole_words
from exegete.tasks.settings import AtLeastOne, SampleSettings
from exegete.tasks.splits import SPLITS, left_out, place

CutText = Callable[[str], tuple[str, ...]]
QUARTILE, ALL = "quartile", "all"  # steps that have a name; any other is a word of the target


class TranslationSettings(SampleSettings, ABC):
    """How pairs of sentences become examples, and how a kind of source is read."""

    pieces: AtLeastOne | None = None  # of the joint vocabulary; words stay whole without it
    lower: bool = False
    max_length: AtLeastOne | None = 100  # in pieces, of either side, included
    max_length_in: Literal["train", "all"] = "train"  # the splits that longer pairs are left out of
    reverse: bool = False  # translate the target into the source
    step: str = Field(QUARTILE, min_length=1)  # which output words are explained: quartile, all, or a word

    @abstractmethod
    def task(self, spec: Spec) -> Task:
        """Read the source that `spec` names."""


class CorpusSettings(TranslationSettings):
    """How pairs of sentences that people wrote become examples: they need pieces and may have gold alignments."""

    pieces: AtLeastOne = 4000
    alignments: Path | None = None  # of the test split, in Pharaoh format


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A sentence and its translation, as a source gives them."""

    id: int  # its row, counted from 0
    source: str
    target: str
    links: Links | None = None  # between white-space words, where known
    place: float = 0.0  # its hash, for splits and limits: that of the source, so that equal sources stay together

    def __len__(self) -> int:
        """Words of the shorter side: 0 where one is empty."""
        return min(len(self.source.split()), len(self.target.split()))


def pair(row: int, source: str, target: str, seed: int) -> SentencePair:
    """A pair with its hash."""
    return SentencePair(row, source, target, None, place((source,), seed))


def translation(
    name: str,
    pairs: Mapping[str, Iterable[SentencePair]],
    settings: TranslationSettings,
    origin: str,
    notes: Sequence[str] = (),
) -> Task:
    """A task from the pairs of the splits that the source has; missing splits are cut from train by hash."""
    said = list(notes)
    filled = {split: _filled(split, list(found), said) for split, found in pairs.items()}
    taken = _taken(name, filled, settings, said)
    if settings.reverse:
        taken = {split: [_reversed(p) for p in found] for split, found in taken.items()}
    pieces = _learnt(taken["train"], settings)
    cut: CutText = pieces.cut if pieces else partial(whole_words, lower=settings.lower)
    splits = {split: _short(split, _examples(found, cut), settings, said) for split, found in taken.items()}
    said += _unknown(splits)
    return Task(
        name=name,
        labels=(),
        splits=splits,
        origin=origin,
        notes=tuple(said),
        lower=settings.lower,
        tokenizer="pieces" if pieces else "whitespace",
        kind="translation",
        step=settings.step,
        pieces=pieces.json if pieces else "",
        alignments=_alignments(taken, splits),
    )


def with_alignments(pairs: Iterable[SentencePair], path: Path) -> list[SentencePair]:
    """Pairs with the links of a file, a line per pair, before any is left out."""
    found, lines = list(pairs), read_alignments(path.expanduser())
    if len(found) != len(lines):
        raise ExegeteError(
            f"{path} has {len(lines):,} lines and the test split {len(found):,} pairs: give it a line for every pair"
        )
    for number, (p, links) in enumerate(zip(found, lines, strict=True), start=1):
        check_links(links, (p.source, p.target), f"{path}, line {number}")
    return [SentencePair(p.id, p.source, p.target, links, p.place) for p, links in zip(found, lines, strict=True)]


def align_splits(
    splits: dict[str, Iterable[SentencePair]], settings: CorpusSettings
) -> dict[str, Iterable[SentencePair]]:
    """The splits of a source, the test split with its alignments if there are any."""
    if settings.alignments is None:
        return splits
    if "test" not in splits:
        raise UsageError("alignments are those of the test split: give a test split of its own too")
    return splits | {"test": with_alignments(splits["test"], settings.alignments)}


def _filled(split: str, pairs: list[SentencePair], notes: list[str]) -> list[SentencePair]:
    """The pairs that have words on both sides."""
    empty = [p for p in pairs if not len(p)]
    if pairs and len(empty) == len(pairs):
        raise ExegeteError(
            f"all {len(pairs):,} pairs of {split} have an empty side: check which columns or files hold the texts"
        )
    if empty:
        how = f" for want of a source or a target (the first is row {empty[0].id + 1:,})"
        notes.append(left_out(len(empty), "pair", split, how))
    return [p for p in pairs if len(p)]


def _taken(
    name: str, pairs: Mapping[str, Sequence[SentencePair]], settings: TranslationSettings, notes: list[str]
) -> dict[str, list[SentencePair]]:
    """The pairs of all three splits, at most as many as their limits."""
    import numpy as np  # which listings don't need

    from exegete.tasks.partition import first_by_place, with_all_splits

    every = [p for each in pairs.values() for p in each]
    rows = np.array([(at, p.place) for at, p in enumerate(every)], [("at", "i8"), ("place", "f8")])
    ends = np.cumsum([0, *map(len, pairs.values())])
    columns = {split: rows[start:end] for split, start, end in zip(pairs, ends, ends[1:], strict=False)}
    whole = with_all_splits(name, columns, notes)
    chosen = {split: first_by_place(whole[split], settings.limits[split]) for split in SPLITS}
    return {split: [every[at] for at in found["at"].tolist()] for split, found in chosen.items()}


def _reversed(p: SentencePair) -> SentencePair:
    return SentencePair(p.id, p.target, p.source, None if p.links is None else reverse_links(p.links), p.place)


def _learnt(train: Sequence[SentencePair], settings: TranslationSettings) -> Pieces | None:
    """Pieces of both languages together."""
    if settings.pieces is None:
        return None
    return learn_pieces((text for p in train for text in (p.source, p.target)), settings.pieces, settings.lower)


def _examples(pairs: Iterable[SentencePair], cut: CutText) -> list[Example]:
    return [Example(p.id, (cut(p.source), cut(p.target)), 0) for p in pairs]


def _short(
    split: str, examples: Sequence[Example], settings: TranslationSettings, notes: list[str]
) -> tuple[Example, ...]:
    """The examples within the length limit; of held-out splits all, unless asked."""
    limit = settings.max_length
    short = tuple(e for e in examples if limit is None or max(map(len, e.texts)) <= limit)
    long = len(examples) - len(short)
    if long and split != "train" and settings.max_length_in == "train":
        notes.append(f"{long:,} of {split} {'is' if long == 1 else 'are'} longer than max_length={limit} and stayed.")
        return tuple(examples)
    if long:
        notes.append(left_out(long, "pair", split, f": longer than max_length={limit} pieces"))
    if not short:
        raise ExegeteError(f"no pair is left in {split}: give it more, or raise max_length={limit}")
    return short


def _unknown(splits: Mapping[str, Sequence[Example]]) -> list[str]:
    """How many characters of held-out texts training never showed."""
    counts = {split: unknown_count(text for e in examples for text in e.texts) for split, examples in splits.items()}
    return [
        f"{n:,} character{'' if n == 1 else 's'} of {split} that can't be written in the pieces of train "
        f"became the unknown piece."
        for split, n in counts.items()
        if n
    ]


def _alignments(
    pairs: Mapping[str, Sequence[SentencePair]], kept: Mapping[str, Sequence[Example]]
) -> dict[str, dict[int, Links]]:
    """By split and id, of the splits that have any."""
    ids = {split: {e.id for e in examples} for split, examples in kept.items()}
    found = {
        split: {p.id: p.links for p in some if p.links is not None and p.id in ids[split]}
        for split, some in pairs.items()
    }
    return {split: links for split, links in found.items() if links}
