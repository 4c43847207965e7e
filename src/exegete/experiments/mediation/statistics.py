"""What the audit asks of mediation, by specification, and the summary of its rows.

A specification counts where words matter: in most texts some word moves the prediction by ½ log-odds or more. Texts
where none does are void: they have no order to find.
"""

import math
from collections.abc import Sequence
from typing import Any, get_args

import polars as pl
import torch
from torch import Tensor

from exegete.base.names import parse
from exegete.experiments.common.statistic import Evidence, Varied, by_seed
from exegete.experiments.common.summaries import by_keys, or_none
from exegete.experiments.mediation.effects import SCALES, MediationRemoval
from exegete.experiments.mediation.experiment import ATTENTION, SPECIFICATION, TEST, UNREAD, is_neutral
from exegete.measures.bounds import bounded_mean
from exegete.tasks.selection import keyed_order, look_points

KEYS = ("task", "model", "split", *SPECIFICATION, "method")
VALUES = ("ranks", "ceiling", "ranks_active", "reads", "carries", "locates", "opposed", "idle")
VOID = "in {share:.0%} of the first texts no word matters enough to be ranked"
STILL = "zeroing a weight hardly changes anything"


def reads(found: Evidence) -> Varied:
    """M: how much of what words do goes through their own weights."""
    return _varied(found, pl.col("reads"))


def carries(found: Evidence) -> Varied | None:
    """F: how much the differences of weights do, on the scale of log-odds; a run of before did not ask it."""
    if "carries" not in found.rows.columns:
        return None
    varied = _varied(found, pl.col("carries"))
    kept = {name: values for name, values in varied.values.items() if name.endswith("log-odds")}
    return varied._replace(values=kept, void={name: why for name, why in varied.void.items() if name in kept})


def ranks(found: Evidence) -> Varied:
    """Γ of words, given attention."""
    return _varied(found, pl.col("ranks"))


def locates(found: Evidence) -> Varied:
    """Γ of weights, given attention; void where weights do nothing."""
    varied = _varied(found, pl.col("locates"))
    still = {
        name: STILL
        for name, rows in _specifications(found).items()
        if name not in varied.void and float(rows.filter(~pl.col("void")).select(_still().mean()).item() or 0) > 0.5
    }
    return varied._replace(void=dict(varied.void) | still)


def supports(found: Evidence) -> Varied:
    """The share of attention on words whose removal does not raise the prediction."""
    return _varied(found, 1 - pl.col("opposed"), chance=0.5)


def _still() -> pl.Expr:
    """Whether the weights of a text do nothing beside its words: √(Σ w² / Σ e²) is small."""
    return pl.col("moved") < UNREAD**2 * pl.col("effect")


def _varied(found: Evidence, value: pl.Expr, chance: float = 0.0) -> Varied:
    """A value of attention's rows by specification, texts in the order in which they were asked; NaN in void texts.

    Whether a specification counts is fixed at the first look, so that it can't change with what is asked later.
    """
    values, void = {}, {}
    for name, rows in _specifications(found).items():
        values[name] = values_in_order(rows, pl.when(~pl.col("void")).then(value))
        first = values_in_order(rows, pl.col("void").cast(pl.Float64))[:, : look_points(rows.height)[0]]
        share = float(first.mean()) if first.numel() else 0.0
        if share > 0.5:
            void[name] = VOID.format(share=share)
    return Varied(values, void, chance)


def values_in_order(rows: pl.DataFrame, value: pl.Expr) -> Tensor:
    """A value by text, in the keyed order in which texts are asked: [seed, example]."""
    found = by_seed(rows.with_columns(value=value))
    return found[:, keyed_order(rows["example"].unique().sort().to_numpy(writable=True))]


