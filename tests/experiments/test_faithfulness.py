"""Faithfulness: rows against a slow recomputation, and summaries and tables of rows made by hand."""

import math
from collections.abc import Collection
from dataclasses import replace
from itertools import product

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from scipy import stats
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.summaries import interval_of, intervals_of, resampled_means
from exegete.experiments.faithfulness.experiment import METHODS, Faithfulness
from exegete.experiments.faithfulness.leaderboard import (
    EVERY,
    HIGH_IS_GOOD,
    UNRELATED,
    best,
    leaderboard_table,
    removal_of,
    summarise_faithfulness,
    survival,
    with_costs,
)
from exegete.importance.catalogue import IMPORTANCES
from exegete.measures.faithfulness import FRACTIONS, word_order
from exegete.measures.statistics import bootstrap_mean, crossed_mean, paired_difference
from exegete.models.contract import Intervention, ReplacedBy, Trace
from exegete.models.ours.classifier import PoolingClassifier
from exegete.report.theme import numbers
from exegete.tasks.batching import Batch
from tests.measures.test_faithfulness import biased, predicted, slow
from tests.small import SPECS, batch_of, small_task
from tests.subjects import cell, subject_of
from tests.toy import Toy

NAMES = ("attention", "gradient:norm=l2", "leave_one_out:of=logit", "random")
ASK = Faithfulness(methods=NAMES)
TASK = small_task(30, longest=6)
TEST = TASK.split("train")[:8]
SMALL = replace(TASK, splits={"train": TASK.split("train"), "dev": TASK.split("train")[8:12], "test": TEST})


def subject(names: tuple[str, ...] = NAMES, split: str = "test", spec: str = SPECS[0]) -> Subject:
    examples = tuple(SMALL.split(split))
    model = biased(spec, examples)
    batch = batch_of(model, examples)
    found = {name: IMPORTANCES.make(name)(model, batch) for name in names}
    scores = {name: one.values.double().detach() for name, one in found.items()}
    return subject_of(model, SMALL, examples, scores=scores, signed={name: one.signed for name, one in found.items()})


def value(rows: pl.DataFrame, **where: object) -> float:
    found = rows.filter(*(pl.col(name) == wanted for name, wanted in where.items()))
    assert len(found) == 1, where
    return float(found["value"][0])


def test_rows_recomputed_slowly() -> None:
    asked = subject()
    rows = Faithfulness(methods=NAMES, removals=("delete", "unknown")).rows(asked)
    model, ids = asked.model, torch.tensor([e.id for e in asked.examples])
    assert isinstance(model, PoolingClassifier)
    names = {
        "comp": "comprehensiveness", "suff": "sufficiency", "odds": "log_odds", "flip": "flip", "never": "never_flips",
        "comp_logit": "comprehensiveness_logit", "suff_logit": "sufficiency_logit",
    }  # fmt: skip
    for method, ranking in (("attention", "signed"), (NAMES[2], "signed"), (NAMES[2], "magnitude")):
        orders = word_order(asked.scores[method], ids, ranking)  # type: ignore[arg-type]
        for e, order in zip(asked.examples, orders, strict=True):
            for short, expected in slow(model, e, order[: len(e)].tolist(), "unknown").items():
                fraction = "all" if short in ("flip", "never") else "aopc"
                where = {"example": e.id, "method": method, "removal": "unknown", "ranking": ranking}
                found = value(rows, **where, measure=names[short], fraction=fraction)
                assert found == pytest.approx(expected, abs=1e-5)


