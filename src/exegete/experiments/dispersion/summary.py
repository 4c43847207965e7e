"""Dispersion, summed up: means with intervals and references, and the tables of Meister et al. (2021)."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
from torch import Tensor

from exegete.base.names import Spec, parse
from exegete.experiments.common.summaries import columns, interval_of, intervals_of, or_none
from exegete.experiments.dispersion.sweep import moves
from exegete.measures.statistics import Interval, clip_interval
from exegete.models.settings import MODELS

ENTROPIES = ("attention", "gradient_inputs", "leave_one_out_inputs")
OF_STATES = ("entropy_gradient_on_states", "own_share", "own_rank")  # what needs a backward pass per state
INPUTS = ("gradient_inputs", "leave_one_out_inputs")
STATES = (
    "gradient_states", "gradient_states_detached", "leave_one_out_states", "leave_one_out_states_projected",
)  # fmt: skip
PAIRS = (*INPUTS, *STATES)
COEFFICIENTS = ("tau", "maximum", "corrected", "gamma", "inside")  # inside: among the words that have weight
MEASURES = (
    *(f"entropy_{name}" for name in ENTROPIES), *OF_STATES,
    *(f"{coefficient}_{pair}" for pair in PAIRS for coefficient in COEFFICIENTS), "support_share",
)  # fmt: skip
CELL = ["task", "model"]
_DIALS = ("projection", "lam", "alpha", "learned")


class Dial(NamedTuple):
    """What a model's name says of its projection."""

    family: str  # the same model whatever its projection
    projection: str | None
    lam: float | None  # sparsegen's λ; sparsemax is sparsegen with λ = 0


def dial(model: str) -> Dial:
    """Projection and λ of a model as written; a model that isn't ours has none that we know.

    >>> dial("bilstm:attention=dot,projection=sparsegen,lam=-3")
    Dial(family='bilstm:attention=dot', projection='sparsegen', lam=-3.0)
    >>> dial("bilstm:projection=sparsemax").lam, dial("bilstm").projection
    (0.0, 'softmax')
    """
    name, settings = parse(model)
    if name not in MODELS:
        return Dial(model, None, None)
    family = str(Spec(name, {key: value for key, value in settings.items() if key not in _DIALS}))
    projection = settings.get("projection", "softmax")
    lam = float(settings["lam"]) if projection == "sparsegen" else 0.0 if projection == "sparsemax" else None
    return Dial(family, projection, lam)


def with_dials(frame: pl.DataFrame) -> pl.DataFrame:
    """Add family, projection and lam."""
    dials = {model: dial(model) for model in frame["model"].unique()}
    types = {"family": pl.String, "projection": pl.String, "lam": pl.Float64}
    return frame.with_columns(
        pl.Series(name, [getattr(dials[model], name) for model in frame["model"]], dtype=dtype)
        for name, dtype in types.items()
    )


