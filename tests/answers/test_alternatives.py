"""What to read instead, by rows made by hand: chosen on dev texts, judged on test, held against attention by text."""

import math
from collections.abc import Mapping

import polars as pl
import pytest

from exegete.answers.alternatives import Readable, readable
from exegete.answers.context import MethodCost
from exegete.answers.rules import ERROR
from exegete.experiments.mediation.statistics import specification_name
from exegete.measures.betting import Bets
from exegete.tasks.selection import keyed_order
from tests.answers.cards import readable as made_up

ONE, TWO = ("delete", "alone", "log-odds"), ("resample", "company", "log-odds")
NAMES = [specification_name(*ONE), specification_name(*TWO)]
LEAVE_ONE_OUT = "leave_one_out:of=logit"  # it erases words as the effect does
N = 200


def wave(mean: float, i: int) -> float:
    return mean + 0.05 * math.sin(i)


def rows(
    test: Mapping[str, float | tuple[float, float]], dev: Mapping[str, float] | None = None, n: int = N
) -> pl.DataFrame:
    """Γ by method: in both specifications, or in each; on dev only words are deleted, alone."""
    found = [
        {"split": split, "seed": 0, "example": i, "method": method, "void": False, "ranks": wave(mean, i)}
        | dict(zip(("removal", "company", "scale"), way, strict=True))
        for split, means in (("dev", dev or {}), ("test", test))
        for method, gammas in means.items()
        for way, mean in zip((ONE, TWO), gammas if isinstance(gammas, tuple) else (gammas, gammas), strict=True)
        if split == "test" or way == ONE
        for i in range(n)
    ]  # fmt: skip
    return pl.DataFrame(found)


def found(frame: pl.DataFrame, choose_on: str = "dev", costs: dict[str, MethodCost] | None = None) -> list[Readable]:
    return list(readable(frame, choose_on, NAMES, costs or {}))


def test_the_best_is_chosen_on_dev_and_judged_on_test() -> None:
    test = {"attention": 0.5, "lrp": 0.7, "gradient": 0.4}
    (best,) = found(rows(test, {"lrp": 0.6, "gradient": 0.5}))
    assert best.method == "lrp"
    assert best.gamma == pytest.approx(sum(wave(0.7, i) for i in range(N)) / N)  # not what it was on dev
    assert best.n == N
    assert best.gamma - best.low < 0.1


def test_who_is_better_than_the_chosen_one_on_test_is_not_worse_than_it() -> None:
    test = {"attention": 0.5, "lrp": 0.7, "gradient": 0.4, "gradient_x_input": 0.3}
    both = found(rows(test, {"lrp": 0.5, "gradient": 0.6, "gradient_x_input": 0.5}))
    assert [each.method for each in both] == ["lrp", "gradient"]


def test_those_that_cannot_be_told_from_the_best_are_as_good_and_the_cheapest_comes_first() -> None:
    test = {"attention": 0.5, "lrp": 0.8, "gradient": 0.8001, "gradient_x_input": 0.6}
    costs = {"lrp": MethodCost(1, 1, 5.0), "gradient": MethodCost(1, 1, 2.0), "gradient_x_input": MethodCost(1, 1, 0.1)}
    dev = {"lrp": 0.8, "gradient": 0.79, "gradient_x_input": 0.6}
    assert [each.method for each in found(rows(test, dev), costs=costs)] == ["gradient", "lrp"]
    unknown = {"lrp": costs["lrp"]}  # whose cost nobody knows comes last
    assert [each.method for each in found(rows(test, dev), costs=unknown)] == ["lrp", "gradient"]
    assert [each.method for each in found(rows(test, dev))] == ["gradient", "lrp"]  # by Γ


def test_ties_are_as_good() -> None:
    same = dict.fromkeys(("attention", "lrp", "gradient"), 0.7)
    assert {each.method for each in found(rows(same, same))} == {"lrp", "gradient"}
    for each in found(rows(same, same)):
        assert each.better.statistic == pytest.approx(0.0)
        assert each.better.verdict == "cannot tell"
        assert "not surely better than attention" in each.said


