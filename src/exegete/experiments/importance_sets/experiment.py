"""Importance sets: how many keys must go, in whose order, until the decision flips? (Serrano & Smith 2019, section 5)

Keys are removed one after the other in the order of a scheme (`common.removal`) until the argmax of the
output first differs. The fraction of keys that are gone then is small for a scheme that finds what the decision hangs
on:

- attention: falling α;
- gradient: falling ∂p_c/∂α_t of the predicted class, signed;
- gradient_x_attention: their product, summed over heads;
- random: keyed orders; a text's value is the mean over them, `first` that of the first alone (the paper's box plots);
- attention_ascending: attention read backwards.

A text whose decision nothing flips, not even removing every key, is one of the class that the bias prefers. The paper
leaves it out, which flatters schemes that fail to flip others; here it is *censored* at 1.0, and the paper's exclusion
stands beside.

Of a model with several layers the same can be asked below the readout (`sites`), one layer at a time: a word is then
gone from every row of the layer, and weights are means over heads and rows; what lies below is computed once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import pad

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.depth import add_places, at_each, check_places
from exegete.experiments.common.experiment import OfWeights
from exegete.experiments.common.pooling import Pooled
from exegete.experiments.common.removal import (
    gradient,
    key_noise,
    key_ranking,
    original,
    removal_frame,
    remove_in_order,
)
from exegete.experiments.common.summaries import by_keys, interval_of, or_none
from exegete.experiments.common.tallies import share_of, sign_test, values_by_seed
from exegete.measures.proportions import fair_quantile
from exegete.measures.statistics import Interval

Scheme = Literal["attention", "gradient", "gradient_x_attention", "random", "attention_ascending"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)


@dataclass(frozen=True)
class ImportanceSets(OfWeights):
    """The fraction of keys removed before the first flip, by scheme."""

    of_rows = ("boxes",)

    schemes: tuple[Scheme, ...] = SCHEMES
    orders: int = 5  # random ones
    sites: tuple[str, ...] = ("readout",)  # where; also layers such as "encoder.2", or "each" of them
    seed: int = 0
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if not self.schemes or len(set(self.schemes)) < len(self.schemes):
            raise UsageError("experiment 'importance_sets': name at least one scheme, and every one once")
        if wrong := [name for name in self.schemes if name not in SCHEMES]:
            raise UsageError(
                f"experiment 'importance_sets' has no scheme '{wrong[0]}': choose among {', '.join(SCHEMES)}"
            )
        check_places("importance_sets", self.sites)
        if self.orders < 1:
            raise UsageError(f"experiment 'importance_sets' needs orders of 1 or more, not {self.orders}")

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, place and scheme.

        value: fraction removed at the first flip, 1 if there is none; mass: attention that went with it; flips, or
        `excluded` as in the paper; emptied: it flipped only when no weight was left. Of the random orders, value and
        mass are means, the rest is the first order's.
        """
        return at_each(self.sites, subject.model.sites, lambda site: removal_frame(subject, self._measured, site))

    def _measured(self, part: Pooled) -> pl.DataFrame:
        orders = self.ordered(part)
        flips = first_flips(part, torch.cat(list(orders.values()), 1))
        ends = np.cumsum([order.shape[1] for order in orders.values()])
        spans = zip(orders, [0, *ends], ends, strict=False)
        keys = part.opened.removable.sum(-1)
        return pl.concat([_frame(scheme, flips, slice(start, end), keys) for scheme, start, end in spans])

    def ordered(self, part: Pooled) -> dict[str, Tensor]:
        """The orders of every scheme, [batch, order, key]: one, but for random."""
        mask, ties = part.opened.removable, key_noise(part, self.seed, "ties")
        descending = key_ranking(part.key_weights, mask, ties)
        slope = gradient(part, original(part))
        by = {
            "attention": lambda: descending[:, None],
            "gradient": lambda: key_ranking(slope.sum(1), mask, ties)[:, None],
            "gradient_x_attention": lambda: key_ranking((slope * part.weights).sum(1), mask, ties)[:, None],
            "random": lambda: self._random(part),
            "attention_ascending": lambda: backwards(descending, mask)[:, None],
        }
        return {scheme: by[scheme]() for scheme in self.schemes}

    def _random(self, part: Pooled) -> Tensor:
        draws = torch.arange(self.orders, device=part.ids.device)[:, None]
        shuffled = key_noise(part, self.seed, "importance sets", draws)  # [batch, draw, key]
        return shuffled.masked_fill(~part.opened.removable[:, None], torch.inf).argsort(-1)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By scheme: mean and median fraction with intervals, censored, and with the paper's exclusion."""
        return summarise_sets(rows)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Schemes in pairs on the same texts; mean ± std of fraction and mass as the paper gives them."""
        return {"paired": pair_schemes(rows), "serrano_smith": serrano_smith(rows)}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Boxes of fractions by scheme; and their means by layer, where several were asked about."""
        from exegete.experiments.common.depth_figure import dots_by_place

        return {
            **super().figures(rows, summary),
            **dots_by_place(summary, "fraction of keys removed at the first flip", {}, "scheme"),
        }


