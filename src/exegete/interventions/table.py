"""Table: weights that were stored by text, to be imposed on another model.

A row is found by the words of its text, as the reader of a batch spells them: ids are only unique in a split, and a
batch has no words but rows. Texts that look the same to the model get the mean of their weights.
Weights over a passage depend on the question, too: the key of a pair is the passage, `BESIDE`, and the question.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.files import whole_file
from exegete.interventions.contract import scaled
from exegete.models.contract import Intervention, Predictor, Trace
from exegete.tasks.batching import Batch, batches_of_one_length
from exegete.tasks.example import Example
from exegete.tasks.reader import Reader

TOLERANCE = 1e-4  # of a sum of weights that should be 1: stored weights are often rounded

BESIDE = "\n"  # no word: after it come the words of another text, which have no weights
TextKey = tuple[str, ...]  # a text's words; perhaps BESIDE, and those of the text beside it
Seen = tuple[int, ...]  # the same as rows of a vocabulary, with −1 for BESIDE
Key = TypeVar("Key", TextKey, Seen)


class WeightTable:
    """Weights by text, each row a distribution over the words of its text."""

    def __init__(self, rows: Mapping[TextKey, Tensor]) -> None:
        self.rows = dict(rows)
        self._seen: dict[str, dict[Seen, Tensor]] = {}  # by reader
        _check(self.rows)

    def __repr__(self) -> str:
        return f"Table({len(self.rows)} texts, {self.hash})"

    @cached_property
    def hash(self) -> str:
        """A fingerprint of all words and weights."""
        digest = hashlib.sha256()
        for words, row in self.rows.items():
            digest.update(repr(words).encode() + row.double().numpy().tobytes())
        return digest.hexdigest()[:16]

    @classmethod
    def of(
        cls,
        model: Predictor,
        examples: Sequence[Example],
        intervene: Intervention | None = None,
    ) -> "WeightTable":
        """The weights of a model's last attention on the words of some texts.

        What a key that is no word takes (`ladder` has one) is left out, and each row is divided by its sum.
        """
        found: list[tuple[TextKey, Tensor]] = []
        for members in batches_of_one_length(examples, size=512, budget=32_768):
            some = [examples[i] for i in members]
            batch = model.collate(some)
            with torch.no_grad():
                weights = _of_words(model, batch, model.trace(batch, intervene=intervene))
            found += [(_text(e), row[own].cpu()) for e, row, own in zip(some, weights, batch.words, strict=True)]
        return cls(_averaged(found))

    @classmethod
    def read(cls, path: Path | str) -> "WeightTable":
        """From a parquet file with two columns of lists: words and weights."""
        frame = _frame(Path(path))
        pairs = zip(frame["words"].to_list(), frame["weights"].to_list(), strict=True)
        try:
            return cls(_averaged((tuple(words), torch.tensor(row, dtype=torch.float64)) for words, row in pairs))
        except ExegeteError as error:
            raise ExegeteError(f"{path}: {error}") from None

    def write(self, path: Path | str) -> None:
        """To a parquet file that `read` reads."""
        columns = {"words": [list(words) for words in self.rows], "weights": [r.tolist() for r in self.rows.values()]}
        with whole_file(Path(path)) as beside:
            pl.DataFrame(columns, schema=SCHEMA).write_parquet(beside)

    def seen(self, reader: Reader) -> dict[Seen, Tensor]:
        """Rows by their words as a reader sees them."""
        if reader.fingerprint not in self._seen:
            rows = _averaged((_as_seen(words, reader), row) for words, row in self.rows.items())
            self._seen[reader.fingerprint] = rows
        return self._seen[reader.fingerprint]

    def lookup(self, batch: Batch) -> list[Tensor]:
        """The row of every text of a batch, [word] each; a text without words needs none."""
        seen, none, found = self.seen(batch.reader), torch.zeros(0), []
        own, beside = _words_of(batch, batch.words), _words_of(batch, (batch.sentence >= 0) & ~batch.words)
        for place, (words, others) in enumerate(zip(own, beside, strict=True)):
            key = (*words, -1, *others) if others else words
            row = seen.get(key, None if words else none)
            if row is None:
                raise ExegeteError(f"no weights are stored for the words of text {int(batch.ids[place])}: store them")
            found.append(row)
        return found


def _of_words(model: Predictor, batch: Batch, trace: Trace) -> Tensor:
    """The last attention's weights of words, [batch, token], each row divided by its sum."""
    weights = trace.word_weights(model.readout, batch) if model.readout else None
    if weights is None:
        raise UsageError(
            f"weights are stored by words, and the last attention of {model.spec} is not over words, or not over those "
            "of the explained text"
        )
    return scaled(weights, batch.words)