def test_what_rows_hold() -> None:
    rows = ASK.rows(subject())
    columns = ["example", "n", "gold", "predicted", "method", "removal", "ranking", "measure", "fraction", "value"]
    assert rows.columns == columns
    assert rows["value"].dtype == pl.Float64
    assert rows["value"].null_count() == 0
    assert rows.drop("value").is_unique().all()
    assert set(rows["method"]) == set(NAMES)
    keys = ["example", "method", "removal", "measure"]
    per = rows.filter(pl.col("ranking") == "signed", pl.col("measure") == "sufficiency")
    whole = per.filter(pl.col("fraction") == "aopc").sort(keys)["value"]
    parts = per.filter(pl.col("fraction") != "aopc").group_by(keys).agg(pl.col("value").mean(), pl.len()).sort(keys)
    assert parts["len"].unique().to_list() == [len(FRACTIONS)]  # the divisor
    assert parts["value"].to_list() == pytest.approx(whole.to_list())


def test_scores_without_sign_have_one_ranking() -> None:
    rows = ASK.rows(subject()).filter(pl.col("fraction").is_in(["aopc", "all"]))
    keys = ["example", "method", "removal", "measure"]
    both = rows.pivot("ranking", index=keys, values="value")
    differs = both.filter(pl.col("signed") != pl.col("magnitude"))["method"].unique().to_list()
    assert differs == [NAMES[2]]


def test_in_one_piece_or_in_shards() -> None:
    whole = subject()
    parts = [
        ASK.rows(replace(whole, examples=whole.examples[i : i + 3], predicted=whole.predicted[i : i + 3],
                         scores={name: x[i : i + 3] for name, x in whole.scores.items()}))
        for i in (0, 3, 6)
    ]  # fmt: skip
    together, apart = ASK.rows(whole), pl.concat(parts)
    assert together.drop("value").equals(apart.drop("value"))
    assert together["value"].to_list() == pytest.approx(apart["value"].to_list(), abs=1e-5)


def test_methods_that_are_equal_get_equal_numbers() -> None:
    given = subject()
    same = replace(given, scores={**given.scores, "gradient:norm=l2": given.scores["attention"]})
    rows = ASK.rows(same)
    one, two = (rows.filter(pl.col("method") == name)["value"].to_list() for name in NAMES[:2])
    assert one == pytest.approx(two, abs=1e-9)


def test_a_refused_method_is_left_out() -> None:
    given = subject(("attention", "random"))
    refused = replace(given, refused={NAMES[1]: "not for it", NAMES[2]: "nor this"})
    assert set(ASK.rows(refused)["method"]) == {"attention", "random"}


def test_robustness_is_asked_of_few_texts() -> None:
    ask = Faithfulness(methods=("attention", "random"), removals=("zero",), robustness=3)
    rows = ask.rows(subject(("attention", "random")))
    for measure, removal in (("infidelity", "zero"), ("sensitivity_max", "none")):
        found = rows.filter(pl.col("measure") == measure)
        assert (len(found), found["example"].n_unique(), found["value"].null_count()) == (6, 3, 0)
        assert set(found["removal"]) == {removal}
    still = rows.filter(pl.col("measure") == "sensitivity_max", pl.col("method") == "random")
    assert still["value"].to_list() == [0, 0, 0]  # noise doesn't look at the text
    assert "infidelity" not in set(ASK.rows(subject())["measure"])


class Bare(Toy):
    """A model of which nothing can be seen but the contract."""

    def __init__(self, model: PoolingClassifier) -> None:
        self._embed, self._trace, self.reader = model.embed, model.trace, model.reader
        self._replaced, self.sites, self.readout = model.replaced, model.sites, model.readout

    def embed(self, batch: Batch) -> Tensor:
        return self._embed(batch)

    def replaced(self, batch: Batch, words: Tensor, by: ReplacedBy) -> Tensor:
        return self._replaced(batch, words, by)

    def trace(
        self,
        batch: Batch,
        *,
        embedded: Tensor | None = None,
        intervene: Intervention | None = None,
        keep: Collection[str] | None = None,
    ) -> Trace:
        return self._trace(batch, embedded=embedded, intervene=intervene, keep=keep)


def test_any_model_that_keeps_the_contract_is_asked() -> None:
    one = subject()
    assert isinstance(one.model, PoolingClassifier)
    assert_frame_equal(ASK.rows(replace(one, model=Bare(one.model))), ASK.rows(one), abs_tol=1e-6)  # by another route