class FirstFlips(NamedTuple):
    """First flips along some orders: [batch, order] each."""

    fraction: Tensor  # of the keys, removed at the first flip; 1 without one
    mass: Tensor  # of the attention on these keys, removed by then
    flips: Tensor
    emptied: Tensor  # whether it flips only because no weight is left


def first_flips(part: Pooled, order: Tensor) -> FirstFlips:
    """Where the decision first changes along every order, [batch, order, key]."""
    decisions = remove_in_order(part, order).argmax(-1)  # [batch, order, key + 1]
    changed = decisions[..., 1:] != decisions[..., :1]  # [batch, order, key]: after j = 1, 2, … keys
    flips, at = changed.max(-1)  # of equal ones the first
    may_go = part.opened.removable
    left = (part.key_weights * may_go)[:, None].expand(order.shape).gather(-1, order)
    gone, keys = left.cumsum(-1), may_go.sum(-1, keepdim=True)
    at = at.where(flips, (keys - 1).clamp(min=0))
    kept = pad(left.flip(-1).cumsum(-1).flip(-1)[..., 1:], (0, 1))  # weight that is left after j = 1, 2, … keys
    nothing = kept.gather(-1, at[..., None])[..., 0] == 0
    share = gone / gone[..., -1:]
    return FirstFlips((at + 1) / keys.double(), share.gather(-1, at[..., None])[..., 0], flips, flips & nothing)


def _frame(scheme: str, found: FirstFlips, span: slice, keys: Tensor) -> pl.DataFrame:
    """Rows of one scheme, whose orders are a span of all."""
    fraction, mass, flips, emptied = (column[:, span] for column in found)
    measured = {
        "place": places(keys), "keys": keys, "value": fraction.mean(1), "first": fraction[:, 0],
        "mass": mass.mean(1), "first_mass": mass[:, 0], "flips": flips[:, 0], "excluded": ~flips[:, 0],
        "emptied": emptied[:, 0],
    }  # fmt: skip
    frame = pl.DataFrame({name: column.cpu().numpy() for name, column in measured.items()})
    no_weight = pl.col("mass", "first_mass").fill_nan(None)  # no share of it, where a model has chosen no key at all
    return frame.with_columns(no_weight, scheme=pl.lit(scheme))


def backwards(order: Tensor, mask: Tensor) -> Tensor:
    """An order of real keys read from its end; keys that are not real stay last."""
    keys = places(order)
    last = mask.sum(-1, keepdim=True) - 1
    return order.gather(-1, torch.where(keys <= last, last - keys, keys))


CELL = ("task", "model", "split", "sites")
EQUAL = 1e-9  # fractions that differ by less are means of the same ones


def summarise_sets(rows: pl.DataFrame) -> pl.DataFrame:
    """By cell and scheme: censored at 1 (all texts), and `kept_…` with the paper's exclusion (texts that flip).

    `chance` is the censored mean of random orders in the same cell.
    """
    keys = (*CELL, "scheme")
    found = by_keys(add_places(rows), keys, _numbers)
    chance = found.filter(pl.col("scheme") == "random").select(*CELL, chance="mean")
    return found.join(chance, on=CELL, how="left", maintain_order="left")


def _numbers(group: pl.DataFrame) -> dict[str, Any]:
    kept = pl.when("flips").then("first")
    return {
        "seeds": group["seed"].n_unique(),
        "undefined": group["value"].null_count(),
        "excluded": int(group["excluded"].sum()),
        "emptied": int(group["emptied"].sum()),
        **_located(group, pl.col("value"), ""),
        **_located(group, kept, "kept_"),
        "mass": or_none(group["mass"].mean()),
        "kept_mass": or_none(group.filter("flips")["first_mass"].mean()),
    }


