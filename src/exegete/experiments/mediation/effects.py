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
from exegete.base.places import places
from exegete.experiments.mediation.corpus import CorpusWords
from exegete.experiments.mediation.zeroing import Zeroing, zero_at_readout
from exegete.importance.erasure import erasure_passes
from exegete.models.capabilities import Deleting
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD, UNKNOWN

MediationRemoval = Literal["delete", "resample", "unknown"]
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
class RemovalInCompany:
    """One way of removing words, in one company."""

    removal: MediationRemoval
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
def effects(
    model: Predictor, batch: Batch, label: Tensor, asked: Tensor, asking: RemovalInCompany, words: CorpusWords
) -> Effects:
    """Of the words asked about, [text, token]: e and w of the class of every text."""
    return Effects(*effects_in_ways(model, batch, label, asked, RemovalPlan(asking, words, zero_at_readout)))


class RemovalPlan(NamedTuple):
    """How words go, what may stand in their place, and how only their weights or edges go."""

    asking: RemovalInCompany
    words: CorpusWords
    zeroing: Zeroing


@torch.no_grad()
def effects_in_ways(model: Predictor, batch: Batch, label: Tensor, asked: Tensor, how: RemovalPlan) -> Tensor:
    """e, and w in each way of zeroing, [1 + way, scale, text, token]."""
    total = torch.zeros(1, len(SCALES), *asked.shape, dtype=torch.float64, device=asked.device)
    for some in (each for each in _portions(_bases(batch, asked, how.asking), batch) if each.asked.any()):
        found = _measured(model, batch, label, some, how)  # [1 + way, scale, base, token]
        total = total.expand(len(found), -1, -1, -1).contiguous()  # all of it is 0 before the first
        total.index_add_(2, some.text, found)
    return (total / how.asking.times).where(asked, torch.nan)


def _bases(batch: Batch, asked: Tensor, asking: RemovalInCompany) -> _Base:
    """The texts themselves; or either half of every cut."""
    draws, text = asking.times, places(batch.ids)
    if asking.company == "alone":
        return _Base(text, torch.zeros_like(text), torch.zeros_like(batch.words), asked)
    draw = torch.arange(draws, device=text.device).repeat(len(text))
    text = text.repeat_interleave(draws)
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
    for part in places(base.text).split(_together(batch)):
        yield _Base(*(column[part] for column in base))


def _measured(model: Predictor, batch: Batch, label: Tensor, base: _Base, how: RemovalPlan) -> Tensor:
    """e and w of the words of some bases: [1 + way, scale, base, token], 0 where none was asked about."""
    asking, words, zeroing = how
    left, asked = _left(batch, base, asking, words)
    whole, unweighted = zeroing(model, left, asked)
    shape = (1 + len(unweighted), len(SCALES), *base.asked.shape)
    found = torch.zeros(shape, dtype=torch.float64, device=label.device)
    row, token = asked.nonzero(as_tuple=True)
    label, rows = label[base.text], row.repeat(asking.again)
    times = torch.arange(asking.again, device=row.device)
    draw = base.draw[rows] + times.repeat_interleave(len(row))  # [again · ask]
    if isinstance(model, Deleting) and 2 * len(row) >= int(left.words.sum()):
        logits = _at_once(model, left, asked, base.draw, how)
    else:
        logits = _removed(model, left, _Asks(rows, token.repeat(asking.again), draw), asking, words)
    now = explained_scales(whole, label)[:, row]  # [scale, ask]
    removed = (
        (now.repeat(1, asking.again) - explained_scales(logits, label[rows])).unflatten(1, (asking.again, -1)).sum(1)
    )
    zeroed = [asking.again * (now - explained_scales(logits, label[row])) for logits in unweighted]
    found[:, :, base.asked] = torch.stack([removed, *zeroed])
    return found


def _at_once(model: Deleting, left: Batch, asked: Tensor, draw: Tensor, how: RemovalPlan) -> Tensor:
    """Logits [again · ask, class] without each word, of a model that has a faster way than as many passes."""
    again = places(left.ids).repeat(how.asking.again)  # all draws of a text pass through it together
    texts, times = left.rows(again), torch.arange(how.asking.again, device=draw.device)
    draws = draw[again] + times.repeat_interleave(len(draw))
    instead = None if how.asking.removal == "delete" else _in_place(texts.ids, draws, how.asking, how.words)
    return model.deletions(texts, instead, asked[again]).without[asked[again]].double()


