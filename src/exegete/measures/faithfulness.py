"""Faithfulness: does the prediction hang on the words that a method ranks first? (DeYoung et al. 2020, section 4)

Let c be the class predicted for the whole text x of T words, r_q the ⌈qT⌉ words that a method ranks first, and f_c the
class's probability, logit, or log-odds log p/(1 − p) (Shrikumar et al. 2017).

    comprehensiveness(q) = f_c(x) − f_c(x without r_q)    high is good: without its reasons, the model gives up
    sufficiency(q)       = f_c(x) − f_c(r_q alone)        low is good: its reasons alone carry the prediction
    flip                 = share of the words that must go, in their order, until another class wins; low is good

Every measure needs to say how a word is removed (exegete.importance.erasure). Nothing is drawn but the order of ties.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from exegete.base.noise import stable_seed, uniform
from exegete.base.places import places
from exegete.base.ties import levels
from exegete.importance.erasure import Removal, erased
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

Ranking = Literal["signed", "magnitude"]
Function = Literal["probability", "logit", "log_odds"]

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)
EXACT = 50  # words up to which a flip is looked for after every word; in longer texts after every twentieth of them
TWENTY = 20


def word_order(values: Tensor, ids: Tensor, by: Ranking = "signed", seed: int = 0) -> Tensor:
    """The words of every text from first to last, [..., text, word] twice; NaN is no word and comes last.

    `signed`: what speaks most for the class comes first. `magnitude`: what matters most, for or against. Ties are
    broken by a shuffle that is keyed by the text, so it is the same for every method, and a sparse attention is
    neither helped nor hurt by where its zeros stand.
    """
    key = levels(values.abs() if by == "magnitude" else values).nan_to_num(nan=-torch.inf)
    noise = uniform(stable_seed("ties", seed), ids[:, None], places(values))
    shuffled = noise.argsort(-1).expand_as(values)  # [..., text, word]
    return shuffled.gather(-1, key.gather(-1, shuffled).argsort(dim=-1, descending=True, stable=True))


def prefixes(order: Tensor, k: Tensor) -> Tensor:
    """Which words are among the first k of their text: [..., text, word] and [text] -> bool [..., text, word]."""
    return order.argsort(-1) < k[:, None]


def prefix_sizes(lengths: Tensor, fraction: float) -> Tensor:
    """⌈qT⌉ of every text, in whole numbers: 0.01 · 700 is 7.000000000000001 to a computer, and 7 to a reader."""
    q = Fraction(str(fraction))
    return (lengths * q.numerator + q.denominator - 1) // q.denominator


def without_words(model: Predictor, batch: Batch, rows: Tensor, gone: Tensor, by: Removal) -> Tensor:
    """Logits of text rows[i] without its words gone[i], words counted without wrappers: [ask, word] -> [ask, class]."""
    place = (batch.words.cumsum(-1) - 1).clamp(min=0)[rows]  # [ask, token]: which word a token is
    return erased(model, batch, rows, gone.gather(-1, place) & batch.words[rows], by)


class Curves(NamedTuple):
    """What remains of the prediction as more words are removed, or kept."""

    without: Tensor  # [order, text, fraction, class]: logits of x without r_q
    only: Tensor  # [order, text, fraction, class]: logits of r_q alone


def removal_curves(
    model: Predictor, batch: Batch, orders: Tensor, by: Removal, fractions: Sequence[float] = FRACTIONS
) -> Curves:
    """Ask for all orders [order, text, word] and all fractions at once: what two methods share is run once."""
    top = _first(batch, orders, fractions)
    return Curves(*_left(model, batch, torch.stack([top, ~top]), by))


def without_first(
    model: Predictor, batch: Batch, orders: Tensor, by: Removal, fractions: Sequence[float] = FRACTIONS
) -> Tensor:
    """`Curves.without` alone: all that comprehensiveness needs."""
    return _left(model, batch, _first(batch, orders, fractions), by)


def _first(batch: Batch, orders: Tensor, fractions: Sequence[float]) -> Tensor:
    """The words r_q of every order and fraction: [order, fraction, text, word]."""
    return torch.stack([prefixes(orders, prefix_sizes(batch.lengths, q)) for q in fractions], 1)


def _left(model: Predictor, batch: Batch, gone: Tensor, by: Removal) -> Tensor:
    """Logits without words [..., fraction, text, word]: [..., text, fraction, class]."""
    gone = gone & (places(gone) < batch.lengths[:, None])  # of real words
    rows = places(batch.ids).expand(gone.shape[:-1])
    logits = without_words(model, batch, rows.flatten(), gone.flatten(0, -2), by)
    return logits.view(*gone.shape[:-1], -1).transpose(-3, -2)


def target_value(logits: Tensor, label: Tensor, of: Function = "probability") -> Tensor:
    """f_c of logits [..., class] for the class `label` [...]. Log-odds come from logits: no p is too near to 1."""
    own = logits.gather(-1, label[..., None])[..., 0]
    if of == "logit":
        return own
    if of == "probability":
        return (own - logits.logsumexp(-1)).exp()
    return own - logits.scatter(-1, label[..., None], -torch.inf).logsumexp(-1)


def prediction_loss(whole: Tensor, left: Tensor, label: Tensor, of: Function = "probability") -> Tensor:
    """f_c(x) − f_c(what is left of x): [text, class], [..., text, fraction, class], [text] -> [..., text, fraction]."""
    return target_value(whole, label, of)[:, None] - target_value(left, label[:, None].expand(left.shape[:-1]), of)


def comprehensiveness(whole: Tensor, without: Tensor, label: Tensor, of: Function = "probability") -> Tensor:
    """The mean over fractions of f_c(x) − f_c(x without r_q), called AOPC: divided by the number of fractions.

    (DeYoung et al. divide by one more, for a fraction of nothing, where the difference is 0.) In a short text 1 % and
    5 % are the same word, which then counts twice.
    """
    return prediction_loss(whole, without, label, of).mean(-1)


def sufficiency(whole: Tensor, only: Tensor, label: Tensor, of: Function = "probability") -> Tensor:
    """The mean over fractions of f_c(x) − f_c(r_q alone); below 0 where the words alone convince more than the text."""
    return prediction_loss(whole, only, label, of).mean(-1)


def log_odds(whole: Tensor, without: Tensor, label: Tensor) -> Tensor:
    """Comprehensiveness in log-odds. With one sigmoid output it is exactly twice that in logits."""
    return comprehensiveness(whole, without, label, "log_odds")


CurveEnds = Callable[[Tensor], Tensor]


class Flips(NamedTuple):
    """When the decision changes."""

    share: Tensor  # [order, text]: words gone when another class first wins, as a share of all; 1 if none ever does
    never: Tensor  # [order, text]: True where no class but c wins, down to the last word


def flips(
    model: Predictor,
    batch: Batch,
    orders: Tensor,
    label: Tensor,
    by: Removal,
    ends: CurveEnds = lambda found: found > 0,
    at_once: int = 1,
) -> Flips:
    """Remove words in their order [order, text, word] until another class wins, at the latest with one word left.

    The text without any word is not asked: it is the same for every method. So a text of one word never flips. Round by
    round, because most flips come early: only texts that haven't flipped go on, and a round asks for all orders
    together. Asking every prefix at once would run several times as many texts; of one short text, where asking takes
    longer than running, `at_once` rounds are asked together. `ends` says which orders and texts go no further, as
    enough is known: from words gone at their flips so far [order, text], 0 where there was none.
    """
    steps = _steps(batch.lengths)  # [text, round]
    found = orders.new_zeros(orders.shape[:-1])  # [order, text]: words gone at the flip; 0: not yet
    for some in steps.split(at_once, -1):
        asked = (~ends(found) & (found == 0))[..., None] & (some > 0)
        which, rows, rounds = asked.nonzero(as_tuple=True)
        if not len(rows):  # of a text that has no more rounds, no later one is asked
            break
        gone = prefixes(orders[which, rows], some[rows, rounds])
        flipped = torch.zeros_like(asked)  # [order, text, round]
        flipped[which, rows, rounds] = without_words(model, batch, rows, gone, by).argmax(-1) != label[rows]
        first = flipped.byte().argmax(-1, keepdim=True)
        found = some.expand(flipped.shape).gather(-1, first)[..., 0].where(flipped.any(-1), found)
    return Flips((found / batch.lengths).where(found > 0, 1.0).double(), found == 0)


def flip(model: Predictor, batch: Batch, values: Tensor, label: Tensor, by: Removal = "delete") -> Tensor:
    """The share of words gone when another class first wins, for one method's scores [text, word]: [text]."""
    return flips(model, batch, word_order(values, batch.ids)[None], label, by).share[0]


def _steps(lengths: Tensor) -> Tensor:
    """How many words are gone in every round, 0 where a text has no such round: [text, round]."""
    last = int(torch.where(lengths <= EXACT, lengths - 1, TWENTY - 1).clamp(min=0).max()) if len(lengths) else 0
    number = torch.arange(1, last + 1, device=lengths.device)
    every = number.where(number < lengths[:, None], 0)
    twentieth = ((number * lengths[:, None] + TWENTY - 1) // TWENTY).where(number < TWENTY, 0)
    return every.where((lengths <= EXACT)[:, None], twentieth)