def _text(example: Example) -> TextKey:
    """The words that have weights, and those of a text beside them."""
    others = [text for number, text in enumerate(example.texts) if number != example.explained]
    beside = tuple(word for text in others for word in text)
    return (*example.words, BESIDE, *beside) if beside else example.words


def _weighed(words: TextKey) -> TextKey:
    """The words that have weights."""
    return words[: words.index(BESIDE)] if BESIDE in words else words


def _as_seen(words: TextKey, reader: Reader) -> Seen:
    """Words as a model sees them."""
    own = _weighed(words)
    seen, beside = (tuple(reader.rows(some)) for some in (own, words[len(own) + 1 :]))
    return (*seen, -1, *beside) if beside else seen


def _words_of(batch: Batch, which: Tensor) -> list[Seen]:
    """Some words of every example, whatever stands between them."""
    ends, flat = which.sum(-1).cumsum(0).tolist(), batch.reader.plain(batch.tokens[which]).tolist()
    return [tuple(flat[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


SCHEMA = pl.Schema({"words": pl.List(pl.String), "weights": pl.List(pl.Float64)})


def _averaged(pairs: Iterable[tuple[Key, Tensor]]) -> dict[Key, Tensor]:
    """Rows by key; those that share a key have the same length, if they are right, and are averaged."""
    groups: dict[Key, list[Tensor]] = {}
    for key, row in pairs:
        groups.setdefault(key, []).append(row)
    return {key: rows[0] if len(rows) == 1 else _mean(rows) for key, rows in groups.items()}


def _mean(rows: list[Tensor]) -> Tensor:
    if len({len(row) for row in rows}) > 1:
        raise ExegeteError("two rows have the same words but different numbers of weights: give every word one")
    return torch.stack(rows).mean(0)


def _check(rows: Mapping[TextKey, Tensor]) -> None:
    """Refuse what is no distribution over its text, with the first text that has it."""
    texts = [_weighed(words) for words in rows]
    for words, row in zip(texts, rows.values(), strict=True):
        if len(row) != len(words):
            raise ExegeteError(f"{_said(words)} has {len(words)} words but {len(row)} weights: give every word one")
    if not texts:
        return
    flat = torch.cat([row.double() for row in rows.values()])
    which = torch.arange(len(texts)).repeat_interleave(torch.tensor([len(words) for words in texts]))
    wrong = ~(flat.isfinite() & (flat >= 0))
    if bool(wrong.any()):
        at = int(wrong.nonzero()[0, 0])
        raise ExegeteError(
            f"{_said(texts[int(which[at])])} has a weight of {flat[at]:g}: weights are numbers from 0 to 1"
        )
    total = torch.zeros(len(texts), dtype=torch.float64).index_add(0, which, flat)
    some = torch.tensor([len(words) > 0 for words in texts])
    off = some & ((total - 1).abs() > TOLERANCE)
    if bool(off.any()):
        at = int(off.nonzero()[0, 0])
        raise ExegeteError(f"the weights of {_said(texts[at])} sum to {total[at]:.6g}: divide them by their sum")


def _said(words: TextKey) -> str:
    shown = " ".join(words[:8])
    return f"the text '{shown}{' …' if len(words) > 8 else ''}'"


def _frame(path: Path) -> pl.DataFrame:
    """The two columns of a file, as lists of words and of numbers."""
    if not path.is_file():
        raise ExegeteError(f"there is no file of weights {path}: write one with columns words and weights")
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ExegeteError(f"{path} can't be read as parquet ({error}): write it with WeightTable.write") from None
    for name, dtype in SCHEMA.items():
        if name not in frame.columns:
            raise ExegeteError(f"{path} has no column '{name}': weights are stored in two, words and weights")
        inner = getattr(frame.schema[name], "inner", None)
        fits = inner == pl.String if name == "words" else inner is not None and inner.is_numeric()
        if not fits:
            raise ExegeteError(f"the column '{name}' of {path} holds {frame.schema[name]}, not lists ({dtype})")
    return _complete(frame.select(*SCHEMA), path).cast(SCHEMA)


def _complete(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    missing = frame.select(
        pl.any_horizontal(pl.all().is_null() | pl.all().list.eval(pl.element().is_null()).list.any())
    )
    if missing.to_series().any():
        raise ExegeteError(f"{path}, row {missing.to_series().arg_true()[0] + 1}: a word or a weight is missing")
    return frame
