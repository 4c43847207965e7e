"""BLEU: how many runs of 1 to 4 words a translation shares with the reference (Papineni et al. 2002).

    BLEU = 100 · min(1, exp(1 − r / c)) · exp(Σ_n ¼ log p_n),   p_n = matched n-grams / n-grams of the output

with c and r the words of all outputs and of all references. Matches of an n-gram are clipped at its count in the
reference. Words are those of sacrebleu's tokenizer 13a, case counts, and where an order has no match at all its p_n is
smoothed as in mteval-v13a: 1 / (2^k · n-grams) for the k-th such order. Numbers are those of sacrebleu's defaults. BLEU
is no mean over sentences; but all it needs are sums over sentences, so BLEU of any sample of them is computed from
counts, and its interval by resampling sentences (Koehn 2004).
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.base.extras import install
from exegete.measures.resampling import Resample, percentiles
from exegete.measures.statistics import Interval

ORDERS = 4
COUNTS = 2 * ORDERS + 2  # matches of 1 to 4 words, n-grams of 1 to 4 words, words of output and of reference


class Bleu(NamedTuple):
    """Corpus BLEU with what it is made of."""

    score: float  # 0 to 100
    n: int  # sentences
    empty: int  # outputs without a word, which match nothing
    precisions: tuple[float, ...]  # of 1 to 4 words, in per cent
    brevity: float  # the brevity penalty, 1 where outputs are at least as long as references
    ratio: float  # words of outputs by words of references
    signature: str  # sacrebleu's: how words were cut and counted, and its version

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the score."""
        if not self.empty:
            return ()
        zero = ": BLEU is 0 for want of a word" if self.empty == self.n else ""
        return (f"{self.empty:,} of {self.n:,} outputs {'is' if self.empty == 1 else 'are'} empty{zero}.",)


class BleuDifference(NamedTuple):
    """BLEU of one system minus that of another on the same sentences."""

    difference: Interval
    not_better: float  # share of samples in which the first is not better: p of Koehn's (2004) one-sided test


def corpus_bleu(outputs: Sequence[str], references: Sequence[str]) -> Bleu:
    """BLEU of whole outputs against one reference each, by sacrebleu."""
    _check(outputs, references)
    metric = _sacrebleu().metrics.BLEU(force=True)  # quiet about outputs that look tokenised
    found = metric.corpus_score(list(outputs), [list(references)])
    return Bleu(
        score=found.score,
        n=len(outputs),
        empty=sum(not output.strip() for output in outputs),
        precisions=tuple(found.precisions),
        brevity=found.bp,
        ratio=found.sys_len / max(1, found.ref_len),
        signature=str(metric.get_signature()),
    )


def bleu_counts(outputs: Sequence[str], references: Sequence[str]) -> Tensor:
    """All that BLEU needs of every sentence, to be summed over any of them: [sentence, COUNTS], int64."""
    _check(outputs, references)
    cut = _sacrebleu().metrics.BLEU().tokenizer
    return torch.tensor(
        [_counts(cut(a.rstrip()).split(), cut(b.rstrip()).split()) for a, b in zip(outputs, references, strict=True)]
    )


def bleu(counts: Tensor, effective: bool = False) -> Tensor:
    """BLEU from summed counts, [..., COUNTS] -> [...], float64; 0 where no word matches.

    `effective` uses only the orders that the output has, for single sentences, which may be shorter than four words.
    """
    counts = counts.double()
    matches, totals = counts[..., :ORDERS], counts[..., ORDERS : 2 * ORDERS]
    output, reference = counts[..., -2], counts[..., -1]
    missing = (matches == 0) & (totals > 0)
    smoothed = torch.where(missing, 2.0 ** -missing.cumsum(-1), matches)  # matches, or ½, ¼, … where there are none
    logs = (smoothed / totals).log()  # [..., order]
    has = totals > 0
    orders = has.sum(-1) if effective else torch.full_like(output, ORDERS)
    mean = torch.where(has, logs, 0.0 if effective else -torch.inf).sum(-1) / orders.clamp(min=1)
    brevity = (1 - reference / output).clamp(max=0).exp()
    return torch.where(matches.sum(-1) > 0, 100 * brevity * mean.exp(), 0.0)


def sentence_bleu(outputs: Sequence[str], references: Sequence[str]) -> Tensor:
    """BLEU of every sentence alone, with the orders that it has: [sentence]."""
    return bleu(bleu_counts(outputs, references), effective=True)


def bleu_interval(counts: Tensor, level: float = 0.95, draws: int = 2000, seed: int = 0) -> Interval:
    """BLEU of all sentences, and the percentiles of BLEU over samples of them with replacement: [sentence, COUNTS]."""
    _some(counts)
    drawn = bleu(Resample(len(counts), draws, seed).sums(counts))
    return Interval(bleu(counts.sum(0)).item(), *percentiles(drawn, level), len(counts), 0)


def bleu_difference(a: Tensor, b: Tensor, level: float = 0.95, draws: int = 2000, seed: int = 0) -> BleuDifference:
    """BLEU of a minus BLEU of b, both on the same samples of the same sentences (paired bootstrap, Koehn 2004)."""
    if a.shape != b.shape:
        raise ValueError(f"two systems translate the same sentences, not {len(a)} and {len(b)}")
    _some(a)
    same = Resample(len(a), draws, seed)
    drawn = bleu(same.sums(a)) - bleu(same.sums(b))
    whole = bleu(a.sum(0)).item() - bleu(b.sum(0)).item()
    return BleuDifference(Interval(whole, *percentiles(drawn, level), len(a), 0), (drawn <= 0).double().mean().item())


def _counts(output: Sequence[str], reference: Sequence[str]) -> list[int]:
    ours, theirs = ([_ngrams(words, n) for n in range(1, ORDERS + 1)] for words in (output, reference))
    matches = [(a & b).total() for a, b in zip(ours, theirs, strict=True)]
    return [*matches, *(a.total() for a in ours), len(output), len(reference)]


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _check(outputs: Sequence[str], references: Sequence[str]) -> None:
    if len(outputs) != len(references):
        raise ExegeteError(f"{len(outputs):,} outputs and {len(references):,} references: BLEU needs one for each")
    if not outputs:
        raise ExegeteError("BLEU of no sentences is undefined: give it at least one output and its reference")


def _some(counts: Tensor) -> None:
    if not len(counts):
        raise ExegeteError("BLEU of no sentences is undefined: give it at least one output and its reference")


@cache
def _sacrebleu() -> Any:
    try:
        import sacrebleu
    except ImportError:
        raise ExegeteError(f"BLEU is computed with the package sacrebleu: {install('translation')}") from None
    return sacrebleu
