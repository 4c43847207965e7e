"""Words over a corpus: means and intervals against a loop over texts, and how often the intervals hold the truth."""

import math
import random
from typing import Any

import polars as pl
import pytest
from scipy import stats

from exegete.measures.words import count_told_texts, over_words

METHODS = ("attention", "lrp")


def corpus(texts: int, seed: int = 0) -> pl.DataFrame:
    """Texts of few words, so that some come twice in one; the third text says nothing under LRP."""
    draw = random.Random(seed)
    words = [draw.choices("abcde", k=draw.randint(2, 7)) for _ in range(texts)]
    return pl.DataFrame(
        {
            "example": [10 * i for i in range(texts)],
            "words": words,
            "attention": [[draw.random() for _ in text] for text in words],
            "lrp": [[0.0 if i == 2 else draw.gauss(0, 1) for _ in text] for i, text in enumerate(words)],
        }
    )


def by_hand(frame: pl.DataFrame, word: str, method: str, less: bool) -> tuple[Any, ...]:
    """Shares text by text, their ratio, and t over texts with the linearised variance, as the formulas are written."""
    sums, times = [], []
    for row in frame.iter_rows(named=True):
        if any(not sum(map(abs, row[name])) for name in METHODS):
            continue
        n = len(row["words"])
        shares = {name: [n * abs(s) / sum(map(abs, row[name])) for s in row[name]] for name in METHODS}
        own = [
            (shares["attention"][i] - shares[method][i]) if less else shares[method][i]
            for i, found in enumerate(row["words"])
            if found == word
        ]
        if own:
            sums.append(sum(own))
            times.append(len(own))
    k, mean = len(sums), sum(sums) / sum(times)
    squares = sum((r - mean * m) ** 2 for r, m in zip(sums, times, strict=True))
    half = stats.t.ppf(0.975, k - 1) * math.sqrt(k / (k - 1) * squares) / sum(times)
    return k, sum(times), mean, mean - half, mean + half


@pytest.mark.parametrize("method", METHODS)
def test_means_and_intervals_are_those_of_a_loop(method: str) -> None:
    frame = corpus(12)
    found = {row["word"]: row for row in over_words(frame, METHODS).filter(method=method).iter_rows(named=True)}
    assert set(found) == set("abcde")
    for word, row in found.items():
        k, times, mean, low, high = by_hand(frame, word, method, less=False)
        assert (row["texts"], row["count"]) == (k, times)
        assert row["mean"] == pytest.approx(mean)
        assert (row["low"], row["high"]) == pytest.approx((max(0.0, low), high))
        if method == "attention":
            assert row["less"] is row["less_low"] is None
        else:
            assert (row["less"], row["less_low"], row["less_high"]) == pytest.approx(
                by_hand(frame, word, method, True)[2:]
            )
    assert sum(row["mean"] * row["count"] for row in found.values()) == pytest.approx(
        sum(row["count"] for row in found.values())  # an even share is 1
    )


def test_a_text_without_shares_counts_under_no_method() -> None:
    frame = corpus(5)
    assert count_told_texts(frame, METHODS) == 4
    assert count_told_texts(frame, ["attention"]) == 5
    apart = over_words(frame, METHODS).filter(method="attention")["count"].sum()
    assert apart == sum(len(words) for i, words in enumerate(frame["words"]) if i != 2)


def test_a_word_of_one_text_has_no_interval() -> None:
    frame = pl.DataFrame({"example": [0], "words": [["a", "a"]], "attention": [[1.0, 3.0]]})
    row = over_words(frame, ["attention"]).row(0, named=True)
    assert (row["count"], row["mean"], row["low"], row["high"]) == (2, 1.0, None, None)


@pytest.mark.slow
def test_intervals_hold_the_truth_where_texts_differ() -> None:
    """A word's share depends on its text: with the occurrences taken for independent, intervals are too short."""
    held, naive, rounds = 0, 0, 300
    for seed in range(rounds):
        draw = random.Random(seed)
        rows: list[dict[str, Any]] = []
        for i in range(25):
            a, own = draw.choice([1, 1, 6]), draw.uniform(0.2, 0.8)  # own: what all `a` of the text get together
            rows.append({"example": i, "words": ["a"] * a + ["b"], "attention": [own / a] * a + [1 - own]})
        found = over_words(pl.DataFrame(rows), ["attention"]).filter(word="a").row(0, named=True)
        truth = ((2 * 2 + 7) / 3 * 0.5) / ((1 + 1 + 6) / 3)  # E[(a + 1) own] / E[a]
        held += found["low"] <= truth <= found["high"]
        shares = [
            (len(r["words"])) * s for r in rows for w, s in zip(r["words"], r["attention"], strict=True) if w == "a"
        ]
        half = 1.96 * math.sqrt(sum((s - found["mean"]) ** 2 for s in shares)) / len(shares)
        naive += abs(found["mean"] - truth) <= half
    assert held / rounds > 0.91
    assert naive < held
