"""Given: scores that another tool computed, read from a file and judged like any importance.

A row is one word of one text: `example` is the text's id in the task (its row in the source, from 0), `token` the place
of the word in the text (from 0), `score` the number. `exegete tokens` writes such a table without scores, with the
columns `split` and `word` beside, which are checked where they are there: a score must never land on another word. A
column `method` tells several sets of scores apart.

Scores are looked up, never computed: a text that the file doesn't have can't be scored.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.importance.contract import Importance, Scores, Target, cost, on_words, predicted
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task

NEEDED, METHOD, SPLIT, WORD = ("example", "token", "score"), "method", "split", "word"
READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": lambda path: pl.read_parquet(path, glob=False),
    ".csv": lambda path: pl.read_csv(path, glob=False),
    ".tsv": lambda path: pl.read_csv(path, separator="\t", glob=False),
    ".jsonl": lambda path: pl.read_ndjson(path),
}
HOW = "`exegete tokens` writes the table to fill in"


@dataclass(frozen=True)
class Given:
    """The scores of a file; `name` chooses among those of its column `method`, or is only what they are called."""

    file: str
    name: str | None = None
    signed: bool | None = (
        None  # whether a sign means for or against the class; if some scores are negative, unless told
    )

    def __post_init__(self) -> None:
        _table(self)  # what is wrong with the file is found before any work is done

    @property
    def content(self) -> str:
        """A fingerprint of the file: a stage that used other scores is another stage."""
        return hashlib.sha256(_path(self.file).read_bytes()).hexdigest()[:16]

    def has(self, task: Task, split: str) -> bool:
        """Whether the file has scores of any text of a split."""
        return not _of_split(self, task, split).is_empty()

    def bound(self, task: Task, split: str, examples: Sequence[Example]) -> "Looked":
        """The scores of some texts of a split, each checked against its words."""
        rows = _of_split(self, task, split)
        _check_words(self, rows, split, examples)
        found = rows.sort("example", "token").group_by("example", maintain_order=True).agg("score")
        asked = {e.id for e in examples}
        scores = {i: torch.tensor(row, dtype=torch.float64) for i, row in found.iter_rows() if i in asked}
        signed = bool((_table(self)["score"] < 0).any()) if self.signed is None else self.signed
        return Looked(self.file, scores, signed)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """Refused: a batch doesn't say which split its texts are of, nor whether they were changed."""
        del model, batch, target
        raise UsageError(
            f"the scores of {self.file} are of given texts and can't be computed anew: name them only in experiments "
            "that score a task's texts as they are, such as agreement, faithfulness (robustness=0), plausibility and "
            "known_answer"
        )


@dataclass(frozen=True, eq=False)
class Looked:
    """Scores by example, of texts that were checked."""

    file: str
    scores: dict[int, Tensor]  # [word] each
    signed: bool

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """Look up; the model is asked only which class it predicts."""
        with torch.no_grad():
            target = target or predicted(model.trace(batch).logits)
        values = torch.full_like(batch.tokens, torch.nan, dtype=torch.float64)
        for row, example in enumerate(batch.ids.tolist()):
            values[row, batch.words[row]] = self.scores[example]
        return Scores(on_words(values, batch), signed=self.signed, target=target, cost=cost(batch))


def for_texts(importance: Importance, task: Task, split: str, examples: Sequence[Example]) -> Importance:
    """An importance that is ready for some texts of a task: given scores are looked up now, all others stay."""
    return importance.bound(task, split, examples) if isinstance(importance, Given) else importance


def absence(importance: Importance, task: Task, split: str) -> str | None:
    """Why an importance has nothing to say of a split, as a sentence; None if it has."""
    if not isinstance(importance, Given) or importance.has(task, split):
        return None
    return f"{importance.file} has no scores of {split} texts: {HOW} (--split {split})"


def specs_of(file: str) -> tuple[str, ...]:
    """The importances that a file holds, as written: one, or one for every name in its column `method`."""
    frame = _columns(_path(file))
    methods = frame[METHOD].cast(pl.String).drop_nulls().unique().sort().to_list() if METHOD in frame.columns else []
    for name in methods:
        if not name or any(mark in name for mark in ",="):
            raise UsageError(f"the method '{name}' of {file} can't be named: rename it, without ',' and '='")
    return tuple(f"given:file={file},name={name}" for name in methods) or (f"given:file={file}",)