def test_without_dev_texts_every_other_text_chooses_and_the_rest_judge() -> None:
    """On the texts that choose lrp is best; its number is that of the others."""
    order = keyed_order(pl.Series(range(N)).to_numpy(writable=True)).tolist()
    chosen, judging = {*order[::2]}, order[1::2]
    frame = rows({"attention": 0.5, "lrp": 0.0, "gradient": 0.6}).with_columns(
        ranks=pl.when(pl.col("method") == "lrp")
        .then(pl.when(pl.col("example").is_in(list(chosen))).then(0.9).otherwise(0.55))
        .otherwise("ranks")
    )
    for choose_on in ("", "dev"):  # named, but without any text
        own = {each.method: each for each in found(frame, choose_on)}
        assert set(own) == {"lrp", "gradient"}
        assert own["lrp"].gamma == pytest.approx(0.55)
        assert own["lrp"].n == own["lrp"].better.n == N // 2
        mean = sum(wave(0.6, i) for i in judging) / len(judging)
        assert own["gradient"].gamma == pytest.approx(mean)


def test_the_difference_to_attention_is_of_the_same_texts_in_all_and_in_each() -> None:
    frame = rows({"attention": (0.4, 0.7), "lrp": (0.8, 0.6)}, {"lrp": 0.8})
    (best,) = found(frame)
    assert best.better.statistic == pytest.approx(0.15)
    assert [v.name for v in best.specifications] == NAMES
    assert [v.statistic for v in best.specifications] == pytest.approx([0.4, -0.1])
    assert [v.verdict for v in best.specifications] == ["holds", "fails"]
    order = keyed_order(pl.Series(range(N)).to_numpy(writable=True))
    paired = frame.filter(pl.col("split") == "test", pl.col("removal") == "delete").sort("example")
    one, other = (paired.filter(pl.col("method") == m)["ranks"].to_torch()[order] for m in ("lrp", "attention"))
    low, high = Bets(one - other, -2.0, 2.0).interval(ERROR / 2)[1:3]
    assert (best.specifications[0].low, best.specifications[0].high) == (low, high)
    assert "0.15 [" in best.said
    assert "better than attention" in best.said


def test_it_is_given_also_where_attention_is_as_good_or_better() -> None:
    (worse,) = found(rows({"attention": 0.9, "lrp": 0.6}, {"lrp": 0.6}))
    assert worse.better.verdict == "fails"
    assert "0.30 worse than attention" in worse.said


def test_nothing_that_erases_words_as_the_effect_does_and_no_noise_is_read() -> None:
    every = {"attention": 0.5, "random": 0.95, LEAVE_ONE_OUT: 0.99, "occlusion": 0.98, "lrp": 0.2}
    assert [each.method for each in found(rows(every, every))] == ["lrp"]
    assert found(rows({"attention": 0.5, "random": 0.9}, {"random": 0.9})) == []


def test_of_few_texts_nothing_is_said() -> None:
    means = {"attention": 0.5, "lrp": 0.8}
    assert found(rows(means, means, n=39)) == []
    assert len(found(rows(means, means, n=40))) == 1
    assert found(rows(means, n=79)) == []  # of which half choose
    assert len(found(rows(means, n=80))) == 1


def test_void_texts_and_specifications_that_do_not_count_say_nothing() -> None:
    frame = rows({"attention": (0.5, -0.9), "lrp": (0.8, -0.9)}, {"lrp": 0.8})
    (best,) = readable(frame, "dev", NAMES[:1], {})
    assert best.gamma == pytest.approx(sum(wave(0.8, i) for i in range(N)) / N)
    assert [v.name for v in best.specifications] == NAMES[:1]
    void = frame.with_columns(void=(pl.col("example") < 60) & (pl.col("split") == "test"))
    (best,) = readable(void, "dev", NAMES[:1], {})
    assert (best.n, best.better.n) == (140, 140)


def test_as_machines_read_it() -> None:
    cost = MethodCost(1.0, 1.0, 2.5)
    means = {"attention": 0.5, "lrp": 0.8}
    (best,) = found(rows(means, means), costs={"lrp": cost})
    said = best.to_json()
    assert said["cost"] == {"forward": 1.0, "backward": 1.0, "ms": 2.5}
    assert said["better"]["statistic"] == pytest.approx(0.3)
    assert best.said.endswith("; 2 passes and 2.5 ms a text)")
    (bare,) = found(rows(means, means))
    assert bare.to_json()["cost"] is None


@pytest.mark.parametrize(
    ("method", "signed"),
    [
        ("gradient:norm=l2", False),
        ("gradient", False),
        ("gradient_x_input", True),
        ("smoothgrad", False),
        ("smoothgrad:norm=input", True),
        ("attention_x_gradient", True),
        ("attention_x_norm", False),
        ("rollout", False),
        ("lrp", True),
        ("given:file=gone.csv", True),
        ("of_a_plugin_that_is_gone", True),
    ],
)
def test_which_methods_say_for_which_class_a_word_speaks(method: str, signed: bool) -> None:
    assert made_up(method, 0.8).signed == signed
