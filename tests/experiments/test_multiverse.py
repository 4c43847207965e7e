"""Multiverse: every specification once, values and shares recomputed slowly, nothing undefined in a mean, figures."""

import math
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations, product

import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from exegete.base.errors import ExegeteError, UsageError
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Subject
from exegete.experiments.multiverse.experiment import Multiverse, choices_of, ranges
from exegete.experiments.multiverse.figure import curves, shares_table, specifications
from exegete.experiments.multiverse.figure import shares as draw_shares
from exegete.experiments.multiverse.shares import TOGETHER, choice_shares, decompose_spread
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance
from exegete.measures.statistics import bootstrap_mean
from exegete.report.drawing import drawing
from exegete.report.theme import to_svg
from exegete.tasks.batching import collate
from exegete.tasks.example import Example, Task
from tests.small import small_model, texts, without_repeats
from tests.subjects import cell, subject_of, tensors

NAN = math.nan
SMALL = Multiverse(
    norms=("input", "l2"), detached=(False,), of=("logit",), omissions=("logit",),
    coefficients=("tau", "tau_corrected", "tau_nonzeros", "fagin:k=2", "legacy:k=nonzeros"),
)  # fmt: skip
EXAMPLES = (
    Example(1, (("a", "b", "c", "d"),), 1),
    Example(2, (("a", "b", "c"),), 0),
    Example(3, (("a",),), 0),  # one word has no ranking
)
TASK = Task("hand", ("no", "yes"), {"train": EXAMPLES, "test": EXAMPLES}, "by hand")
ATTENTION = [[0.5, 0.3, 0.2, 0.0], [1.0, 0.0, 0.0, NAN], [1.0, NAN, NAN, NAN]]
OTHERS = {
    "gradient:norm=input,detach=false,of=logit": [[4.0, 3.0, 1.0, 2.0], [3.0, 1.0, 2.0, NAN], [1.0, NAN, NAN, NAN]],
    "gradient:norm=l2,detach=false,of=logit": [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, NAN], [1.0, NAN, NAN, NAN]],
    "leave_one_out:of=logit": [[-4.0, 3.0, -1.0, 2.0], [3.0, -1.0, 2.0, NAN], [1.0, NAN, NAN, NAN]],  # by size
}


def subject(refused: dict[str, str] | None = None) -> Subject:
    model, scores = small_model("average:size=2,hidden=2", EXAMPLES), tensors({"attention": ATTENTION, **OTHERS})
    more = {"predicted": torch.tensor([1, 0, 0]), "mean_length": 8 / 3, "refused": refused or {}}
    return subject_of(model, TASK, EXAMPLES, scores=scores, **more)


@cache
def small_rows() -> pl.DataFrame:
    return SMALL.rows(subject())


def values(rows: pl.DataFrame, importance: str, coefficient: str) -> list[float | None]:
    kept = rows.filter(pl.col("importance") == importance, pl.col("coefficient") == coefficient)
    return kept.sort("example")["value"].to_list()


def test_every_specification_is_there_once() -> None:
    asked = Multiverse()
    assert len(asked.others) == 3 * 2 * 3 + 2
    assert len(set(asked.specifications)) == len(asked.specifications) == 20 * 7
    for name in asked.importances:
        IMPORTANCES.make(name)
    chosen = {(*choices_of(importance).values(), coefficient) for importance, coefficient in asked.specifications}
    gradients = product(("input", "l1", "l2"), ("false", "true"), ("logit", "probability", "loss"), asked.coefficients)
    omissions = product(("leave_one_out",), (None,), ("logit", "probability"), asked.coefficients)
    assert chosen == {*gradients, *omissions}
    rows = small_rows()
    assert rows.height == len(EXAMPLES) * len(SMALL.specifications)
    assert rows.select("example", "importance", "coefficient").is_unique().all()


