"""Leaderboard: methods side by side, whether their order survives another removal, and the best one's margin.

All of it is counted from the rows of the experiment `faithfulness`, for every task and model.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, get_args

import polars as pl
import torch
from torch import Tensor

from exegete.base.names import parse
from exegete.experiments.common.parts import AllRows
from exegete.experiments.common.summaries import TAILS, Columns, columns, intervals_of, or_none, resampled_means
from exegete.experiments.faithfulness.experiment import ALL, AOPC, TEST
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.erasure import Removal
from exegete.measures.rank import tau

# Is a high value good?
HIGH_IS_GOOD: Mapping[str, bool] = {
    "comprehensiveness": True, "sufficiency": False, "comprehensiveness_logit": True, "sufficiency_logit": False,
    "log_odds": True, "flip": False, "never_flips": False, "infidelity": False, "sensitivity_max": False,
}  # fmt: skip
SHOWN = ("comprehensiveness", "sufficiency", "flip", "log_odds")
RANKED = tuple(name for name in HIGH_IS_GOOD if name not in ("never_flips", "infidelity", "sensitivity_max"))
ATTENTION, RANDOM = "attention", "random"
EVERY, UNRELATED = "every method", "methods that erase otherwise"
_WITH_INTERVAL = ("", "_low", "_high")
_GROUP, _METHOD = ("task", "model", "split", "measure"), ("method", "removal", "ranking")
_VALUE = ("seed", "example", "value")
WHOLE = pl.col("fraction").is_in([AOPC, ALL])  # rows that are not of one fraction


def removal_of(method: str) -> str | None:
    """How a method erases words to score them, or None: it shares the removal of an evaluation that erases so.

    >>> removal_of("leave_one_out:of=logit"), removal_of("gradient:norm=l2")
    ('delete', None)
    """
    if parse(method).name not in IMPORTANCES:
        return None
    built = IMPORTANCES.make(method)
    by = getattr(built, "removal", getattr(built, "by", None))  # a setting of the surrogates, the nature of the others
    return by if by in get_args(Removal) else None


def summarise_faithfulness(rows: pl.DataFrame) -> pl.DataFrame:
    """By split, method, removal, ranking and measure: n, mean, interval, chance, differences from attention and random.

    Chance is the mean of random. Differences are the method's value minus the control's on the same text, in the
    measure's own direction: `better` says whether high or low is good.
    """
    groups = rows.filter(WHOLE).partition_by(*_GROUP, as_dict=True, maintain_order=True)
    return _summed(groups.items())


def stream_summary(parts: AllRows) -> pl.DataFrame:
    """The summary of rows on disk, of which those of one measure and split are held at a time."""
    return _summed(parts.groups(_GROUP, [*_METHOD, *_VALUE], WHOLE))


def _summed(groups: Iterable[tuple[tuple[Any, ...], pl.DataFrame]]) -> pl.DataFrame:
    lines = [
        {"task": task, "model": model, "split": split} | line
        for (task, model, split, measure), group in groups
        for line in _lines(columns(group, _METHOD), measure)
    ]
    return pl.DataFrame(lines, schema=SUMMARY)


def _lines(found: Columns, measure: str) -> Iterator[dict[str, Any]]:
    """The lines of one measure."""
    means = intervals_of(found.values)
    controls = {name: _control(found, name) for name in (ATTENTION, RANDOM)}
    over = {name: intervals_of(found.values - control) for name, control in controls.items()}
    chance = controls[RANDOM].nanmean((1, 2)).tolist()
    for i, (method, removal, ranking) in enumerate(found.keys):
        line = {"method": method, "removal": removal, "ranking": ranking, "measure": measure}
        line |= {"better": "high" if HIGH_IS_GOOD[measure] else "low", "seeds": found.values.shape[1]}
        line |= {"n": means[i].n, "undefined": means[i].undefined}
        line |= dict(zip(("mean", "low", "high"), map(or_none, means[i][:3]), strict=True)) | {
            "chance": or_none(chance[i])
        }
        for name in controls:
            line |= {f"over_{name}{end}": or_none(x) for end, x in zip(_WITH_INTERVAL, over[name][i][:3], strict=True)}
        yield line


def _control(found: Columns, name: str) -> Tensor:
    """For every column the control's values under the same removal and ranking; NaN where there is no control."""
    place = {key[1:]: i for i, key in reversed(list(enumerate(found.keys))) if parse(key[0]).name == name}
    nothing = torch.full_like(found.values[0], math.nan)
    return torch.stack([found.values[place[key[1:]]] if key[1:] in place else nothing for key in found.keys])


