"""Groups: what attention's own rows say that a number for all texts hides.

Void texts, in which no word matters enough to be ordered; words with much weight that do nothing (*idle*), and Γ
without them; weight on words that hold a prediction back; and classes or lengths of text that surely have different
grades.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import polars as pl

from exegete.answers.rules import ERROR, TEXTS
from exegete.experiments.mediation.statistics import attention_by_text
from exegete.measures.betting import Bets

OFTEN = 0.1  # of the texts, or of the weight, from which on it is said
MOST = 0.5  # of the texts that have an idle word: more have the same


class Group(NamedTuple):
    """Texts that have something in common, and Γ of attention there: the mean over the specifications that count."""

    name: str
    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class BesideGrade:
    """Of one model on one task."""

    void: float = 0.0  # share of texts
    opposed: float = 0.0  # share of the weight, on words that hold the prediction back
    idle: float = 0.0  # share of the weight, on words that do nothing
    idle_is: str = ""  # which word that is, where it mostly is the same
    active: float | None = None  # Γ without idle words
    classes: tuple[Group, ...] = ()
    lengths: tuple[Group, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        groups = {"classes": self.classes, "lengths": self.lengths}
        return asdict(self) | {name: [each._asdict() for each in found] for name, found in groups.items()}

    def apart(self, edges: Sequence[float]) -> tuple[Group, Group] | None:
        """Two classes that surely lie on both sides of an edge, the worse first; none where that can't be told."""
        for edge in edges:
            below = [group for group in self.classes if group.high < edge]
            above = [group for group in self.classes if group.low > edge]
            if below and above:
                return min(below, key=lambda group: group.mean), max(above, key=lambda group: group.mean)
        return None


def grade_groups(rows: pl.DataFrame, counted: Sequence[str]) -> BesideGrade:
    """What stands beside Γ, from the rows of one model on one task; older runs have less."""
    texts = attention_by_text(rows, counted)  # example, predicted, n, ranks, void, …
    if texts.is_empty() or "idle" not in texts.columns:
        return BesideGrade()
    told = texts.filter(pl.col("ranks").is_not_null())
    mean = told.select(pl.col("opposed", "idle", "ranks_active").mean()).row(0, named=True)
    first, second = (pl.col("n").quantile(share, "linear") for share in (1 / 3, 2 / 3))
    length = pl.when(pl.col("n") <= first).then(pl.lit("short")).when(pl.col("n") <= second).then(pl.lit("medium"))
    return BesideGrade(
        float(texts["void"].mean() or 0.0),  # type: ignore[arg-type]
        mean["opposed"] or 0.0, mean["idle"] or 0.0, _which(told), mean["ranks_active"],
        _groups(told.with_columns(of="predicted")),
        _groups(told.with_columns(of=length.otherwise(pl.lit("long")))),
    )  # fmt: skip


def _which(texts: pl.DataFrame) -> str:
    """The idle word with the most weight, by its place or by itself; none where most texts have others."""
    idle = texts.filter(pl.col("idle_place").is_not_null())
    if idle.is_empty():
        return ""
    first, last = (
        float(idle.select((pl.col("idle_place") == place).mean()).item()) for place in (pl.lit(0.0), pl.col("n") - 1.0)
    )
    word = idle["idle_word"].mode().sort()[0]
    if first > MOST:
        return "the first word"
    if last > MOST:
        return "the last word"
    return f"'{word}'" if float((idle["idle_word"] == word).mean() or 0.0) > MOST else ""


def _groups(texts: pl.DataFrame) -> tuple[Group, ...]:
    """Γ by group, each end at the error divided by their number; groups that are too small say nothing."""
    parts = [(str(name), part) for (name,), part in sorted(texts.partition_by(["of"], as_dict=True).items(), key=str)]
    large = [(name, part) for name, part in parts if part.height >= TEXTS]
    found = []
    for name, part in large:
        interval = Bets(part["ranks"].to_torch()).interval(ERROR / len(large))
        found.append(Group(name, interval.mean, interval.low, interval.high, interval.n))
    return tuple(found)