def _specifications(found: Evidence) -> dict[str, pl.DataFrame]:
    """Attention's rows on the test texts, by specification that decides."""
    own = found.rows.filter(pl.col("split") == TEST, _is_attention(found.rows), neutral())
    groups = own.partition_by(SPECIFICATION, as_dict=True, maintain_order=True)
    return {specification_name(*map(str, key)): rows for key, rows in groups.items()}


def neutral() -> pl.Expr:
    """Whether a specification decides (`exegete.experiments.mediation.experiment.is_neutral`)."""
    deciding = [
        (pl.col("removal") == removal) & (pl.col("scale") == scale)
        for removal in get_args(MediationRemoval)
        for scale in SCALES
        if is_neutral(removal, scale)
    ]
    return pl.any_horizontal(deciding)


def _is_attention(rows: pl.DataFrame) -> pl.Expr:
    names = [m for m in rows["method"].unique() if parse(m).name == ATTENTION]
    return pl.col("method").is_in(names)


def specification_name(removal: str, company: str, scale: str) -> str:
    """A specification in words.

    >>> specification_name("resample", "company", "log-odds")
    'resample in company, log-odds'
    """
    return f"{removal} {'alone' if company == 'alone' else 'in company'}, {scale}"


def attention_by_text(rows: pl.DataFrame, counted: Sequence[str]) -> pl.DataFrame:
    """Attention's rows on the test texts as a row per text, in the order in which texts were asked.

    Numbers are means over the specifications that count, and over seeds; Γ and all beside it are null in void texts.
    """
    named = pl.format("{}|{}|{}", *SPECIFICATION).map_elements(
        lambda of: specification_name(*of.split("|")), return_dtype=pl.String
    )
    own = rows.filter(pl.col("split") == TEST, _is_attention(rows)).with_columns(of=named)
    own = own.filter(pl.col("of").is_in(counted))
    if own.is_empty():
        return own
    there = [name for name in VALUES if name in own.columns]
    first = [name for name in ("predicted", "n", "idle_place", "idle_word") if name in own.columns]
    texts = own.group_by("example").agg(
        pl.col(there).filter(~pl.col("void")).mean(), pl.col(first).drop_nulls().first(), pl.col("void").all()
    ).sort("example")  # fmt: skip
    return texts[keyed_order(texts["example"].to_numpy(writable=True)).numpy()]


def gammas(rows: pl.DataFrame, split: str, method: str, counted: list[str]) -> Tensor:
    """Γ of a method by text, the mean over the specifications that count: [seed, example]."""
    named = pl.format("{}|{}|{}", *SPECIFICATION)
    kept = rows.filter(pl.col("split") == split, pl.col("method") == method).with_columns(of=named)
    parts = [values_in_order(part, pl.when(~pl.col("void")).then(pl.col("ranks")))
             for (name,), part in kept.partition_by(["of"], as_dict=True, maintain_order=True).items()
             if specification_name(*str(name).split("|")) in counted]  # fmt: skip
    return torch.stack(parts).nanmean(0) if parts else torch.full((1, 0), math.nan)


def summarise_mediation(rows: pl.DataFrame) -> pl.DataFrame:
    """Means over texts that are not void, with their intervals; the share that is; and M of all texts together."""
    return by_keys(rows, KEYS, _numbers)


def _numbers(group: pl.DataFrame) -> dict[str, Any]:
    kept = group.filter(~pl.col("void"))
    found: dict[str, Any] = {
        "seeds": group["seed"].n_unique(), "n": kept.height, "void": or_none(group["void"].mean()),
    }  # fmt: skip
    for name in VALUES:
        interval = bounded_mean(by_seed(group.with_columns(value=pl.when(~pl.col("void")).then(pl.col(name)))), 0.025)
        found |= {name: or_none(interval.mean)}
        found |= {f"{name}_low": or_none(interval.low), f"{name}_high": or_none(interval.high)}
    missed, effect = (float(kept[name].sum()) for name in ("missed", "effect"))
    pooled = 1 - missed / effect if effect else math.nan
    return found | {"reads_pooled": or_none(pooled)}