def test_rows_known_by_hand() -> None:
    rows = small_rows()
    first, second, third = OTHERS
    assert values(rows, first, "tau") == pytest.approx([4 / 6, stats.kendalltau([1, 0, 0], [3, 1, 2])[0], None])
    # Against [1, 0, 0] without its tie: two pairs, both in order; the largest τ-b is √(2/3).
    assert values(rows, first, "tau_corrected") == pytest.approx([4 / 6, 1, None])
    assert values(rows, first, "tau_nonzeros") == pytest.approx([1, None, None])  # one word with weight: no pairs
    assert values(rows, second, "tau_nonzeros") == pytest.approx([-1, None, None])
    assert values(rows, second, "tau_corrected")[1] == pytest.approx(-1)
    assert values(rows, third, "tau") == pytest.approx([4 / 6, math.sqrt(2 / 3), None])  # by size, not by sign
    assert values(rows, second, "legacy:k=nonzeros")[1] == 1  # k = 1, no common word: the artefact
    assert values(rows, first, "fagin:k=2")[0] == 1


def test_chance_is_zero_for_tau_and_counted_only_with_a_value() -> None:
    rows = small_rows()
    over_words = rows.filter(pl.col("coefficient").str.starts_with("tau"), pl.col("value").is_not_null())
    assert set(over_words["chance"]) == {0}
    assert rows.filter(pl.col("value").is_null())["chance"].null_count() == rows["value"].null_count() > 0
    assert set(rows.filter(pl.col("coefficient") == "legacy:k=nonzeros", pl.col("example") == 2)["chance"]) == {1}
    assert not rows.select(pl.any_horizontal(pl.col("value", "chance").is_nan())).to_series().any()


def test_the_summary_recomputed() -> None:
    rows = cell(small_rows())
    summary = SMALL.summary(rows)
    assert summary.height == len(SMALL.specifications)
    for row in summary.iter_rows(named=True):
        mine = [v for v in values(rows, row["importance"], row["coefficient"]) if v is not None]
        interval = bootstrap_mean(torch.tensor(mine))
        assert (row["n"], row["undefined"], row["seeds"]) == (len(mine), 3 - len(mine), 1)
        assert (row["mean"], row["low"], row["high"]) == pytest.approx(
            (sum(mine) / len(mine), interval.low, interval.high), abs=1e-6
        )
        unrelated = row["chance"]
        above = None if unrelated == 1 else (row["mean"] - unrelated) / (1 - unrelated)
        assert row["above"] == pytest.approx(above)


def test_a_specification_without_a_value_is_null_and_counted() -> None:
    rows = cell(small_rows()).filter(pl.col("example") == 3)
    tau = SMALL.summary(rows).filter(pl.col("coefficient") == "tau")
    assert tau["n"].to_list() == [0, 0, 0]
    assert tau["undefined"].to_list() == [1, 1, 1]
    assert tau.select("mean", "low", "high", "chance", "above").null_count().row(0) == (3, 3, 3, 3, 3)
    assert decompose_spread(rows, choices_of)["share"].is_null().all()
    assert "nothing to show" in to_svg(curves(tau))


def slow_shares(means: Mapping[tuple[str, ...], float], names: tuple[str, ...]) -> dict[str, float]:
    """Sums of squares straight from the definition, cell by cell."""
    grand = sum(means.values()) / len(means)
    total = sum((mean - grand) ** 2 for mean in means.values())
    found = {}
    for place, name in enumerate(names):
        levels: dict[str, list[float]] = defaultdict(list)
        for key, mean in means.items():
            levels[key[place]].append(mean)
        fitted = {level: sum(each) / len(each) for level, each in levels.items()}
        found[name] = sum((fitted[key[place]] - grand) ** 2 for key in means) / total
    return found | {TOGETHER: 1 - sum(found.values())}


def test_shares_known_by_hand() -> None:
    """Means 0, 1, 2, 3 of a 2 × 2: the grand mean is 1.5, SS = 5, of which rows have 4 and columns 1."""
    found = choice_shares(torch.tensor([0.0, 1.0, 2.0, 3.0]), {"row": "aabb", "column": "xyxy"})
    assert {name: share.item() for name, share in found.items()} == pytest.approx(
        {"row": 0.8, "column": 0.2, TOGETHER: 0}
    )
    crossed = choice_shares(torch.tensor([0.0, 1.0, 1.0, 0.0]), {"row": "aabb", "column": "xyxy"})
    assert [share.item() for share in crossed.values()] == pytest.approx([0, 0, 1])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(2, 4), st.integers(1, 3))
