"""Agreement: rows known by hand, and a summary recomputed slowly from them."""

import math
from dataclasses import replace

import polars as pl
import pytest
import torch
from scipy import stats

from exegete.base.errors import UsageError
from exegete.experiments.agreement.experiment import Agreement
from exegete.experiments.common.contract import Subject
from exegete.measures.statistics import bootstrap_mean, clip_interval, crossed_mean
from exegete.report.theme import numbers
from exegete.tasks.example import Example, Task
from tests.small import SPECS, small_model
from tests.subjects import subject_of, tensors

NAN = math.nan
WORDS = ("a", "b", "c", "d")
EXAMPLES = tuple(Example(10 + i, (WORDS[:n],), i % 2) for i, n in enumerate((4, 4, 3, 1)))
TASK = Task("hand", ("no", "yes"), {"train": EXAMPLES, "test": EXAMPLES}, "by hand")
SCORES: dict[str, list[list[float]]] = {
    "attention": [[0.4, 0.3, 0.2, 0.1], [0.7, 0.3, 0, 0], [0.5, 0.5, 0, NAN], [1, NAN, NAN, NAN]],
    "gradient": [[4, 3, 2, 1], [1, 2, 3, 4], [1, 1, 1, NAN], [2, NAN, NAN, NAN]],
    "leave_one_out": [[1, 2, 3, 4], [4, 3, 2, 1], [3, 2, 1, NAN], [5, NAN, NAN, NAN]],
    "random": [[2, 4, 1, 3], [2, 1, 4, 3], [3, 1, 2, NAN], [7, NAN, NAN, NAN]],
}
ASK = Agreement(ks=("1", "2", "average", "nonzeros"), draws=4)


def subject(**change: object) -> Subject:
    usual = {"predicted": torch.tensor([1, 1, 0, 0]), "scores": tensors(SCORES), "mean_length": 3.0}
    return subject_of(small_model(SPECS[0], EXAMPLES), TASK, EXAMPLES, **usual | change)


def values(rows: pl.DataFrame, first: str, second: str, measure: str, k: str = "all") -> list[float | None]:
    chosen = (pl.col("first") == first) & (pl.col("second") == second) & (pl.col("measure") == measure)
    return rows.filter(chosen & (pl.col("k") == k)).sort("example")["value"].to_list()


def test_rows_known_by_hand() -> None:
    rows = ASK.rows(subject())
    assert values(rows, "attention", "gradient", "tau")[0] == 1
    assert values(rows, "gradient", "leave_one_out", "tau")[:2] == [-1, -1]
    assert values(rows, "attention", "gradient", "tau")[2:] == [None, None]  # a constant list, and a single word
    sparse = values(rows, "attention", "leave_one_out", "tau")[1]
    assert sparse == pytest.approx(stats.kendalltau(SCORES["attention"][1], SCORES["leave_one_out"][1]).statistic)
    assert values(rows, "attention", "leave_one_out", "tau_corrected")[1] == pytest.approx(1)  # all that its ties allow
    assert values(rows, "attention", "leave_one_out", "gamma")[1] == 1
    assert values(rows, "attention", "gradient", "fagin", "1")[:2] == [1, -1]
    assert values(rows, "attention", "gradient", "legacy", "1")[:2] == [1, 1]  # the fault: k = 1 is always +1


def test_words_against_the_class_count_by_their_size() -> None:
    against = SCORES | {"gradient": [[-4, 3, -2, 1], *SCORES["gradient"][1:]]}
    of = subject(scores=tensors(against))
    assert values(ASK.rows(of), "attention", "gradient", "tau")[0] == pytest.approx(-1 / 3)  # 2 of 6 pairs are in order
    assert values(replace(ASK, ranking="magnitude").rows(of), "attention", "gradient", "tau")[0] == 1


def test_released_coefficients_of_sparse_models_have_a_density() -> None:
    """Neely & Schouten 2020, figures 1 and 2: three pairs, k the number of words with weight; of softmax, nothing."""
    rows = ASK.rows(subject()).with_columns(task=pl.lit("hand"), seed=0, model=pl.lit("bilstm"))
    sparse = rows.with_columns(model=pl.lit("bilstm:projection=sparsemax"))
    drawn = ASK.figures(sparse.filter(ASK.shown), ASK.summary(sparse))["topk_density"]
    table = numbers(drawn)
    assert table is not None
    assert table.filter(pl.col("kind") == "density")["pair"].n_unique() == 3
    assert "topk_density" not in ASK.figures(rows.filter(ASK.shown), ASK.summary(rows))


