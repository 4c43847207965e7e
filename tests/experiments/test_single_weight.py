"""Single weights and decision flips: ΔJS and flips by plain loops, the summaries recomputed, what is counted apart."""

import math
from dataclasses import replace

import polars as pl
import pytest
import torch
from scipy import stats

from exegete.base.errors import UsageError
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Subject, unsuited
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.tallies import share_of, sign_test
from exegete.experiments.decision_flips.experiment import DecisionFlips
from exegete.experiments.decision_flips.figure import kinds
from exegete.experiments.single_weight.experiment import SingleWeight
from exegete.experiments.single_weight.figure import counts, single_weight_points
from exegete.measures.proportions import wilson
from exegete.models.ours.classifier import PoolingClassifier
from exegete.report.theme import to_svg
from exegete.tasks.example import Example, Task
from tests.experiments.test_removal import slow
from tests.margins import clear, lead
from tests.small import small_model, texts
from tests.subjects import cell, subject_of
from tests.toy import Toy

EXAMPLES = texts(60, seed=5)
SPEC = "bilstm:size=7,hidden=6,scale=1,attention=dot"
SPARSE = "average:size=7,hidden=6,scale=4,projection=sparsemax"


def asked_of(spec: str = SPEC, examples: tuple[Example, ...] = EXAMPLES, scale: float = 1) -> Subject:
    model = small_model(spec, EXAMPLES)
    with torch.no_grad():
        for parameter in (*model.scorer.parameters(), model.decoder.weight):
            parameter.mul_(scale)
    task = Task("small", ("no", "yes"), {"test": examples}, "made up")
    return subject_of(model, task)


def softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    powers = [math.exp(z - top) for z in logits]
    return [power / sum(powers) for power in powers]


def js(p: list[float], q: list[float]) -> float:
    m = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return sum(sum(a * math.log(a / c) for a, c in zip(d, m, strict=True) if a) for d in (p, q)) / 2


def argmax(values: list[float]) -> int:
    return values.index(max(values))


@pytest.mark.parametrize("spec", [SPEC, SPARSE])
def test_rows_are_the_plain_loop(spec: str) -> None:
    subject = asked_of(spec, scale=3)
    subject = replace(subject, model=subject.model.double())  # type: ignore[attr-defined]
    found = {row["example"]: row for row in SingleWeight().rows(subject).iter_rows(named=True)}
    flips = {row["example"]: row for row in DecisionFlips().rows(subject).iter_rows(named=True)}
    with clear() as sure:
        for part in open_pooled(subject.model, subject.examples):
            for row, example in enumerate(part.ids.tolist()):
                mine, weights = found[example], part.key_weights[row].tolist()
                assert mine["keys"] == len(weights)
                if len(weights) == 1:
                    assert mine["value"] is None
                    continue
                highest = argmax(weights)
                before, top = slow(part, row, set()), slow(part, row, {highest})
                assert mine["js_top"] == pytest.approx(js(softmax(before), softmax(top)), abs=1e-8)
                assert mine["value"] == pytest.approx(mine["js_top"] - mine["js_random"], abs=1e-15)
                others = [slow(part, row, {t}) for t in range(len(weights)) if t != highest]
                apart = [max(weights) - weights[t] for t in range(len(weights)) if t != highest]
                drawn = [
                    other
                    for other, difference in zip(others, apart, strict=True)
                    if mine["difference"] == pytest.approx(difference, abs=1e-8)
                    and mine["js_random"] == pytest.approx(js(softmax(before), softmax(other)), abs=1e-8)
                ]
                assert drawn
                if sure(lead(before), lead(top)):
                    assert flips[example]["top_flips"] == (argmax(top) != argmax(before))
                if sure(lead(before), *map(lead, drawn)):
                    assert flips[example]["random_flips"] in {argmax(other) != argmax(before) for other in drawn}


def test_the_two_experiments_draw_the_same_other_key() -> None:
    a, b = SingleWeight(seed=3).rows(asked_of()), DecisionFlips(seed=3).rows(asked_of())
    assert a["difference"].to_list() == b["difference"].to_list()
    assert a["difference"].to_list() != SingleWeight(seed=4).rows(asked_of())["difference"].to_list()