def test_wrong_settings() -> None:
    for wrong, said in (
        ({"methods": ("attention", "gradient")}, "attention and random"),
        ({"methods": ("attention", "random", "attention")}, "once"),
        ({"removals": ()}, "removal"),
        ({"fractions": (0.0,)}, "fraction"),
        ({"choose_on": "test"}, "another split"),
        ({"robustness": -1}, "number of texts"),
    ):
        with pytest.raises(UsageError, match=said):
            Faithfulness(**wrong)
    assert Faithfulness().splits == ("dev", "test")
    assert Faithfulness().importances == METHODS


def made(
    values: dict[tuple[str, str, str], list[float]], measure: str = "comprehensiveness", seed: int = 0
) -> pl.DataFrame:
    """Rows by hand: (split, removal, method) to the values of texts 0, 1, …"""
    parts = [
        cell(
            pl.DataFrame(
                {"example": range(len(given)), "n": 4, "gold": "no", "predicted": "no", "method": method,
                 "removal": removal, "ranking": "signed", "measure": measure,
                 "fraction": "all" if measure == "flip" else "aopc", "value": given}
            ), seed, SPECS[0], split=split)
        for (split, removal, method), given in values.items()
    ]  # fmt: skip
    return pl.concat(parts)


ATTENTION, GRADIENT, DELETION, NOISE = (
    [0.5, 0.1, 0.4, 0.2],
    [0.6, 0.0, 0.7, 0.3],
    [0.7, 0.3, 0.8, 0.4],
    [0.1, 0.0, 0.2, 0.1],
)


def methods(split: str = "test", removal: str = "delete") -> dict[tuple[str, str, str], list[float]]:
    return {(split, removal, n): v for n, v in zip(NAMES, (ATTENTION, GRADIENT, DELETION, NOISE), strict=True)}


def test_the_summary_recomputed_slowly() -> None:
    row = summarise_faithfulness(made(methods())).filter(pl.col("method") == NAMES[1]).row(0, named=True)
    a, g, r = (torch.tensor(x, dtype=torch.float64) for x in (ATTENTION, GRADIENT, NOISE))
    mean = bootstrap_mean(g)
    assert (row["seeds"], row["n"], row["undefined"], row["better"]) == (1, 4, 0, "high")
    assert (row["mean"], row["low"], row["high"]) == pytest.approx(mean[:3])
    assert row["chance"] == pytest.approx(sum(NOISE) / 4)
    for name, other in (("attention", a), ("random", r)):
        expected = paired_difference(g, other)[:3]
        assert [row[f"over_{name}{end}"] for end in ("", "_low", "_high")] == pytest.approx(expected)


def test_several_seeds_are_crossed() -> None:
    later = {key: [v + 0.01 * i * i for i, v in enumerate(given)] for key, given in methods().items()}
    row = summarise_faithfulness(pl.concat([made(methods()), made(later, seed=1)])).row(2, named=True)
    values = torch.tensor([DELETION, later["test", "delete", NAMES[2]]], dtype=torch.float64)
    assert (row["method"], row["seeds"], row["n"]) == (NAMES[2], 2, 8)
    assert (row["mean"], row["low"], row["high"]) == pytest.approx(crossed_mean(values)[:3])


def test_without_a_control_there_is_no_difference() -> None:
    rows = made({key: given for key, given in methods().items() if key[2] != "attention"})
    found = summarise_faithfulness(rows)
    assert found["over_attention"].null_count() == len(found)
    assert found["over_random"].null_count() == 0