class _Asks(NamedTuple):
    """Words that are removed, each from one of the bases: [ask] each."""

    row: Tensor  # the base
    token: Tensor  # the word's place in it
    draw: Tensor

    def some(self, which: Tensor) -> "_Asks":
        return _Asks(*(column[which] for column in self))


def _removed(model: Predictor, left: Batch, asks: _Asks, asking: RemovalInCompany, words: CorpusWords) -> Tensor:
    """Logits of bases without a word each, [ask, class], in passes of one length.

    Without padding recurrent models read 1.6 times as fast; what fills a pass of a transformer is pieces.
    """
    found: list[Tensor] = []
    lengths = _lengths(left, asks, asking, words)
    order = lengths.argsort(stable=True)
    for part in erasure_passes(order, lengths[order]):
        here = asks.some(part)
        texts = left.rows(here.row, _width(left, here.row))
        found.append(_each_once(model, _without(texts, here.token, here.draw, asking, words)))
    return torch.cat(found)[order.argsort()]


def _lengths(left: Batch, asks: _Asks, asking: RemovalInCompany, words: CorpusWords) -> Tensor:
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
    nowhere = torch.full((len(keys),), len(which), device=which.device)
    first = nowhere.scatter_reduce(0, which, places(which), "amin")
    return model.logits(texts.rows(first)).double()[which]


def _width(left: Batch, row: Tensor) -> int:
    """Tokens up to the last one of some texts."""
    return int(left.present[row].any(0).nonzero().max()) + 1


def _together(batch: Batch) -> int:
    """How many texts of a batch's width pass through a model together."""
    return max(1, TOKENS // max(1, int(batch.cost.sum(-1).max())))


def _left(batch: Batch, base: _Base, asking: RemovalInCompany, words: CorpusWords) -> tuple[Batch, Tensor]:
    """The bases as texts, and where the words asked about stand in them: [base, token]."""
    some = batch.rows(base.text)
    if asking.removal == "delete":
        order = _closed_up(base.gone)
        left = _deleted(some, base.gone, order)
        return left, base.asked.gather(1, order)[:, : left.tokens.shape[1]]
    noise = uniform(stable_seed("half", asking.seed, "word"), some.ids[:, None], base.draw[:, None], _place(some))
    return some._replace(tokens=torch.where(base.gone, _others(noise, asking, words), some.tokens)), base.asked


def _without(texts: Batch, token: Tensor, draw: Tensor, asking: RemovalInCompany, words: CorpusWords) -> Batch:
    """Every text without one of its words, [ask]: deleted, or with another in its place.

    What stands there in a draw is the same for all words of a text: effects then differ by the word that went.
    """
    here = places(texts.tokens) == token[:, None]
    if asking.removal == "delete":
        return _deleted(texts, here, _closed_up(here))
    other = _in_place(texts.ids, draw, asking, words)
    return texts._replace(tokens=torch.where(here, other[:, None], texts.tokens))


def _in_place(ids: Tensor, draw: Tensor, asking: RemovalInCompany, words: CorpusWords) -> Tensor:
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


def _others(noise: Tensor, asking: RemovalInCompany, words: CorpusWords) -> Tensor:
    """What stands in the place of a word that is gone: the unknown word, or one of the corpus by its number."""
    if asking.removal == "unknown":
        return torch.full(noise.shape, UNKNOWN, device=noise.device)
    return words.rows[(noise * len(words.rows)).long()]


def explained_scales(logits: Tensor, label: Tensor) -> Tensor:
    """Log-odds and probability of a class, [scale, ask], of logits [ask, class]."""
    of = logits.log_softmax(-1).gather(-1, label[:, None])[:, 0]
    others = logits.masked_fill(torch.nn.functional.one_hot(label, logits.shape[-1]).bool(), -torch.inf)
    return torch.stack([of - (others.logsumexp(-1) - logits.logsumexp(-1)), of.exp()])


def sample_words(batch: Batch, most: int, seed: int) -> Tensor:
    """At most so many words of every text, at random, [text, token]: what is asked of a long text is bounded."""
    noise = uniform(stable_seed("judged", seed), batch.ids[:, None], _place(batch))
    return batch.words & (noise.masked_fill(~batch.words, torch.inf).argsort(-1).argsort(-1) < most)
