"""The rule of verdicts, by hand."""

import pytest

from exegete.wings.papers.rule import Ours, Yardstick, judge_number, judge_words


@pytest.mark.parametrize(
    ("printed", "ours", "by", "verdict"),
    [
        (0.30, Ours(0.32, 0.29, 0.35), Yardstick(0.0, 0.1, 0.0), "reproduced"),  # in the interval
        (0.25, Ours(0.32, 0.29, 0.35), Yardstick(0.05, 0.1, 0.0), "reproduced"),  # in the widened one: 0.24
        (0.23, Ours(0.32, 0.29, 0.35), Yardstick(0.05, 0.1, 0.0), "direction only"),  # both above 0
        (-0.23, Ours(0.32, 0.29, 0.35), Yardstick(0.05, 0.1, 0.0), "deviates"),  # on either side
        (0.60, Ours(0.02, -0.03, 0.05), Yardstick(0.05, 0.1, 0.0), "deviates"),  # ours has no side
        (0.04, Ours(0.32, 0.29, 0.35), Yardstick(0.05, 0.1, 0.0), "deviates"),  # the printed one has none
        (0.60, Ours(0.32, 0.29, 0.35), Yardstick(0.05, 0.1), "deviates"),  # nothing to be on a side of
        (0.30, Ours(0.32, 0.10, 0.54), Yardstick(0.05, 0.1, 0.0), "cannot tell"),  # ± 0.22 holds everything
        (0.90, Ours(0.32, 0.10, 0.54), Yardstick(0.05, 0.1, 0.0), "direction only"),  # wide, but not that wide
        (0.30, Ours(0.32, 0.29, 0.35), Yardstick(0.0, 0.1, 0.0, None, True), "direction only"),  # other data
        (0.30, Ours(0.32, 0.29, 0.35), Yardstick(0.0, 0.1, None, None, True), "cannot tell"),
        (12.2, Ours(1.8, 1.0, 3.4), Yardstick(2.0, 5.0, 1.4, 0.6), "direction only"),  # each above its own reference
        (12.2, Ours(1.8, 1.0, 3.4), Yardstick(2.0, 5.0, 1.4, 5.0), "deviates"),
        (-0.8, Ours(-1.3, -2.4, 0.0), Yardstick(2.8, 5.0, 0.0), "too coarse to tell"),  # 0 is in [-5.2, 2.8], too
        (-0.8, Ours(-9.0, -9.9, -8.0), Yardstick(2.8, 5.0, 0.0), "deviates"),
        (-6.5, Ours(-4.0, -6.5, -1.5), Yardstick(2.0, 5.0, 0.0), "direction only"),  # m reaches 0, neither number does
        (-0.8, Ours(-1.3, -9.4, 7.0), Yardstick(2.8, 5.0, 0.0), "cannot tell"),  # the resolution is asked first
        (0.8, Ours(0.81, 0.80, 0.82), Yardstick(0.05, 0.1, 0.805), "too coarse to tell"),
        (0.8, Ours(0.81, 0.80, 0.82), Yardstick(0.05, 0.1, None), "reproduced"),  # an accuracy has no "no effect"
    ],
)
def test_the_rule_by_hand(printed: float, ours: Ours, by: Yardstick, verdict: str) -> None:
    assert judge_number(printed, ours, by)[0] == verdict


def test_a_number_may_come_out_and_mean_the_opposite() -> None:
    verdict, reason = judge_number(0.824, Ours(0.751, 0.718, 0.784), Yardstick(0.05, 0.15, 0.805))
    assert (verdict, reason) == ("too coarse to tell", "ours lies on the other side of the reference")


def test_no_effect_is_reproduced_where_it_is_the_claim() -> None:
    verdict, reason = judge_number(-1.0, Ours(-0.4, -1.8, 0.8), Yardstick(2.8, 5.0, 0.0, no_effect=True))
    assert (verdict, reason) == ("reproduced", "no effect is what is printed: one of less than 2.8 would not be seen")
    assert judge_number(-1.0, Ours(-9.0, -9.9, -8.0), Yardstick(2.8, 5.0, 0.0, no_effect=True))[0] == "deviates"


@pytest.mark.parametrize(
    ("sign", "low", "high", "verdict"),
    [
        ("above", 0.01, 0.05, "direction only"),
        ("above", -0.05, -0.01, "deviates"),
        ("above", -0.01, 0.05, "cannot tell"),
        ("below", -0.05, -0.01, "direction only"),
        ("below", 0.01, 0.02, "deviates"),
        ("not below", -0.01, 0.01, "direction only"),
        ("not below", -0.09, -0.03, "deviates"),
        ("not below", -0.09, 0.03, "cannot tell"),
        ("at", -0.01, 0.01, "direction only"),
        ("at", -0.18, -0.11, "deviates"),
        ("at", 0.03, 0.11, "deviates"),
        ("at", -0.03, 0.03, "cannot tell"),
    ],
)
def test_claims_in_words_by_hand(sign: str, low: float, high: float, verdict: str) -> None:
    assert judge_words(sign, Ours((low + high) / 2, low, high), Yardstick(0.02, None, 0.0))[0] == verdict