def test_a_batch_is_its_texts_one_by_one() -> None:
    for asked in (SingleWeight(), DecisionFlips()):
        whole = asked.rows(asked_of())
        single = pl.concat([asked.rows(asked_of(examples=(e,))) for e in EXAMPLES[:12]])
        numbers = [name for name, dtype in whole.schema.items() if dtype == pl.Float64]
        assert whole.head(12).drop(numbers).equals(single.drop(numbers))
        for name in numbers:
            assert single[name].to_list() == pytest.approx(whole[name].to_list()[:12], abs=1e-6)


def test_texts_of_one_key_are_counted_apart() -> None:
    short = sum(len(e) == 1 for e in EXAMPLES)
    assert short > 0
    for asked, fields in ((SingleWeight(), ["value", "js_top"]), (DecisionFlips(), ["top_flips", "random_flips"])):
        rows = cell(asked.rows(asked_of()))
        one = rows.filter(pl.col("keys") == 1)
        assert one.select(fields).null_count().row(0) == (short, short)
        summary = asked.summary(rows)
        assert summary["undefined"][0] == short
        assert summary["n"][0] == len(EXAMPLES) - short
        only = asked.summary(one)
        assert only["n"][0] == 0
        assert only["mean" if "mean" in only.columns else "share"].null_count() == only.height
        assert "nothing to show" in to_svg(next(iter(asked.figures(one, only).values())))


def test_the_summary_of_single_weights_recomputed() -> None:
    rows = cell(SingleWeight().rows(asked_of(scale=3)))
    values = [value for value in rows["value"] if value is not None]
    row = SingleWeight().summary(rows).row(0, named=True)
    assert row["mean"] == pytest.approx(sum(values) / len(values))
    assert row["low"] < row["mean"] < row["high"]
    below = sum(value < -1e-12 for value in values)
    assert 0 < below < len(values)
    assert row["negative"] == pytest.approx(below / len(values))
    exact = stats.binomtest(below, len(values)).proportion_ci(method="wilson")
    assert (row["negative_low"], row["negative_high"]) == pytest.approx((exact.low, exact.high))
    tenths = SingleWeight().tables(rows)["tenths"]
    assert tenths["n"].sum() == len(values)
    for tenth in tenths.iter_rows(named=True):
        low, high = tenth["tenth"] - 1e-12, tenth["tenth"] + 0.1 - 1e-12
        mine = rows.filter(pl.col("difference") >= low, pl.col("difference") < high)["value"].to_list()
        assert tenth["mean"] == pytest.approx(sum(mine) / len(mine))


def test_sparse_attention_with_one_weight_is_counted() -> None:
    rows = SingleWeight().rows(asked_of(SPARSE, scale=20))
    emptied = rows.filter("emptied")
    assert 0 < emptied.height < rows.height
    assert SingleWeight().summary(cell(rows))["emptied"].to_list() == [emptied.height]
    assert emptied.filter(pl.col("js_random") > 1e-12).is_empty()  # the others have no weight to lose
    assert emptied["value"].null_count() == 0


def test_legacy_may_draw_the_highest_and_then_nothing_differs() -> None:
    rows = SingleWeight("legacy").rows(asked_of())
    same = rows.filter("same")
    assert same.height > 3
    assert set(same["value"]) == {0.0}
    assert set(same["difference"]) == {0.0}
    assert not SingleWeight().rows(asked_of())["same"].any()


def flips(both: int, top: int, other: int, neither: int) -> pl.DataFrame:
    """Rows with so many texts of each kind."""
    kind = [(True, True)] * both + [(True, False)] * top + [(False, True)] * other + [(False, False)] * neither
    columns = {
        "example": range(len(kind)), "top_flips": [a for a, _ in kind], "random_flips": [b for _, b in kind],
        "value": [float(a) - float(b) for a, b in kind], "same": [False] * len(kind), "emptied": [False] * len(kind),
    }  # fmt: skip
    return cell(pl.DataFrame(columns))