def test_columns_are_resampled_like_one() -> None:
    values = torch.rand(3, 1, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for together, column in zip(intervals_of(values), values, strict=True):
        assert together == pytest.approx(bootstrap_mean(column[0]))
    assert resampled_means(values[:, 0].T, draws=7).shape == (7, 3)
    gap = values.clone()
    gap[1, 0, 3] = math.nan
    assert intervals_of(gap)[1] == interval_of(gap[1])
    assert (intervals_of(gap)[1].n, intervals_of(gap)[1].undefined) == (39, 1)


def test_the_leaderboard_marks_who_erases_alike() -> None:
    rows = pl.concat([made(methods()), made(methods(removal="zero")), made(methods("dev")), made(methods(), "flip")])
    board = leaderboard_table(rows)
    assert board["method"].to_list() == [NAMES[2], NAMES[1], NAMES[0], NAMES[3]]  # best first
    assert board["shares_removal"].to_list() == [True, False, False, False]
    assert board["comprehensiveness"].to_list() == pytest.approx([0.55, 0.4, 0.3, 0.1])
    assert board["flip"].to_list() == pytest.approx([0.55, 0.4, 0.3, 0.1])
    assert board["sufficiency"].null_count() == 4  # not among these rows
    assert not leaderboard_table(rows, "zero")["shares_removal"].any()
    costs = pl.DataFrame({"task": "small", "model": SPECS[0], "method": ["attention"] * 2, "forward": [1, 1],
                          "backward": [0, 0], "ms": [2.0, 4.0]})  # fmt: skip
    with_cost = with_costs(board, costs)
    assert with_cost["method"].equals(board["method"])
    assert with_cost.filter(pl.col("method") == "attention").select("forward", "ms").row(0) == (1.0, 3.0)
    assert with_cost["ms"].null_count() == 3


def test_how_methods_erase() -> None:
    known: dict[str, str | None] = {
        "leave_one_out": "delete",
        "occlusion": "zero",
        "replacement": "unknown",
        "lime": "delete",
    }
    known |= {"kernel_shap:removal=zero": "zero", "lrp": None, "somebody_elses": None}
    assert {name: removal_of(name) for name in known} == known


def test_an_order_that_survives_and_one_that_turns() -> None:
    same = survival(made(methods() | methods(removal="zero")))
    assert same["tau"].to_list() == [1, 1]
    assert same["methods"].to_list() == [3, 2]  # random is left out; deletion shares a removal
    assert same["among"].to_list() == [EVERY, UNRELATED]
    assert same["low"].to_list() == same["high"].to_list() == [1, 1]
    names = [f"m{i}" for i in range(5)]
    a, b = [5, 4, 3, 2, 1], [4, 5, 1, 3, 2]
    values = {("test", by, name): [float(x), float(x)] for by, order in (("delete", a), ("zero", b))
              for name, x in zip(names, order, strict=True)}  # fmt: skip
    row = survival(made(values)).row(0, named=True)
    assert row["tau"] == pytest.approx(stats.kendalltau(a, b).statistic)
    assert (row["first"], row["second"], row["n"], row["chance"]) == ("delete", "zero", 2, 0)


def test_survival_hangs_on_the_texts() -> None:
    """Two methods that differ in one text only: half of the orders turn with it."""
    values = {("test", "delete", "m0"): [1.0, 1.0], ("test", "delete", "m1"): [0.0, 0.0],
              ("test", "zero", "m0"): [3.0, 0.0], ("test", "zero", "m1"): [0.0, 1.0]}  # fmt: skip
    row = survival(made(values)).row(0, named=True)
    assert (row["tau"], row["low"], row["high"]) == (1, -1, 1)


def test_the_best_is_chosen_on_dev_not_on_test() -> None:
    swapped = {("dev", "delete", NAMES[0]): [0.2, 0.2], ("dev", "delete", NAMES[1]): [0.9, 0.9],
               ("dev", "delete", NAMES[2]): [0.8, 0.8], ("dev", "delete", NAMES[3]): [1.0, 1.0]}  # fmt: skip
    found = best(made(swapped | methods()))
    assert found["method"].to_list() == [NAMES[1], NAMES[1]]  # on test NAMES[2] is better; random is no candidate
    assert found["chosen_at"].to_list() == pytest.approx([0.9, 0.9])
    expected = paired_difference(torch.tensor(GRADIENT).double(), torch.tensor(ATTENTION).double())
    row = found.row(0, named=True)
    assert [row[f"over_attention{end}"] for end in ("", "_low", "_high")] == pytest.approx(expected[:3])


def test_the_best_where_low_is_good_and_without_who_erases_alike() -> None:
    low = {("dev", "delete", NAMES[0]): [0.5, 0.5], ("dev", "delete", NAMES[1]): [0.3, 0.3],
           ("dev", "delete", NAMES[2]): [0.2, 0.2], ("dev", "delete", NAMES[3]): [0.1, 0.1]}  # fmt: skip
    found = best(made(low | methods(), "flip"))
    assert found.select("among", "method").rows() == [(EVERY, NAMES[2]), (UNRELATED, NAMES[1])]
    margin = found.row(1, named=True)  # a lower flip is better: the margin is attention's value minus the method's
    assert margin["over_attention"] == pytest.approx(sum(ATTENTION) / 4 - sum(GRADIENT) / 4)
    assert margin["over_attention_low"] <= margin["over_attention"] <= margin["over_attention_high"]
    assert best(made(methods())).is_empty()  # no dev rows, no choice


def test_every_measure_has_a_direction() -> None:
    asked = Faithfulness(methods=("attention", "random"), removals=("zero",), robustness=1)
    assert set(asked.rows(subject(("attention", "random")))["measure"]) == set(HIGH_IS_GOOD)


def test_random_is_where_it_should_be() -> None:
    """One random word of T: on average what removing each word does, computed here word by word."""
    given = subject()
    assert isinstance(given.model, PoolingClassifier)
    seeds = tuple(f"random:seed={i}" for i in range(30))
    batch = batch_of(given.model, given.examples)
    noise = {name: IMPORTANCES.make(name)(given.model, batch).values for name in seeds}
    asked = replace(given, scores={"attention": given.scores["attention"], **noise},
                    signed=dict.fromkeys(("attention", *seeds), False))  # fmt: skip
    rows = Faithfulness(methods=("attention", *seeds), removals=("delete",), fractions=(0.01,)).rows(asked)
    found = rows.filter(pl.col("measure") == "comprehensiveness_logit", pl.col("method") != "attention")
    drops = [
        (predicted(given.model, e, [], "delete") - predicted(given.model, e, [i], "delete"))[c].item() / len(e)
        for e, c in zip(given.examples, given.predicted, strict=True)
        for i in range(len(e))
    ]
    level, spread = sum(drops) / len(given.examples), found["value"].std()
    assert isinstance(spread, float)
    mean = found.filter(pl.col("ranking") == "signed")["value"].mean()
    assert mean == pytest.approx(level, abs=3 * spread / math.sqrt(30 * 8))


def test_tables_and_figures_of_real_rows() -> None:
    ask = Faithfulness(methods=NAMES, removals=("delete", "zero"))
    rows = pl.concat([cell(ask.rows(subject(split=split)), split=split) for split in ("dev", "test")])
    tables = ask.tables(rows)
    assert set(tables) == {"leaderboard", "survival", "best"}
    assert len(tables["leaderboard"]) == 4
    assert len(tables["survival"]) == 2 * 6 * 2  # rankings, measures, among
    assert len(tables["best"]) == 2 * 6 * 2 * 2  # and removals
    found = ask.summary(rows)
    assert set(found.select("split", "method").unique().rows()) == set(product(("dev", "test"), NAMES))
    figures = ask.figures(rows, found)
    assert set(figures) == {"leaderboard", "removals"}
    board, ranks = (numbers(figures[name]) for name in ("leaderboard", "removals"))
    assert board is not None
    assert ranks is not None
    assert board.filter(pl.col("shares"))["method"].unique().to_list() == ["leave-one-out (signed)"]
    assert ranks.group_by("removal").agg(pl.col("rank").sort())["rank"].to_list() == [[1, 2, 3, 4]] * 2
    alone = Faithfulness(methods=NAMES, removals=("zero",))
    assert set(alone.figures(rows, found)) == {"leaderboard"}