def test_every_pair_and_noise_are_there() -> None:
    pairs = ASK.rows(subject()).select("first", "second").unique().rows()
    compared = {("attention", "gradient"), ("attention", "leave_one_out"), ("gradient", "leave_one_out")}
    assert set(pairs) == compared | {("random", "gradient"), ("random", "leave_one_out")}


def test_k_rules() -> None:
    rows = ASK.rows(subject())

    def sizes(k: str) -> list[int]:
        chosen = (pl.col("k") == k) & (pl.col("measure") == "fagin") & (pl.col("first") == "gradient")
        return rows.filter(chosen).sort("example")["size"].to_list()

    assert sizes("2") == [2, 2, 2, 1]
    assert sizes("average") == [3, 3, 3, 1]
    assert sizes("nonzeros") == [4, 2, 2, 1]  # attention's support, also for a pair without attention


def test_labels_are_those_of_the_task() -> None:
    rows = ASK.rows(subject()).unique("example").sort("example")
    assert rows["gold"].to_list() == ["no", "yes", "no", "yes"]
    assert rows["predicted"].to_list() == ["yes", "yes", "no", "no"]
    assert rows["n"].to_list() == [4, 4, 3, 1]


def with_cell(rows: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    return rows.with_columns(pl.lit("hand").alias("task"), pl.lit("m").alias("model"), pl.lit(seed).alias("seed"))


@pytest.mark.parametrize("by", ["predicted", "gold"])
def test_the_summary_recomputed_slowly(by: str) -> None:
    ask = replace(ASK, by=by, ks=("1",), topk=("fagin",))  # type: ignore[arg-type]
    rows = with_cell(ask.rows(subject()))
    for row in ask.summary(rows).iter_rows(named=True):
        mine = [
            r for r in rows.iter_rows(named=True)
            if all(r[key] == row[key] for key in ("first", "second", "measure", "k")) and row["class"] in ("all", r[by])
        ]  # fmt: skip
        defined = [r["value"] for r in mine if r["value"] is not None]
        assert (row["n"], row["undefined"]) == (len(defined), len(mine) - len(defined))
        if not defined:
            assert row["mean"] is None
            continue
        mean = sum(defined) / len(defined)
        assert row["mean"] == pytest.approx(mean)
        assert row["std"] == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in defined) / len(defined)))
        interval = bootstrap_mean(torch.tensor([NAN if r["value"] is None else r["value"] for r in mine]))
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
        p = [r["p"] for r in mine if r["p"] is not None]
        assert row["significant"] == (pytest.approx(sum(x <= 0.05 for x in p) / len(p)) if p else None)


def test_several_seeds_share_their_examples() -> None:
    ask = replace(ASK, ks=(), topk=())
    other = {**subject().scores, "attention": subject().scores["random"]}
    rows = pl.concat([with_cell(ask.rows(subject())), with_cell(ask.rows(subject(scores=other)), seed=1)])
    one = (pl.col("first") == "attention") & (pl.col("second") == "leave_one_out") & (pl.col("measure") == "tau")
    row = ask.summary(rows).filter(one & (pl.col("class") == "all")).row(0, named=True)
    both = rows.filter(one).sort("seed", "example")["value"].fill_null(NAN).to_numpy().reshape(2, 4)
    expected = clip_interval(crossed_mean(torch.from_numpy(both.copy())), 1.0)
    assert row["seeds"] == 2
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((expected.mean, expected.low, expected.high))


def test_the_authors_table_has_their_columns() -> None:
    table = ASK.tables(with_cell(ASK.rows(subject())))["correlation"]
    assert {"class", "mean", "std", "significant_fraction"} <= set(table.columns)
    assert table.height == 5 * 2  # pairs × predicted classes


def test_whole_numbers_are_ks_too() -> None:
    assert Agreement(ks=(1, "nonzeros")).ks == ("1", "nonzeros")
    with pytest.raises(UsageError, match="whole number"):
        Agreement(ks=(0,))