def tidy(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per text and measure, without texts that were not asked for their states."""
    wide = rows.with_columns(support_share=pl.col("support") / pl.col("n").replace(0, None))
    index = [*CELL, "seed", "example", "n", "jacobian"]
    long = wide.unpivot(on=list(MEASURES), index=index, variable_name="measure", value_name="value")
    return long.filter(pl.col("jacobian") | ~pl.col("measure").is_in(OF_STATES))


def summarise_dispersion(rows: pl.DataFrame) -> pl.DataFrame:
    """By task, model and measure: seeds, n, undefined, mean, std, interval, reference.

    The reference is what an importance that is the same for all words has: entropy 1, a share of 1/n, rank (n + 1)/2;
    for coefficients, what unrelated rankings have: 0.
    """
    parts = [_cell(group) for group in tidy(rows).partition_by(CELL, maintain_order=True)]
    return with_dials(pl.concat(parts)) if parts else pl.DataFrame()


def _cell(group: pl.DataFrame) -> pl.DataFrame:
    """All measures of one model on one task."""
    found = columns(group, ["measure"])
    intervals = dict(zip([key[0] for key in found.keys], _intervals(found.values), strict=True))
    bounded = {m: i if m == "own_rank" else clip_interval(i, 1.0) for m, i in intervals.items()}
    defined = pl.col("value").is_not_null()
    table = group.group_by(*CELL, "measure", maintain_order=True).agg(
        pl.col("seed").n_unique().alias("seeds"),
        pl.col("value").count().alias("n"),
        pl.col("value").null_count().alias("undefined"),
        pl.col("value").mean().alias("mean"),
        pl.col("value").std(ddof=0).alias("std"),
        (1 / pl.col("n").filter(defined)).mean().alias("_share"),
        ((1 + pl.col("n").filter(defined)) / 2).mean().alias("_rank"),
    )
    ends = {side: [or_none(getattr(bounded[m], side)) for m in table["measure"]] for side in ("low", "high")}
    return table.with_columns(
        *(pl.Series(side, values, dtype=pl.Float64) for side, values in ends.items()), reference=_reference()
    ).drop("_share", "_rank")


def _reference() -> pl.Expr:
    measure = pl.col("measure")
    coefficient = measure.str.contains("^(tau|corrected|gamma|inside)_")
    return (
        pl.when(measure.str.starts_with("entropy_")).then(1.0).when(measure == "own_share").then("_share")
        .when(measure == "own_rank").then("_rank").when(coefficient).then(0.0)
    )  # fmt: skip


def _intervals(values: Tensor) -> list[Interval]:
    """`interval_of` every column of [column, seed, example]; of one seed, columns with the same gaps go together."""
    if values.shape[1] > 1 or not values.numel():
        return [interval_of(column) for column in values]
    gaps = values[:, 0].isnan()
    found: dict[int, Interval] = {}
    for gap in gaps.unique(dim=0):
        alike = (gaps == gap).all(1).nonzero()[:, 0].tolist()
        found |= dict(zip(alike, intervals_of(values[alike][:, :, ~gap]), strict=True))
    return [found[i] for i in range(len(values))]


def paper_tables(rows: pl.DataFrame, states: tuple[str, str]) -> dict[str, pl.DataFrame]:
    """The paper's tables by number, ours only; `states` are the two importances of states that table 6 shows."""
    numbers = with_dials(_plain(rows))
    entropy = numbers.filter(pl.col("measure") == "entropy_gradient_on_states")
    found = {
        "meister_1": _wide(entropy, ["model"], ["mean", "std", "n"]),
        "meister_3": _sizes(rows),
        "meister_6": _correlations(numbers, states),
    }
    sweep = moves(with_dials(tidy(rows)))
    if not sweep.is_empty():
        table_2 = sweep.filter(pl.col("measure") == "entropy_gradient_inputs")
        shown = _wide(table_2, ["family", "reading"], ["tau", "low", "high", "p", "n", "meaning"])
        found |= {"meister_2": shown, "sweep": sweep}
    return found


def _plain(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean and population std over texts and seeds, as the paper prints them."""
    value = pl.col("value")
    return (
        tidy(rows)
        .group_by(*CELL, "measure", maintain_order=True)
        .agg(value.mean().alias("mean"), value.std(ddof=0).alias("std"), value.count().alias("n"))
    )


def _wide(frame: pl.DataFrame, index: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    """A line per index, and for every task its values side by side: `task`, `task std`, …"""
    tasks = frame["task"].unique(maintain_order=True).to_list()
    found = frame.select(index).unique(maintain_order=True)
    for task in tasks:
        names = {value: task if value == values[0] else f"{task} {value}" for value in values}
        part = frame.filter(pl.col("task") == task).select(*index, *(pl.col(v).alias(n) for v, n in names.items()))
        found = found.join(part, on=list(index), how="left", maintain_order="left")
    return found


def _sizes(rows: pl.DataFrame) -> pl.DataFrame:
    """Table 3: texts of training and of the split asked about, and every model's accuracy on those asked."""
    right = (pl.col("gold") == pl.col("predicted")).mean().alias("accuracy")
    asked = pl.col("example").n_unique().alias("asked")
    found = rows.group_by("task", "model", "train_texts", "split_texts", maintain_order=True).agg(asked, right)
    return found.pivot("model", index=["task", "train_texts", "split_texts", "asked"], values="accuracy")


def _correlations(numbers: pl.DataFrame, states: tuple[str, str]) -> pl.DataFrame:
    """Table 6: τ-b of attention with importance of inputs, then of states; its ceiling, their ratio, γ, inside."""
    shown = {"gradient": (INPUTS[0], states[0]), "leave_one_out": (INPUTS[1], states[1])}
    parts = []
    for coefficient in COEFFICIENTS:
        for place, of in enumerate(("inputs", "states")):
            for method, pairs in shown.items():
                kept = numbers.filter(pl.col("measure") == f"{coefficient}_{pairs[place]}")
                said = {"of": of, "coefficient": coefficient, "method": method}
                parts.append(kept.with_columns(pl.lit(text).alias(name) for name, text in said.items()))
    every = pl.concat(parts).with_columns(task=pl.concat_str("task", pl.lit(" "), "method"))
    return _wide(every, ["coefficient", "of", "model"], ["mean", "std", "n"])