def test_shares_divide_the_variance(seed: int, a: int, b: int, c: int) -> None:
    draw = random.Random(seed)
    keys: list[tuple[str, ...]] = list(product("xyzw"[:a], "klmn"[:b], "rst"[:c]))
    draw.shuffle(keys)
    means = {key: draw.gauss(0, 1) for key in keys}
    found = choice_shares(
        torch.tensor(list(means.values()), dtype=torch.float64), dict(zip("ABC", zip(*keys, strict=True), strict=True))
    )
    slow = slow_shares(means, ("A", "B", "C"))
    assert {name: share.item() for name, share in found.items()} == pytest.approx({name: slow[name] for name in found})
    assert sum(share.item() for share in found.values()) == pytest.approx(1)
    assert ("C" in found) == (c > 1)  # one level explains nothing and isn't told


def test_shares_refuse_a_grid_with_holes() -> None:
    with pytest.raises(ExegeteError, match="exactly once"):
        choice_shares(torch.zeros(3), {"row": "aab", "column": "xyx"})
    with pytest.raises(ExegeteError, match="exactly once"):
        choice_shares(torch.zeros(4), {"row": "aabb", "column": "xxxy"})
    assert choice_shares(torch.ones(2), {"row": "ab"})["row"].isnan()


def made_up(seeds: int = 3, examples: int = 12) -> pl.DataFrame:
    """Two seeds or more of the small multiverse, numbers drawn; one value in nine is undefined."""
    draw = random.Random(5)
    rows = [
        {"task": "hand", "model": "bilstm:vectors=glove", "seed": seed, "split": "test", "example": e, "n": 9}
        | {"importance": importance, "coefficient": coefficient}
        | ({"value": None, "chance": None} if draw.random() < 1 / 9 else {
            "value": draw.uniform(-0.2, 0.9), "chance": 0.1 if "fagin" in coefficient else 0.0})
        for seed in range(seeds) for e in range(examples) for importance, coefficient in SMALL.specifications
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def test_the_decomposition_recomputed() -> None:
    rows = made_up()
    table = decompose_spread(rows, choices_of)
    for among, scale in product(("all", "gradient"), ("coefficient", "above_chance")):
        kept = rows if among == "all" else rows.filter(pl.col("importance").str.starts_with("gradient"))
        groups: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
        for row in kept.drop_nulls().iter_rows(named=True):
            groups[row["importance"], row["coefficient"], str(row["seed"])].append((row["value"], row["chance"]))
        means = {}
        for key, pairs in groups.items():
            mean, unrelated = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
            means[key] = mean if scale == "coefficient" else (mean - unrelated) / (1 - unrelated)
        slow = slow_shares(means, ("importance" if among == "all" else "measure", "coefficient", "seed"))
        mine = table.filter(pl.col("among") == among, pl.col("scale") == scale)
        assert dict(mine.select("choice", "share").iter_rows()) == pytest.approx(slow)
        assert set(mine["n"]) == {12}
        assert set(mine["specifications"]) == {len(means)}
        assert mine.filter((pl.col("low") > pl.col("high")) | (pl.col("share") < 0)).is_empty()
    assert table.filter(pl.col("among") == "leave_one_out")["choice"].unique().sort().to_list() == [
        "coefficient", "seed", TOGETHER,
    ]  # fmt: skip


def test_the_range_of_the_means() -> None:
    summary = SMALL.summary(cell(small_rows()))
    found = ranges(summary).row(0, named=True)
    means = sorted(summary["mean"])
    assert (found["lowest"], found["highest"], found["specifications"]) == (means[0], means[-1], 15)
    assert found["lowest_is"].startswith("gradient:norm=l2")
    above = sum(row["low"] > row["chance"] for row in summary.iter_rows(named=True))
    below = sum(row["high"] < row["chance"] for row in summary.iter_rows(named=True))
    assert (found["above_chance"], found["below_chance"]) == (above, below)
    assert min(above, below) > 0


@pytest.mark.slow
def test_figures_draw_every_specification_in_order() -> None:
    rows = pl.concat([made_up(), made_up().with_columns(model=pl.lit("bilstm:projection=sparsemax,vectors=glove"))])
    summary = SMALL.summary(rows)
    table = specifications(summary)
    assert table["panel"].unique(maintain_order=True).to_list() == ["tanh, softmax", "tanh, sparsemax"]
    for part in table.partition_by("panel"):
        assert part["place"].to_list() == list(range(1, 16))
        assert part["mean"].is_sorted()
    charts = SMALL.figures(rows, summary)
    assert list(charts) == ["curve", "shares"]
    drawn = to_svg(charts["curve"])
    for said in ("leave-one-out", "of the logit", "Fagin, top 2", "legacy, words with weight", "attention moves too"):
        assert said in drawn
    assert "Grey: single seeds" in drawn
    assert "Grey: single seeds" not in str(curves(summary, None).to_dict(validate=False)["title"])
    assert "#1b1b1f" not in drawing(charts["shares"]).inline("x").replace("var(--ink, #1b1b1f)", "")
    assert shares_table(decompose_spread(rows, choices_of))["choice"].n_unique() == 5
    assert "nothing to show" in to_svg(draw_shares(pl.DataFrame()))


@pytest.mark.parametrize(("wrong", "said"), [
    ({"coefficients": ("kendall",)}, "unknown coefficient"),
    ({"coefficients": ("fagin",)}, "fagin:k=5"),
    ({"coefficients": ("tau:k=3",)}, "write tau"),
    ({"coefficients": ("fagin:k=0",)}, "whole number"),
    ({"coefficients": ("tau", "tau")}, "once"),
    ({"coefficients": ()}, "nothing to compare"),
    ({"norms": (), "omissions": ()}, "nothing to compare"),
    ({"omissions": ("loss",)}, "not by loss"),
    ({"draws": 0}, "draws"),
])  # fmt: skip
def test_wrong_settings_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Multiverse(**wrong)  # type: ignore[arg-type]


def test_a_refused_importance_is_told() -> None:
    with pytest.raises(UsageError, match="not today"):
        SMALL.rows(subject({"leave_one_out:of=logit": "not today"}))


def test_on_a_model_with_one_output_the_target_of_a_gradient_does_nothing() -> None:
    """Logit, probability and loss have proportional gradients there; and every value agrees with scipy's τ-b."""
    asked: Multiverse = replace(EXPERIMENTS.make("multiverse"), norms=("input", "l2"), coefficients=("tau",))
    examples = without_repeats(texts(5, longest=6))
    model = small_model("bilstm:size=7,hidden=6,scale=1,projection=sparsemax", examples).double()
    batch = collate(examples, model.vocabulary)
    scores = {}
    for name in asked.importances:
        importance: Importance = IMPORTANCES.make(name)
        scores[name] = importance(model, batch).values
    task = Task("small", ("no", "yes"), {"test": examples}, "made up")
    rows = asked.rows(subject_of(model, task, scores=scores, predicted=model.trace(batch).logits.argmax(-1)))
    tau = rows.filter(pl.col("coefficient") == "tau")
    for one, other in combinations(asked.of, 2):
        for norm, detach in product(asked.norms, ("false", "true")):
            mine, theirs = (values(tau, f"gradient:norm={norm},detach={detach},of={of}", "tau") for of in (one, other))
            assert mine == pytest.approx(theirs)
    for row in tau.iter_rows(named=True):
        place = [e.id for e in examples].index(row["example"])
        a, b = (scores[name][place, : row["n"]].detach().abs().numpy() for name in ("attention", row["importance"]))
        slow = stats.kendalltau(a, b)[0] if row["n"] > 1 else NAN
        assert (row["value"] is None) == math.isnan(slow)
        assert row["value"] is None or row["value"] == pytest.approx(slow, abs=1e-9)