_OVER = [f"over_{name}{end}" for name in (ATTENTION, RANDOM) for end in _WITH_INTERVAL]
_CELL = ("task", "model")


def _schema(words: tuple[str, ...], counts: tuple[str, ...], numbers: tuple[str, ...]) -> dict[str, Any]:
    """Columns of a table: names first, then counts, then numbers."""
    kinds = ((words, pl.String), (counts, pl.Int64), (numbers, pl.Float64))
    return {name: kind for names, kind in kinds for name in names}


SUMMARY = _schema(
    (*_CELL, "split", "method", "removal", "ranking", "measure", "better"),
    ("seeds", "n", "undefined"),
    ("mean", "low", "high", "chance", *_OVER),
)
SURVIVAL = _schema(
    (*_CELL, "ranking", "measure", "first", "second", "among"), ("methods", "n"), ("tau", "low", "high", "chance")
)
BEST = _schema(
    (*_CELL, "removal", "ranking", "measure", "among", "method"), ("n",), ("chosen_at", "mean", "low", "high", *_OVER)
)


def leaderboard_table(rows: pl.DataFrame, removal: str = "delete", ranking: str = "signed") -> pl.DataFrame:
    """A line per method on test texts, best comprehensiveness first, and whether it erases as the evaluation does."""
    chosen = (pl.col("split") == TEST) & (pl.col("removal") == removal) & (pl.col("ranking") == ranking)
    return board_of(summarise_faithfulness(rows.filter(chosen & pl.col("measure").is_in(SHOWN))), removal, ranking)


def board_of(summary: pl.DataFrame, removal: str = "delete", ranking: str = "signed") -> pl.DataFrame:
    """The leaderboard that a summary has."""
    chosen = (pl.col("split") == TEST) & (pl.col("removal") == removal) & (pl.col("ranking") == ranking)
    found = summary.filter(chosen & pl.col("measure").is_in(SHOWN))
    cell = [*_CELL, "removal", "ranking", "method"]
    lines = found.select(*cell, "seeds", "n").unique(cell, maintain_order=True)
    for measure in SHOWN:
        one = found.filter(pl.col("measure") == measure)
        named = {
            f"{measure}{end}": pl.col(name) for end, name in zip(_WITH_INTERVAL, ("mean", "low", "high"), strict=True)
        }
        lines = lines.join(one.select(*cell, **named), on=cell, how="left", maintain_order="left")
    shared = [removal_of(method) == removal for method in lines["method"]]
    marked = lines.insert_column(len(cell), pl.Series("shares_removal", shared, dtype=pl.Boolean))
    return marked.sort([*_CELL, SHOWN[0]], descending=[False, False, True], nulls_last=True, maintain_order=True)


def with_costs(board: pl.DataFrame, costs: pl.DataFrame) -> pl.DataFrame:
    """The leaderboard with what a method takes per text: passes forward and backward, and milliseconds."""
    per_method = costs.group_by(*_CELL, "method").agg(pl.col("forward", "backward", "ms").mean())
    return board.join(per_method, on=[*_CELL, "method"], how="left", maintain_order="left")


def survival(rows: pl.DataFrame) -> pl.DataFrame:
    """Kendall's τ of the order of methods under two removals, by their means on test texts; unrelated orders have 0.

    Random is left out: it is last everywhere and would lift τ. The interval is bootstrapped over texts, after the mean
    over seeds: it says how far the order hangs on these texts, not on these seeds.
    """
    return _survived(rows.filter(_RANKED).partition_by(_SURVIVED, as_dict=True, maintain_order=True).items())


def stream_survival(parts: AllRows) -> pl.DataFrame:
    """Kendall's τ of the order of methods under two removals, of rows on disk."""
    return _survived(parts.groups(_SURVIVED, ["method", "removal", *_VALUE], _RANKED))


_RANKED = (pl.col("split") == TEST) & pl.col("measure").is_in(RANKED) & WHOLE
_SURVIVED = (*_CELL, "ranking", "measure")


