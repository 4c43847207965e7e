"""BLEU against its formula, sacrebleu, and resampling written slowly."""

import math
import os
import random
import sys
from collections.abc import Sequence

import pytest
import sacrebleu
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.base.errors import ExegeteError
from exegete.measures.bleu import (
    _sacrebleu,
    bleu,
    bleu_counts,
    bleu_difference,
    bleu_interval,
    corpus_bleu,
    sentence_bleu,
)
from exegete.tasks.catalogue import load_task
from exegete.tasks.pieces import join_pieces

words = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", ".", "Hello,", "don't", "3.5%"]), max_size=9)
corpora = st.lists(st.tuples(words, words), min_size=1, max_size=5)


def slow(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Papineni et al. (2002), section 2, over texts that are tokenised already; 0 where some order has no match."""
    matches, totals = [0] * 4, [0] * 4
    for output, reference in zip(outputs, references, strict=True):
        a, b = output.split(), reference.split()
        for n in range(1, 5):
            grams = [tuple(a[i : i + n]) for i in range(len(a) - n + 1)]
            theirs = [tuple(b[i : i + n]) for i in range(len(b) - n + 1)]
            totals[n - 1] += len(grams)
            matches[n - 1] += sum(min(grams.count(g), theirs.count(g)) for g in set(grams))
    c, r = (sum(len(text.split()) for text in texts) for texts in (outputs, references))
    if not all(matches):
        return 0.0
    precision = math.prod(m / t for m, t in zip(matches, totals, strict=True)) ** 0.25
    return 100 * min(1.0, math.exp(1 - r / c)) * precision


def noisy(texts: Sequence[str], share: float, seed: int = 0) -> list[str]:
    """Texts with some words dropped or swapped: outputs of a mediocre system."""
    draw = random.Random(seed)
    found = []
    for text in texts:
        kept = [word for word in text.split() if draw.random() > share]
        if len(kept) > 1 and draw.random() < 0.5:
            i = draw.randrange(len(kept) - 1)
            kept[i], kept[i + 1] = kept[i + 1], kept[i]
        found.append(" ".join(kept))
    return found


TASK = load_task("toy_translation:train=10,dev=10,test=300")
REFERENCES = [join_pieces(e.texts[1]) for e in TASK.split("test")]
GOOD, BAD = noisy(REFERENCES, 0.1), noisy(REFERENCES, 0.25, 1)


def test_papineni_by_hand() -> None:
    """The paper's example of clipping: of seven times "the", two are in the reference."""
    counts = bleu_counts(["the the the the the the the"], ["the cat is on the mat"])
    assert counts.tolist() == [[2, 0, 0, 0, 7, 6, 5, 4, 7, 6]]


def test_the_formula() -> None:
    for outputs in (GOOD, BAD, REFERENCES):
        assert bleu(bleu_counts(outputs, REFERENCES).sum(0)).item() == pytest.approx(
            slow(outputs, REFERENCES), abs=1e-9
        )
    assert 20 < slow(GOOD, REFERENCES) < 100
    assert bleu(bleu_counts(REFERENCES, REFERENCES).sum(0)).item() == pytest.approx(100, abs=1e-9)


@given(corpora)
@settings(max_examples=60, deadline=None)
def test_sacrebleu_says_the_same(corpus: list[tuple[list[str], list[str]]]) -> None:
    """With its tokenizer, its smoothing of orders without a match, and its effective order for single sentences."""
    outputs, references = ([" ".join(side) for side in sides] for sides in zip(*corpus, strict=True))
    theirs = sacrebleu.corpus_bleu(outputs, [references], force=True)
    counts = bleu_counts(outputs, references)
    assert bleu(counts.sum(0)).item() == pytest.approx(theirs.score, abs=1e-9)
    assert corpus_bleu(outputs, references).score == theirs.score
    assert counts.sum(0).tolist() == [*theirs.counts, *theirs.totals, theirs.sys_len, theirs.ref_len]
    for ours, output, reference in zip(sentence_bleu(outputs, references), outputs, references, strict=True):
        assert ours.item() == pytest.approx(sacrebleu.sentence_bleu(output, [reference]).score, abs=1e-9)


def test_smoothing() -> None:
    """Of two orders without a match the first counts as ½ match, the second as ¼."""
    counts = bleu_counts(["a b x d e y"], ["a b c d e f"])
    assert counts.tolist() == [[4, 2, 0, 0, 6, 5, 4, 3, 6, 6]]
    expected = 100 * (4 / 6 * 2 / 5 * (0.5 / 4) * (0.25 / 3)) ** 0.25
    assert bleu(counts).item() == pytest.approx(expected, abs=1e-9)


def test_case_counts() -> None:
    assert corpus_bleu(["A cat sat on it"], ["a cat sat on it"]).score < 100
    assert "case:mixed" in corpus_bleu(["a"], ["a"]).signature
    assert "tok:13a" in corpus_bleu(["a"], ["a"]).signature


def test_empty_outputs() -> None:
    found = corpus_bleu(["", " "], ["a b c d", "e f g h"])
    assert (found.score, found.empty, found.n, found.brevity, found.ratio) == (0, 2, 2, 0, 0)
    assert found.notes == ("2 of 2 outputs are empty: BLEU is 0 for want of a word.",)
    assert bleu(bleu_counts(["", " "], ["a b c d", "e f g h"])).tolist() == [0, 0]
    some = corpus_bleu(["", "e f g h"], ["a b c d", "e f g h"])
    assert some.score == pytest.approx(100 * math.exp(1 - 8 / 4))
    assert some.notes == ("1 of 2 outputs is empty.",)
    assert corpus_bleu(["a"], ["a"]).notes == ()


def test_nothing_to_score() -> None:
    for measure in (corpus_bleu, bleu_counts, sentence_bleu):
        with pytest.raises(ExegeteError, match="BLEU of no sentences is undefined"):
            measure([], [])
        with pytest.raises(ExegeteError, match="1 outputs and 2 references"):
            measure(["a"], ["a", "b"])
    empty = torch.empty(0, 10)
    with pytest.raises(ExegeteError, match="BLEU of no sentences is undefined"):
        bleu_interval(empty)
    with pytest.raises(ExegeteError, match="BLEU of no sentences is undefined"):
        bleu_difference(empty, empty)


def test_the_interval_is_that_of_resampled_sentences() -> None:
    counts = bleu_counts(GOOD[:40], REFERENCES[:40])
    found = bleu_interval(counts, draws=100)
    picked = torch.randint(40, (100, 40), generator=torch.Generator().manual_seed(0)).tolist()
    drawn = [bleu(bleu_counts([GOOD[i] for i in some], [REFERENCES[i] for i in some]).sum(0)).item() for some in picked]
    drawn.sort()
    assert found.low == pytest.approx(drawn[2] + 0.475 * (drawn[3] - drawn[2]), abs=1e-9)
    assert found.high == pytest.approx(drawn[96] + 0.525 * (drawn[97] - drawn[96]), abs=1e-9)
    assert found.mean == pytest.approx(corpus_bleu(GOOD[:40], REFERENCES[:40]).score, abs=1e-9)
    assert (found.n, found.undefined) == (40, 0)
    assert bleu_interval(counts, draws=100) == found != bleu_interval(counts, draws=100, seed=1)


def test_the_interval_does_not_depend_on_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = bleu_counts(GOOD, REFERENCES)
    whole = bleu_interval(counts, draws=50)
    monkeypatch.setattr("exegete.measures.resampling.VALUES", 700)
    assert bleu_interval(counts, draws=50) == pytest.approx(whole, abs=1e-9)


def test_two_systems() -> None:
    a, b = bleu_counts(GOOD, REFERENCES), bleu_counts(BAD, REFERENCES)
    found = bleu_difference(a, b, draws=300)
    whole = corpus_bleu(GOOD, REFERENCES).score - corpus_bleu(BAD, REFERENCES).score
    assert found.difference.mean == pytest.approx(whole, abs=1e-9)
    assert 0 < found.difference.low < whole < found.difference.high
    assert found.not_better == 0
    turned = bleu_difference(b, a, draws=300)
    assert (turned.difference.low, turned.not_better) == pytest.approx((-found.difference.high, 1), abs=1e-9)
    same = bleu_difference(a, a, draws=50)
    assert same.difference == pytest.approx((0, 0, 0, 300, 0))
    assert same.not_better == 1
    with pytest.raises(ValueError, match="translate the same sentences, not 300 and 299"):
        bleu_difference(a, b[1:])


def test_pairing_narrows_the_interval() -> None:
    """Sentences that are hard are hard for both: the difference varies less than either."""
    other = [text if i % 7 else "" for i, text in enumerate(GOOD)]
    a, b = bleu_counts(GOOD, REFERENCES), bleu_counts(other, REFERENCES)
    paired = bleu_difference(a, b, draws=300).difference
    alone = [bleu_interval(x, draws=300, seed=s) for s, x in enumerate((a, b))]
    assert paired.high - paired.low < sum(x.high - x.low for x in alone)


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    _sacrebleu.cache_clear()
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ExegeteError, match=r'the package sacrebleu: pip install "sacrebleu'):
        corpus_bleu(["a"], ["a"])


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("EXEGETE_DATA"), reason="EXEGETE_DATA is not set")
def test_real_texts() -> None:
    references = [join_pieces(e.texts[1]) for e in load_task("multi30k:train_limit=500").split("test")]
    for share in (0.05, 0.3, 0.9, 1.0):
        outputs = noisy(references, share)
        counts = bleu_counts(outputs, references)
        theirs = sacrebleu.corpus_bleu(outputs, [references])
        assert counts.sum(0).tolist() == [*theirs.counts, *theirs.totals, theirs.sys_len, theirs.ref_len]
        assert bleu(counts.sum(0)).item() == pytest.approx(theirs.score, abs=1e-9)
        single = [sacrebleu.sentence_bleu(a, [b]).score for a, b in zip(outputs, references, strict=True)]
        assert sentence_bleu(outputs, references).tolist() == pytest.approx(single, abs=1e-9)