def _located(group: pl.DataFrame, value: pl.Expr, prefix: str) -> dict[str, Any]:
    """n, mean and median of some values, with intervals."""
    values = values_by_seed(group, value)
    mean, median = interval_of(values), median_interval(values)
    found = {
        "n": mean.n, "mean": mean.mean, "low": mean.low, "high": mean.high,
        "median": median.mean, "median_low": median.low, "median_high": median.high,
    }  # fmt: skip
    bounded = {name: v if name == "n" else or_none(v) for name, v in found.items()}
    return {prefix + name: _within(name, v) for name, v in bounded.items()}


def _within(name: str, value: float | None) -> float | None:
    """Few seeds give t-intervals beyond what is possible."""
    return value if value is None or name == "n" else min(max(value, 0.0), 1.0)


def median_interval(values: Tensor, level: float = 0.95) -> Interval:
    """The median, between two order statistics that hold the true one by the binomial distribution: [seed, example].

    Of several seeds, whose texts are the same, the widest: from the lowest end of any to the highest.
    """
    defined = values[~values.isnan()]
    undefined = values.numel() - len(defined)
    if not len(defined):
        return Interval(float("nan"), float("nan"), float("nan"), 0, undefined)
    ends = [_order_statistics(seed[~seed.isnan()], level) for seed in values if not seed.isnan().all()]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return Interval(float(defined.quantile(0.5)), low, high, len(defined), undefined)


def _order_statistics(values: Tensor, level: float) -> tuple[float, float]:
    n = len(values)
    below = fair_quantile((1 - level) / 2, n)  # values that may lie below the median, at the least
    ordered = values.sort().values
    return float(ordered[max(0, below - 1)]), float(ordered[min(n - 1, n - below)])


def pair_schemes(rows: pl.DataFrame) -> pl.DataFrame:
    """Schemes against each other on the same texts: the mean difference of fractions, and who needs fewer keys.

    `texts` "all" is censored at 1; "flipped" keeps texts that both flip. p is the exact sign test's.
    """
    found = [
        dict(zip(CELL, key, strict=True)) | pair
        for key, group in add_places(rows).partition_by(CELL, as_dict=True, maintain_order=True).items()
        for pair in _pairs(group)
    ]
    return pl.DataFrame(found, schema_overrides={"p": pl.Float64}, infer_schema_length=None)


def _pairs(cell: pl.DataFrame) -> Iterator[dict[str, Any]]:
    by_scheme = cell.partition_by("scheme", as_dict=True, maintain_order=True)
    for (first, a), (second, b) in combinations(by_scheme.items(), 2):
        both = a.join(b, on=["seed", "example"], suffix="_b", maintain_order="left")
        said = {"first": first[0], "second": second[0]}
        yield said | {"texts": "all"} | _compared(both, pl.col("value") - pl.col("value_b"))
        flipped = both.filter(pl.col("flips") & pl.col("flips_b"))
        yield said | {"texts": "flipped"} | _compared(flipped, pl.col("first") - pl.col("first_b"))


def _compared(both: pl.DataFrame, apart: pl.Expr) -> dict[str, Any]:
    """The first scheme's fraction less the second's: below 0, the first needs fewer keys."""
    mean = interval_of(values_by_seed(both, apart), bound=1.0)
    fewer, more = share_of(both, apart < -EQUAL), share_of(both, apart > EQUAL)
    return {
        "n": mean.n,
        "difference": or_none(mean.mean),
        "low": or_none(mean.low),
        "high": or_none(mean.high),
        "fewer": or_none(fewer.mean),
        "fewer_low": or_none(fewer.low),
        "fewer_high": or_none(fewer.high),
        "more": or_none(more.mean),
        "p": sign_test(both, apart),
    }


def serrano_smith(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean ± std of fraction and mass as the paper has them: texts that flip, the first random order."""
    groups = add_places(rows).filter(pl.col("value").is_not_null()).group_by(*CELL, "scheme", maintain_order=True)
    kept = pl.col("flips")
    return groups.agg(
        n=kept.sum(),
        excluded=(~kept).sum(),
        fraction=pl.col("first").filter(kept).mean(),
        fraction_std=pl.col("first").filter(kept).std(),
        mass=pl.col("first_mass").filter(kept).mean(),
        mass_std=pl.col("first_mass").filter(kept).std(),
    )