def _survived(groups: Iterable[tuple[tuple[Any, ...], pl.DataFrame]]) -> pl.DataFrame:
    lines = [
        dict(zip(_SURVIVED, key, strict=True)) | line
        for key, group in groups
        if group["removal"].n_unique() > 1
        for line in _survivals(columns(group, ["method", "removal"]))
    ]
    return pl.DataFrame(lines, schema=SURVIVAL)


def _survivals(found: Columns) -> Iterator[dict[str, Any]]:
    """Lines for every pair of removals, among all methods and among those that erase in neither way."""
    place = {key: i for i, key in enumerate(found.keys)}
    by_text = found.values.mean(1).T  # [example, column]
    complete = by_text[~by_text.isnan().any(1)]
    if not len(complete):
        return
    means = torch.cat([complete.mean(0, keepdim=True), resampled_means(complete)])
    every = [m for m in dict.fromkeys(method for method, _ in found.keys) if parse(m).name != RANDOM]
    for first, second in combinations(dict.fromkeys(removal for _, removal in found.keys), 2):
        for among in (EVERY, UNRELATED):
            methods = [m for m in every if among == EVERY or removal_of(m) not in (first, second)]
            a, b = (means[:, [place[method, by] for method in methods]] for by in (first, second))
            taus = tau(a, b) if methods else torch.full((1,), math.nan)
            low, high = (
                taus[1:].nanquantile(torch.tensor(TAILS, dtype=taus.dtype)).tolist() if methods else (None, None)
            )
            line = {"first": first, "second": second, "among": among, "methods": len(methods), "n": len(complete)}
            yield line | {
                "tau": or_none(taus[0].item()),
                "low": or_none(low),
                "high": or_none(high),
                "chance": 0.0,
            }


def best(rows: pl.DataFrame, choose_on: str = "dev") -> pl.DataFrame:
    """The best method on one split, and on test how much better than attention and random it is: above 0 is better.

    Among every method but random, and among those that don't erase as the evaluation does.
    """
    return best_of(summarise_faithfulness(rows.filter(pl.col("measure").is_in(RANKED))), choose_on)


def best_of(summary: pl.DataFrame, choose_on: str = "dev") -> pl.DataFrame:
    """The best method on one split, and its margin on test, from a summary."""
    both = summary.filter(pl.col("measure").is_in(RANKED))
    cell = [*_CELL, "removal", "ranking", "measure"]
    test = both.filter(pl.col("split") == TEST)
    lines = [
        line
        for key, group in both.filter(pl.col("split") == choose_on).group_by(cell, maintain_order=True)
        for line in _winners(dict(zip(cell, key, strict=True)), group, test)
    ]
    return pl.DataFrame(lines, schema=BEST)


def _winners(key: dict[str, Any], group: pl.DataFrame, test: pl.DataFrame) -> Iterator[dict[str, Any]]:
    sign = 1 if HIGH_IS_GOOD[key["measure"]] else -1
    level = {row["method"]: row["mean"] for row in group.iter_rows(named=True) if parse(row["method"]).name != RANDOM}
    for among in (EVERY, UNRELATED):
        allowed = {m: x for m, x in level.items() if among == EVERY or removal_of(m) != key["removal"]}
        if not allowed:
            continue
        winner = max(allowed, key=lambda method: sign * allowed[method])
        found = test.filter(pl.col("method") == winner, *(pl.col(name) == value for name, value in key.items()))
        for row in found.iter_rows(named=True):  # none, where test has no rows
            margins = {name: row[name] for name in ("n", "mean", "low", "high")} | _margins(row, sign)
            yield key | {"among": among, "method": winner, "chosen_at": allowed[winner]} | margins


def _margins(row: dict[str, Any], sign: int) -> dict[str, float | None]:
    """Differences turned so that above 0 is better."""
    turned: dict[str, float | None] = {}
    for name in (ATTENTION, RANDOM):
        ends = [row[f"over_{name}{end}"] for end in (_WITH_INTERVAL if sign > 0 else ("", "_high", "_low"))]
        pairs = zip(_WITH_INTERVAL, ends, strict=True)
        turned |= {f"over_{name}{end}": None if x is None else sign * x for end, x in pairs}
    return turned
