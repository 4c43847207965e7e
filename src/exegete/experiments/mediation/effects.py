"""Effects: what the predicted class loses without a word, e_t, and with the word's weight alone gone, w_t.

e_t runs the model on the text without the word; w_t leaves every state as it is and moves the weight of word t to the
others (renormalised), or to the null key. Both are taken of the same texts: the text itself (*alone*), or what is left
of it when a random half of its words is gone (*company*), the mean over `draws` halves. A prediction that two words
support, each of them enough, loses nothing without either; with half of all words gone it often hangs on one.

Every draw cuts a text in two halves and asks about the words of each in the company of its own half, so that one cut
gives every word one effect. Words are drawn by what they are for (text, draw, place), never by where a text stands.

A text that is asked about alone is the same in all draws, so w_t is taken of it once. Texts without a word pass through
the model sorted by what reading them takes, and those that are the same (either of two equal neighbours is gone) once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from exegete.base.noise import stable_seed, uniform
from exegete.experiments.common.pooling import Pooled
from exegete.experiments.common.removal import decoded
from exegete.experiments.mediation.corpus import Words
from exegete.importance.erasure import passes
from exegete.models.capabilities import Deleting, SelfAttentive
from exegete.models.contract import Predictor
from exegete.models.opened import Decoder, Opened, opened
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD, UNKNOWN

Removal = Literal["delete", "resample", "unknown"]
Company = Literal["alone", "company"]
Scale = Literal["log-odds", "probability"]
SCALES: tuple[Scale, ...] = ("log-odds", "probability")
LEAST = 4  # words of a text that can be cut in two halves of several words
TOKENS = 8_192  # that pass through a model together


class Effects(NamedTuple):
    """What words do, [scale, text, token]; NaN where a token is none of the words that were asked about."""

    removed: Tensor  # e
    unweighted: Tensor  # w


@dataclass(frozen=True)
class Asking:
    """One way of removing words, in one company."""

    removal: Removal
    company: Company
    draws: int
    seed: int = 0

    @property
    def again(self) -> int:
        """How often words are removed from one base: of a text alone, once for every word in their place."""
        return self.times if self.company == "alone" else 1

    @property
    def times(self) -> int:
        """How many numbers are averaged: what is not drawn is asked once."""
        return 1 if self.company == "alone" and self.removal != "resample" else self.draws


class _Base(NamedTuple):
    """Texts that words are removed from: whole ones, or text × draw, each with some words gone already."""

    text: Tensor  # [base]: its place in the batch
    draw: Tensor  # [base]: the first that it is asked about in
    gone: Tensor  # [base, token]
    asked: Tensor  # [base, token]: the words whose effects are wanted


@torch.no_grad()
def effects(model: Predictor, batch: Batch, label: Tensor, asked: Tensor, asking: Asking, words: Words) -> Effects:
    """Of the words asked about, [text, token]: e and w of the class of every text."""
    total = torch.zeros(2, len(SCALES), *asked.shape, dtype=torch.float64)
    for some in _portions(_bases(batch, asked, asking), batch):
        found = _measured(model, batch, label, some, asking, words)  # [2, scale, base, token]
        total.index_add_(2, some.text, found)
    removed, unweighted = (total / asking.times).where(asked, torch.nan)
    return Effects(removed, unweighted)


def _bases(batch: Batch, asked: Tensor, asking: Asking) -> _Base:
    """The texts themselves; or either half of every cut."""
    texts, draws = len(batch.ids), asking.times
    if asking.company == "alone":
        return _Base(torch.arange(texts), torch.zeros(texts).long(), torch.zeros_like(batch.words), asked)
    text = torch.arange(texts).repeat_interleave(draws)
    draw = torch.arange(draws).repeat(texts)
    first = _half(batch, asking.seed, text, draw)
    kept, text, draw = torch.cat([first, batch.words[text] & ~first]), text.repeat(2), draw.repeat(2)
    return _Base(text, draw, batch.words[text] & ~kept, asked[text] & kept)


def _half(batch: Batch, seed: int, text: Tensor, draw: Tensor) -> Tensor:
    """The larger half of every text's words, at random: [base, token]."""
    noise = uniform(stable_seed("half", seed), batch.ids[text, None], draw[:, None], _place(batch)[text])
    rank = noise.masked_fill(~batch.words[text], torch.inf).argsort(-1).argsort(-1)
    return batch.words[text] & (rank < (batch.lengths[text, None] + 1) // 2)


def _place(batch: Batch) -> Tensor:
    """The number of every word in its text: what is drawn for it doesn't depend on wrappers or padding."""
    return batch.words.cumsum(-1) - 1  # [text, token]


def _portions(base: _Base, batch: Batch) -> Iterator[_Base]:
    """Some bases at a time: as many as pass through a model together."""
    for part in torch.arange(len(base.text)).split(_together(batch)):
        yield _Base(*(column[part] for column in base))


def _measured(model: Predictor, batch: Batch, label: Tensor, base: _Base, asking: Asking, words: Words) -> Tensor:
    """e and w of the words of some bases: [2, scale, base, token], 0 where none was asked about."""
    found = torch.zeros(2, len(SCALES), *base.asked.shape, dtype=torch.float64)
    if not base.asked.any():
        return found
    left, asked = _left(batch, base, asking, words)
    whole, unweighted = _unweighted(model, left, asked)
    row, token = asked.nonzero(as_tuple=True)
    label, rows = label[base.text], row.repeat(asking.again)
    draw = base.draw[rows] + torch.arange(asking.again).repeat_interleave(len(row))  # [again · ask]
    if isinstance(model, Deleting) and 2 * len(row) >= int(left.words.sum()):
        draws = (base.draw + again for again in range(asking.again))
        logits = torch.cat([_at_once(model, left, each, asking, words)[row, token].double() for each in draws])
    else:
        logits = _removed(model, left, _Asks(rows, token.repeat(asking.again), draw), asking, words)
    now = explained(whole, label)[:, row]  # [scale, ask]
    removed = (now.repeat(1, asking.again) - explained(logits, label[rows])).unflatten(1, (asking.again, -1)).sum(1)
    found[:, :, base.asked] = torch.stack([removed, asking.again * (now - explained(unweighted, label[row]))])
    return found


def _at_once(model: Deleting, left: Batch, draw: Tensor, asking: Asking, words: Words) -> Tensor:
    """Logits [base, token, class] without each word, of a model that has a faster way than as many passes."""
    instead = None if asking.removal == "delete" else _in_place(left.ids, draw, asking, words)
    return model.deletions(left, instead).without


class _Asks(NamedTuple):
    """Words that are removed, each from one of the bases: [ask] each."""

    row: Tensor  # the base
    token: Tensor  # the word's place in it
    draw: Tensor

    def some(self, which: Tensor) -> "_Asks":
        return _Asks(*(column[which] for column in self))


def _removed(model: Predictor, left: Batch, asks: _Asks, asking: Asking, words: Words) -> Tensor:
    """Logits of bases without a word each, [ask, class], in passes of one length.

    Without padding recurrent models read 1.6 times as fast; what fills a pass of a transformer is pieces.
    """
    found: list[Tensor] = []
    lengths = _lengths(left, asks, asking, words)
    order = lengths.argsort(stable=True)
    for part in passes(order, lengths[order]):
        here = asks.some(part)
        texts = left.rows(here.row, _width(left, here.row))
        found.append(_each_once(model, _without(texts, here.token, here.draw, asking, words)))
    return torch.cat(found)[order.argsort()]


def _lengths(left: Batch, asks: _Asks, asking: Asking, words: Words) -> Tensor:
    """What reading every text takes without its word, [ask]."""
    cost = left.cost
    without = cost.sum(-1)[asks.row] - cost[asks.row, asks.token]
    if asking.removal == "delete":
        return without
    return without + left.reader.cost(_in_place(left.ids[asks.row], asks.draw, asking, words))


def _each_once(model: Predictor, texts: Batch) -> Tensor:
    """Logits of texts, [ask, class], each different one read once."""
    keys, which = torch.cat([texts.ids[:, None], texts.tokens], 1).unique(dim=0, return_inverse=True)
    if len(keys) == len(which):
        return model.logits(texts).double()
    first = torch.full((len(keys),), len(which)).scatter_reduce(0, which, torch.arange(len(which)), "amin")
    return model.logits(texts.rows(first)).double()[which]


def _width(left: Batch, row: Tensor) -> int:
    """Tokens up to the last one of some texts."""
    return int(left.present[row].any(0).nonzero().max()) + 1


def _together(batch: Batch) -> int:
    """How many texts of a batch's width pass through a model together."""
    return max(1, TOKENS // max(1, int(batch.cost.sum(-1).max())))


def _left(batch: Batch, base: _Base, asking: Asking, words: Words) -> tuple[Batch, Tensor]:
    """The bases as texts, and where the words asked about stand in them: [base, token]."""
    some = batch.rows(base.text)
    if asking.removal == "delete":
        order = _closed_up(base.gone)
        left = _deleted(some, base.gone, order)
        return left, base.asked.gather(1, order)[:, : left.tokens.shape[1]]
    noise = uniform(stable_seed("half", asking.seed, "word"), some.ids[:, None], base.draw[:, None], _place(some))
    return some._replace(tokens=torch.where(base.gone, _others(noise, asking, words), some.tokens)), base.asked


def _without(texts: Batch, token: Tensor, draw: Tensor, asking: Asking, words: Words) -> Batch:
    """Every text without one of its words, [ask]: deleted, or with another in its place.

    What stands there in a draw is the same for all words of a text: effects then differ by the word that went.
    """
    here = torch.arange(texts.tokens.shape[1]) == token[:, None]
    if asking.removal == "delete":
        return _deleted(texts, here, _closed_up(here))
    other = _in_place(texts.ids, draw, asking, words)
    return texts._replace(tokens=torch.where(here, other[:, None], texts.tokens))


def _in_place(ids: Tensor, draw: Tensor, asking: Asking, words: Words) -> Tensor:
    """What stands in the place of the word that is asked about, [ask]."""
    return _others(uniform(stable_seed("word", asking.seed), ids, draw), asking, words)


def _closed_up(gone: Tensor) -> Tensor:
    """The order of tokens in which those that stay come first, as they were: [text, token]."""
    return gone.byte().argsort(dim=-1, stable=True)


def _deleted(batch: Batch, gone: Tensor, order: Tensor) -> Batch:
    """Texts without some words: what follows moves up, and what is left at the end is padding."""
    stays = batch.present & ~gone
    width = max(1, int(stays.sum(-1).max()))

    def moved(column: Tensor, nothing: int) -> Tensor:
        return column.masked_fill(~stays, nothing).gather(1, order)[:, :width]

    return batch._replace(
        tokens=moved(batch.tokens, PAD), present=moved(batch.present, 0), words=moved(batch.words, 0),
        part=moved(batch.part, -1), sentence=moved(batch.sentence, -1),
    )  # fmt: skip


def _others(noise: Tensor, asking: Asking, words: Words) -> Tensor:
    """What stands in the place of a word that is gone: the unknown word, or one of the corpus by its number."""
    if asking.removal == "unknown":
        return torch.full(noise.shape, UNKNOWN)
    return words.rows[(noise * len(words.rows)).long()]


def _unweighted(model: Predictor, left: Batch, asked: Tensor) -> tuple[Tensor, Tensor]:
    """Logits of texts as they are, [base, class], and with the weight of every word asked about gone: [ask, class]."""
    assert model.readout is not None
    site = model.readout.sites[0]
    texts = opened(model, left, site=None if site == model.sites[-1] else site)
    pool = Pooled([], texts, texts.own)
    owner = _keys(model, left, texts, site)
    count = asked.sum(-1)
    row, token = asked.nonzero(as_tuple=True)
    place = torch.arange(len(row)) - (count.cumsum(0) - count)[row]  # of an ask among those of its base
    gone = torch.zeros(len(asked), max(1, int(count.max())), texts.mask.shape[-1], dtype=torch.bool)
    gone[row, place, owner[row, token]] = True  # [base, ask, key]
    logits = decoded(pool, lambda some: texts.weights[:, None].masked_fill(gone[:, some, None], 0), gone.shape[1])
    return pool.logits, logits[row, place]


def _keys(model: Predictor, left: Batch, texts: Opened, site: str) -> Tensor:
    """The key of every token, [base, token]: its own place where words are pooled or look at each other, else as a
    trace has it.
    """
    if isinstance(texts, Decoder) or (isinstance(model, SelfAttentive) and site in model.self_attention):
        return torch.arange(left.tokens.shape[1]).expand(left.tokens.shape)
    return model.trace(left, keep=(site,)).owner[site]


def explained(logits: Tensor, label: Tensor) -> Tensor:
    """Log-odds and probability of a class, [scale, ask], of logits [ask, class]."""
    of = logits.log_softmax(-1).gather(-1, label[:, None])[:, 0]
    others = logits.masked_fill(torch.nn.functional.one_hot(label, logits.shape[-1]).bool(), -torch.inf)
    return torch.stack([of - (others.logsumexp(-1) - logits.logsumexp(-1)), of.exp()])


def judged(batch: Batch, most: int, seed: int) -> Tensor:
    """At most so many words of every text, at random, [text, token]: what is asked of a long text is bounded."""
    noise = uniform(stable_seed("judged", seed), batch.ids[:, None], _place(batch))
    return batch.words & (noise.masked_fill(~batch.words, torch.inf).argsort(-1).argsort(-1) < most)