def test_the_flip_table_known_by_hand() -> None:
    rows = flips(1, 9, 3, 87)
    summary = DecisionFlips().summary(rows)
    assert summary["count"].to_list() == [1, 9, 3, 87]
    assert summary["share"].to_list() == pytest.approx([0.01, 0.09, 0.03, 0.87])
    assert summary["p"].to_list() == pytest.approx([stats.binomtest(9, 12).pvalue] * 4)
    paper = DecisionFlips().tables(rows)["serrano_smith"]
    assert paper.select("remove_top", "random_yes", "random_no").rows() == [
        ("yes", pytest.approx(1), pytest.approx(9)),
        ("no", pytest.approx(3), pytest.approx(87)),
    ]
    margins = DecisionFlips().tables(rows)["margins"].row(0, named=True)
    assert (margins["top"], margins["random"], margins["difference"]) == pytest.approx((0.10, 0.04, 0.06))
    assert margins["low"] <= 0.06 <= margins["high"]


def test_the_rows_of_a_model_make_the_table() -> None:
    rows = cell(DecisionFlips().rows(asked_of(scale=3)))
    summary = DecisionFlips().summary(rows)
    assert summary["share"].sum() == pytest.approx(1)
    assert summary["count"].sum() == summary["n"][0]
    assert rows["top_flips"].sum() > 0


def test_several_seeds_are_not_more_texts() -> None:
    one, two = flips(1, 9, 3, 87), flips(1, 9, 3, 87).with_columns(seed=pl.lit(1))
    both = pl.concat([one, two])
    flag = pl.col("top_flips")
    alone, together = share_of(one, flag), share_of(both, flag)
    assert together.n == 200
    assert together.low <= alone.low
    assert together.high >= alone.high
    assert sign_test(both, pl.col("value")) == pytest.approx(sign_test(one, pl.col("value")))
    weak = flips(0, 2, 2, 10).with_columns(seed=pl.lit(1))
    assert sign_test(pl.concat([one, weak]), pl.col("value")) == 1


def test_no_text_at_all_still_has_an_interval() -> None:
    assert wilson(0.0, 50)[0] == 0
    assert 0.05 < wilson(0.0, 50)[1] < 0.1
    assert sign_test(flips(3, 0, 0, 5), pl.col("value")) == 1
    assert sign_test(flips(0, 0, 0, 0).head(0), pl.col("value")) is None


def test_the_figures_draw_what_was_measured() -> None:
    rows = cell(SingleWeight().rows(asked_of(scale=3)))
    drawn = single_weight_points(rows)
    assert drawn.height == rows["value"].count()  # few enough to draw them all
    many = pl.concat([rows.with_columns(seed=pl.lit(seed)) for seed in range(20)])
    assert single_weight_points(many).height < 20 * drawn.height
    table = counts(rows)
    assert table["negative"].sum() == (rows["value"] < -1e-12).sum()
    assert table["n"].sum() == drawn.height
    charts = SingleWeight().figures(rows, SingleWeight().summary(rows))
    assert "ΔJS" in to_svg(charts["scatter"])
    assert "% of texts" in to_svg(charts["negatives"])
    tiles = DecisionFlips().summary(flips(1, 9, 3, 87))
    assert kinds(tiles)["percent"].to_list() == ["1.0 %", "9.0 %", "3.0 %", "87.0 %"]
    assert "87.0 %" in to_svg(DecisionFlips().figures(pl.DataFrame(), tiles)["tiles"])


def test_wrong_settings_and_models() -> None:
    assert EXPERIMENTS.make("single_weight:sampler=legacy,texts=9") == SingleWeight("legacy", texts=9)
    for name in ("single_weight", "decision_flips"):
        with pytest.raises(UsageError, match="sampler"):
            EXPERIMENTS.make(f"{name}:sampler=nearest")

    subject = asked_of()
    for asked in (SingleWeight(), DecisionFlips()):
        assert unsuited(asked, subject.task, subject.model) is None
        reason = unsuited(asked, subject.task, Toy())
        assert reason is not None
        assert "from which a class is predicted" in reason
        with pytest.raises(UsageError, match="from which a class is predicted"):
            asked.rows(replace(subject, model=Toy()))
    assert isinstance(subject.model, PoolingClassifier)
