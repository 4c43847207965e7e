"""Agreement: do two importances rank the words of a text alike? (Jain & Wallace 2019, section 4.1; Neely & Schouten 2020)

τ over all words, what ties allow it to be, and top-k coefficients, each with what unrelated rankings would score. Wiegreffe & Pinter
(2019) object that τ disfavours models whose states mix words: an encoder of single words always looks better.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.contract import Subject
from exegete.measures.rank import kendall, spearman
from exegete.measures.statistics import Interval, bootstrap_mean, crossed_mean, nested_mean
from exegete.measures.topk import bucket, chance, fagin, legacy, nonzeros

TOPK = {"fagin": fagin, "bucket": bucket, "legacy": legacy}
ALL = "all"
KEYS = ("task", "model", "first", "second", "measure", "k")


@dataclass(frozen=True)
class Agreement:
    """Rank agreement of every pair of importances, and of noise with each of them."""

    against: tuple[str, ...] = ("attention", "gradient", "leave_one_out")
    noise: str = "random"
    ks: tuple[str, ...] = ("1", "3", "5", "10", "average", "nonzeros")
    topk: tuple[Literal["fagin", "bucket", "legacy"], ...] = ("fagin", "bucket", "legacy")
    draws: int = 10  # shuffles per text and coefficient; chance is their mean over all texts
    by: Literal["predicted", "gold"] = "predicted"
    seed: int = 0

    def __post_init__(self) -> None:
        if len(set(self.against)) < 2:
            raise UsageError("experiment 'agreement' compares importances: name at least two in `against`")
        for k in self.ks:
            if k not in ("average", "nonzeros") and not (k.isdigit() and int(k) > 0):
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
        parts = [part for first, second in self.pairs for part in self._pair(subject, first, second)]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _pair(self, subject: Subject, first: str, second: str) -> Iterator[pl.DataFrame]:
        a, b = subject.scores[first], subject.scores[second]
        ids = torch.tensor([e.id for e in subject.examples])
        table = kendall(a, b)
        zero = torch.zeros_like(table.tau)
        yield _frame(subject, first, second, "tau", table.tau, zero, p=table.p, maximum=table.maximum)
        yield _frame(subject, first, second, "tau_corrected", table.corrected, zero)
        yield _frame(subject, first, second, "gamma", table.gamma, zero)
        yield _frame(subject, first, second, "spearman", spearman(a, b), zero)
        for name in self.topk:
            for rule in self.ks:
                size = self._size(rule, subject)
                expected = chance(TOPK[name], a, b, size, ids, draws=self.draws, seed=self.seed)
                yield _frame(subject, first, second, name, TOPK[name](a, b, size), expected, k=rule, size=size)

    def _size(self, rule: str, subject: Subject) -> Tensor:
        """k for every text: fixed, the mean length of all texts, or the support of the first importance (attention)."""
        if rule == "nonzeros":
            return nonzeros(subject.scores[self.against[0]])
        k = int(subject.mean_length) if rule == "average" else int(rule)
        lengths = torch.tensor([len(e) for e in subject.examples])
        return lengths.clamp(max=k)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By class (and all together): n, mean, std, interval, significant fraction, chance, number undefined."""
        by_class = rows.with_columns(pl.col(self.by).alias("class"))
        both = pl.concat([by_class, rows.with_columns(pl.lit(ALL).alias("class"))])
        groups = both.partition_by([*KEYS, "class"], as_dict=True, maintain_order=True)
        return pl.DataFrame([dict(zip([*KEYS, "class"], key, strict=True)) | _numbers(group) for key, group in groups.items()], infer_schema_length=None)

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Histograms by class, densities of the pairs, and, where there is a top k, what its coefficients can tell."""
        from exegete.figures import density, histogram, ties, topk

        charts: dict[str, Any] = {
            "histogram": histogram.histogram(rows),
            "density": density.density(rows),
            "ties": ties.ties(summary),
        }
        return charts | ({"topk": topk.topk(summary)} if self.topk and self.ks else {})


def _frame(
    subject: Subject, first: str, second: str, measure: str, value: Tensor, chance: Tensor, *, k: str = ALL, size: Tensor | None = None,
    p: Tensor | None = None, maximum: Tensor | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Rows of one pair and one measure; what is undefined is null."""
    labels = subject.task.labels
    n = len(subject.examples)
    return pl.DataFrame(
        {
            "example": [e.id for e in subject.examples],
            "n": [len(e) for e in subject.examples],
            "gold": [labels[e.label] for e in subject.examples],
            "predicted": [labels[c] for c in subject.predicted.tolist()],
            "first": [first] * n,
            "second": [second] * n,
            "measure": [measure] * n,
            "k": [k] * n,
            "size": pl.Series(None if size is None else size.tolist(), dtype=pl.Int64) if size is not None else pl.Series([None] * n, dtype=pl.Int64),
            "value": _column(value, n),
            "p": _column(p, n),
            "maximum": _column(maximum, n),
            "chance": _column(chance, n),
        }
    )


def _column(values: Tensor | None, n: int) -> pl.Series:
    if values is None:
        return pl.Series([None] * n, dtype=pl.Float64)
    return pl.Series(values.double().numpy()).fill_nan(None)


def _numbers(group: pl.DataFrame) -> dict[str, float | int | None]:
    """n, mean, population std, interval, significant fraction, chance, attainable maximum, number undefined."""
    values = group["value"]
    interval = _interval(group)
    return {
        "seeds": group["seed"].n_unique(),
        "n": interval.n,
        "undefined": values.null_count(),
        "mean": _number(values.mean()),
        "std": _number(values.std(ddof=0)),
        "low": _number(interval.low),
        "high": _number(interval.high),
        "significant": _number((group["p"] <= 0.05).mean()),
        "chance": _number(group["chance"].mean()),
        "maximum": _number(group["maximum"].mean()),
    }  # fmt: skip


def _interval(group: pl.DataFrame) -> Interval:
    """Over examples for one seed; over seeds and examples for several, on the same examples where the group has them all."""
    by_seed = [torch.from_numpy(part.sort("example")["value"].fill_null(float("nan")).to_numpy().copy()) for part in group.partition_by("seed", maintain_order=True)]
    if len(by_seed) == 1:
        return bootstrap_mean(by_seed[0])
    same = group.select(pl.col("example").n_unique()).item() * len(by_seed) == len(group)
    interval = crossed_mean(torch.stack(by_seed)) if same else nested_mean(by_seed)
    return interval._replace(n=group["value"].count())


def _number(value: Any) -> float | None:
    """A float, or None for what is undefined."""
    return None if value is None or value != value else float(value)
