"""Agreement: do two importances rank the words of a text alike? (Jain & Wallace 2019, Neely & Schouten 2020)

τ over all words, what ties allow it to be, and top-k coefficients, each with what unrelated rankings would score.
Wiegreffe & Pinter (2019) object that τ disfavours models whose states mix words: an encoder of single words always
looks better.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.marked_words import MarkRanking, ranking_scores
from exegete.experiments.common.parts import AllRows
from exegete.experiments.common.summaries import by_keys, columns, interval_of, or_none
from exegete.experiments.common.tallies import ALL, class_of
from exegete.measures.rank import kendall, spearman
from exegete.measures.topk import bucket, chance, fagin, legacy, nonzeros

TOPK = {"fagin": fagin, "bucket": bucket, "legacy": legacy}
KEYS = ("task", "model", "first", "second", "measure", "k")
PAIR = ("task", "model", "first", "second")
NUMBERS = ("seed", "example", "value", "p", "chance", "maximum")
RELEASED = (pl.col("measure") == "legacy") & (pl.col("k") == "nonzeros")  # of Neely & Schouten's figures 1 and 2


class _Found(NamedTuple):
    """What one measure says of every example: a value and what unrelated rankings would score."""

    measure: str
    value: Tensor  # [example]
    chance: Tensor
    k: str = ALL
    size: Tensor | None = None  # the k of every example
    p: Tensor | None = None
    maximum: Tensor | None = None


def _over_all_words(a: Tensor, b: Tensor) -> Iterator[_Found]:
    """τ-b with its p and ceiling, τ-b over its ceiling, γ and ρ; unrelated rankings score 0 on all of them."""
    table = kendall(a, b)
    zero = torch.zeros_like(table.tau)
    yield _Found("tau", table.tau, zero, p=table.p, maximum=table.maximum)
    yield _Found("tau_corrected", table.corrected, zero)
    yield _Found("gamma", table.gamma, zero)
    yield _Found("spearman", spearman(a, b), zero)


@dataclass(frozen=True)
class Agreement(Question):
    """Rank agreement of every pair of importances, and of noise with each of them."""

    against: tuple[str, ...] = ("attention", "gradient", "leave_one_out")
    noise: str = "random"
    ks: tuple[str | int, ...] = ("1", "3", "5", "10", "average", "nonzeros")
    topk: tuple[Literal["fagin", "bucket", "legacy"], ...] = ("fagin", "bucket", "legacy")
    draws: int = 10  # shuffles per text and coefficient; chance is their mean over all texts
    by: Literal["predicted", "gold"] = "predicted"
    ranking: MarkRanking = "signed"  # magnitude: words against the class are as important as those for it
    seed: int = 0
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        compared = set(self.against)
        if len(compared) < 2:
            raise UsageError("experiment 'agreement' compares importances: name at least two in `against`")
        if len(compared) < len(self.against) or self.noise in compared:
            raise UsageError(f"experiment 'agreement': name every importance once, and '{self.noise}' only as `noise`")
        object.__setattr__(self, "ks", tuple(map(str, self.ks)))
        for k in self.ks:
            if k not in ("average", "nonzeros") and not (str(k).isdigit() and int(k) > 0):
                raise UsageError(f"experiment 'agreement': k is a whole number, 'average' or 'nonzeros', not '{k}'")

    @property
    def importances(self) -> tuple[str, ...]:
        """Everything that is compared."""
        return (*self.against, self.noise)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every pair of importances, and noise against each but the first (which is attention)."""
        return (*combinations(self.against, 2), *((self.noise, other) for other in self.against[1:]))

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, pair, measure and k."""
        for name in self.importances:
            if name in subject.refused:
                raise UsageError(f"experiment 'agreement' can't compare {name}: {subject.refused[name]}")
        parts = [part for first, second in self.pairs for part in self._pair(subject, first, second)]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _pair(self, subject: Subject, first: str, second: str) -> list[pl.DataFrame]:
        a, b = ranking_scores(subject, first, self.ranking), ranking_scores(subject, second, self.ranking)
        found = [*_over_all_words(a, b), *self._over_top_k(subject, a, b)]
        return [_frame(subject, first, second, measured) for measured in found]

    def _over_top_k(self, subject: Subject, a: Tensor, b: Tensor) -> Iterator[_Found]:
        ids = torch.tensor([e.id for e in subject.examples])
        for name in self.topk:
            for rule in map(str, self.ks):
                size = self._size(rule, subject)
                expected = chance(TOPK[name], a, b, size, ids, draws=self.draws, seed=self.seed)
                yield _Found(name, TOPK[name](a, b, size), expected, k=rule, size=size)

    def _size(self, rule: str, subject: Subject) -> Tensor:
        """k for every text: fixed, the mean length of all texts, or the support of the first importance (attention)."""
        if rule == "nonzeros":
            return nonzeros(subject.scores[self.against[0]])
        k = int(subject.mean_length) if rule == "average" else int(rule)
        lengths = torch.tensor([len(e) for e in subject.examples])
        return lengths.clamp(max=k)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By class (and all together): n, mean, std, interval, significant fraction, chance, number undefined."""
        by_class = rows.with_columns(class_of(self.by).alias("class")).filter(pl.col("class") != ALL)
        both = pl.concat([by_class, rows.with_columns(pl.lit(ALL).alias("class"))])
        return by_keys(both, [*KEYS, "class"], _numbers)

    @property
    def shown(self) -> pl.Expr:
        """τ, and the released top-k coefficient of as many words as have weight: charts show their distribution."""
        return (pl.col("measure") == "tau") | (RELEASED & (pl.col("first") != self.noise))

    @property
    def judged(self) -> pl.Expr:
        """τ, and τ as a share of what its ties allow."""
        return pl.col("measure").is_in(["tau", "tau_corrected"])

    def streamed(self, parts: AllRows) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        """Summary and tables of rows on disk, of which those of one model and pair are held at a time."""
        order = parts.keys([*KEYS, self.by])
        lines = [*order, *dict.fromkeys((*key[:-1], ALL) for key in order)]
        found = pl.concat([self.summary(group) for _, group in parts.groups(PAIR, [*KEYS, self.by, *NUMBERS])])
        in_order = pl.DataFrame(lines, schema=found.select(*KEYS, "class").schema, orient="row")
        summary = in_order.join(found, on=[*KEYS, "class"], maintain_order="left")
        return summary.select(found.columns), self.tables(parts.some(self.shown))

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """The files of Jain & Wallace and Neely & Schouten: mean, std and significant fraction of τ per class."""
        tau = rows.filter(pl.col("measure") == "tau").with_columns(class_of(self.by).alias("class"))
        keys = ["task", "model", "seed", "first", "second", "class"]
        found = tau.group_by(keys, maintain_order=True).agg(
            pl.col("value").count().alias("n"),
            pl.col("value").null_count().alias("undefined"),
            pl.col("value").mean().alias("mean"),
            pl.col("value").std(ddof=0).alias("std"),
            (pl.col("p") <= 0.05).mean().alias("significant_fraction"),
        )
        return {"correlation": found.sort(keys, maintain_order=True)}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Histograms by class, densities of the pairs, and, where there is a top k, what its coefficients can tell."""
        from exegete.experiments.agreement.figure import histogram, of_sparse, ties, topk
        from exegete.report.density import density

        attention, *others = self.against
        informed = rows.filter(pl.col("first") != self.noise)
        charts: dict[str, Any] = {
            "histogram": histogram(informed.with_columns(pl.col(self.by).alias("predicted"))),
            "density": density(informed),
            "ties": ties(summary, tuple((attention, other) for other in others)),
        }
        if not (self.topk and self.ks):
            return charts
        charts["topk"] = topk(summary, attention, others[0], self.noise)
        sparse = of_sparse(informed.filter(RELEASED))
        return charts if sparse.is_empty() else charts | {"topk_density": density(sparse, "legacy", "nonzeros")}


def _frame(subject: Subject, first: str, second: str, found: _Found) -> pl.DataFrame:
    """Rows of one pair and one measure; what is undefined is null."""
    n = len(subject.examples)
    return pl.DataFrame(
        {
            **subject.facts(),
            "first": [first] * n,
            "second": [second] * n,
            "measure": [found.measure] * n,
            "k": [found.k] * n,
            "size": pl.Series([None] * n if found.size is None else found.size.tolist(), dtype=pl.Int64),
            "value": _column(found.value, n),
            "p": _column(found.p, n),
            "maximum": _column(found.maximum, n),
            "chance": _column(found.chance, n),
        }
    )


def _column(values: Tensor | None, n: int) -> pl.Series:
    if values is None:
        return pl.Series([None] * n, dtype=pl.Float64)
    return pl.Series(values.double().numpy()).fill_nan(None)


def _numbers(group: pl.DataFrame) -> dict[str, float | int | None]:
    """n, mean, population std, interval, significant fraction, chance, attainable maximum, number undefined."""
    values = group["value"]
    found = columns(group.with_columns(pl.lit(ALL).alias("every")), ["every"])
    interval = interval_of(found.values[0], bound=1.0)  # a coefficient lies in [−1, 1]
    return {
        "seeds": group["seed"].n_unique(),
        "n": interval.n,
        "undefined": values.null_count(),
        "mean": or_none(values.mean()),
        "std": or_none(values.std(ddof=0)),
        "low": or_none(interval.low),
        "high": or_none(interval.high),
        "significant": or_none((group["p"] <= 0.05).mean()),
        "chance": or_none(group["chance"].mean()),
        "maximum": or_none(group["maximum"].mean()),
    }  # fmt: skip