def tokens_of(task: Task, splits: Sequence[str] = ("test",)) -> pl.DataFrame:
    """The words of a task's texts, one row each: split, example, token, word."""
    rows = [
        (split, e.id, token, word) for split in splits for e in task.split(split) for token, word in enumerate(e.words)
    ]
    schema = {SPLIT: pl.String, "example": pl.Int64, "token": pl.Int64, WORD: pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _path(file: str) -> Path:
    path = Path(file).expanduser()
    if not path.is_file():
        raise ExegeteError(f"there is no file of scores {file}: {HOW}")
    return path


def _table(given: Given) -> pl.DataFrame:
    """The rows that are meant, complete and each once."""
    return _read(_path(given.file), given.name, given.content)


@lru_cache(maxsize=8)
def _read(path: Path, name: str | None, _: str) -> pl.DataFrame:
    frame = _typed(_columns(path), path)
    return _once(_chosen(frame, path, name), path)


def _columns(path: Path) -> pl.DataFrame:
    """The file as it is, if it has the columns."""
    if path.suffix not in READERS:
        raise UsageError(f"'{path.name}' is no kind of file that can be read: choose from {', '.join(READERS)}")
    try:
        frame = READERS[path.suffix](path)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise ExegeteError(f"{path} can't be read as {path.suffix[1:]} ({first}): write it again") from None
    for column in NEEDED:
        if column not in frame.columns:
            raise UsageError(f"{path.name} has no column '{column}': scores need {', '.join(NEEDED)}; {HOW}")
    return frame


def _typed(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Whole numbers that say where, and finite scores; what is neither is counted, and the first one named."""
    for column, dtype in (("example", pl.Int64), ("token", pl.Int64), ("score", pl.Float64)):
        cast = frame[column].cast(dtype, strict=False)
        wrong = cast.is_null() | (
            ~cast.is_finite() if column == "score" else frame[column].cast(pl.Float64, strict=False) != cast
        )
        if wrong.any():
            row = int(wrong.arg_true()[0])
            what = "a finite number" if column == "score" else "a whole number"
            raise ExegeteError(
                f"{path.name}: {column} is not {what} in {wrong.sum():,} of {len(frame):,} rows, first in row "
                f"{row + 1:,} ({frame[column][row]})"
            )
        frame = frame.with_columns(cast.alias(column))
    beside = [pl.col(column).cast(pl.String) for column in (METHOD, SPLIT, WORD) if column in frame.columns]
    return frame.with_columns(*beside)


def _chosen(frame: pl.DataFrame, path: Path, name: str | None) -> pl.DataFrame:
    """The rows of one method, where there are several."""
    if METHOD not in frame.columns:
        return frame
    methods = frame[METHOD].drop_nulls().unique().sort().to_list()
    if name is None and len(methods) > 1:
        raise UsageError(f"{path.name} has scores of {', '.join(methods)}: choose one with name=")
    if name is not None and name not in methods:
        raise unknown(f"method of {path.name}", name, methods)
    return frame if name is None else frame.filter(pl.col(METHOD) == name)


def _once(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    where = [column for column in (SPLIT, "example", "token") if column in frame.columns]
    twice = frame.filter(pl.struct(where).is_duplicated())
    if not twice.is_empty():
        said = ", ".join(f"{column} {twice[column][0]}" for column in where)
        more = "" if SPLIT in where else "; ids are those of a split: tell splits apart with a column `split`"
        raise ExegeteError(
            f"{path.name} has several scores for one word, in {len(twice):,} rows, first for {said}: keep one{more}"
        )
    return frame


def _of_split(given: Given, task: Task, split: str) -> pl.DataFrame:
    """The rows about a split's texts; ids that no text has are refused."""
    frame = _table(given)
    ids = {name: {e.id for e in examples} for name, examples in task.splits.items()}
    if SPLIT in frame.columns:
        for name in set(frame[SPLIT].unique()) - set(ids):
            raise unknown(f"split in {given.file}", str(name), ids)
        rows = frame.filter(pl.col(SPLIT) == split)
        strange = set(rows["example"]) - ids[split]
    else:
        _tell_apart(given, set(frame["example"]), ids, split)
        rows = frame.filter(pl.col("example").is_in(sorted(ids[split])))
        strange = set(frame["example"]).difference(*ids.values())
    if strange:
        raise ExegeteError(
            f"{given.file} has scores for {len(strange):,} texts that '{task.name}' doesn't have, the first is example "
            f"{min(strange)}: ids are rows of the source, from 0; {HOW}"
        )
    return rows


def _tell_apart(given: Given, named: set[int], ids: dict[str, set[int]], split: str) -> None:
    """Without a column `split`, an id must be of one split only."""
    for other in ids:
        if other != split and named & ids[split] & ids[other]:
            raise UsageError(
                f"an id of {given.file} may be of a text of {split} or of {other}, for this task counts them anew in "
                f"every split: add a column `split`; {HOW}"
            )


def _check_words(given: Given, rows: pl.DataFrame, split: str, examples: Sequence[Example]) -> None:
    """Every text that is asked about has one score per word, and the words are the same where they are named."""
    texts = {e.id: e.words for e in examples}
    columns = [pl.col("token"), *([pl.col(WORD)] if WORD in rows.columns else [])]
    found = {i: rest for i, *rest in rows.group_by("example").agg(pl.struct(columns)).iter_rows()}
    missing = [i for i in texts if i not in found]
    _refuse(given, missing, split, len(texts), "no scores for", "score every text of the split")
    uneven = [i for i in texts if {at["token"] for at in found[i][0]} != set(range(len(texts[i])))]
    if uneven:
        first, n = uneven[0], len(texts[uneven[0]])
        lost = sorted(set(range(n)) - {at["token"] for at in found[first][0]})
        what = f"token {lost[0]} has none" if lost else f"there is one for token {n} or beyond"
        _refuse(given, uneven, split, len(texts), f"other tokens than the {n} words of", f"{what}; tokens count from 0")
    if WORD in rows.columns:
        other = [i for i in texts if any(at[WORD] != texts[i][at["token"]] for at in found[i][0])]
        _refuse(given, other, split, len(texts), "other words in", "score the words as the task cuts them")


def _refuse(given: Given, wrong: Sequence[int], split: str, asked: int, what: str, so: str) -> None:
    """What is wrong, in how many texts, and the first of them."""
    if wrong:
        raise ExegeteError(
            f"{given.file} has {what} example {wrong[0]} of {split}, and so it is in {len(wrong):,} of the {asked:,} "
            f"texts that are asked about: {so}; {HOW}"
        )
