"""Flat weights: do differences of weights count? F, what is left of a prediction's effects where weights are made flat.

M asks what zeroing a whole weight does, so that any sum of words that act by themselves has M near 1, also where all
weights are nearly the same. F asks about their differences. With z the log-odds of the predicted class, α the weights
and e_t the effects of words,

    F = min(1, |z(α) − z(flat)| / √(Σ_t e_t²))

Flat: the keys of words that may be removed share what these words have, equally, head by head. All other keys (special
pieces, null keys) keep their weights, and so do *idle* words, which have more than twice the mean weight 1/n and do
less than 5 % of what the word of the largest effect does: what lies on a sink is not theirs, and shared out would move
any prediction. What a word does is, here, what its deletion in company does: putting another word in a sink's place
moves its weight, and of two words that are each enough either does nothing alone.

This is not what shuffling weights shows (`exegete.experiments.permutation`): a shuffle moves a sink's weight onto words
that never had it, so that it changes predictions where the differences among words mean nothing.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from exegete.experiments.mediation.effects import explained_scales
from exegete.experiments.mediation.zeroing import keys_of_tokens
from exegete.models.contract import Predictor
from exegete.models.openings import Opened, opened
from exegete.tasks.batching import Batch

HEAVY = 2.0  # times the mean weight 1/n, from which on a word that does nothing is idle
LITTLE = 0.05  # of the largest effect of a text


class WholeTexts(NamedTuple):
    """Texts opened once at the readout, and where their tokens are looked at."""

    opened: Opened
    key: Tensor  # [text, token]: the key of every token
    log_odds: Tensor  # [text]: of the predicted class, under the model's own weights
    label: Tensor  # [text]


@torch.no_grad()
def open_texts(model: Predictor, batch: Batch, label: Tensor) -> WholeTexts:
    """A batch, ready for flat weights."""
    assert model.readout is not None
    site = model.readout.sites[0]
    texts = opened(model, batch, site=None if site == model.sites[-1] else site)
    return WholeTexts(texts, keys_of_tokens(model, batch, texts, site), explained_scales(texts.own, label)[0], label)


def idle_words(attention: Tensor, removed: Tensor, lengths: Tensor) -> Tensor:
    """Words with much weight that do nothing, [text, token]; only of words whose effect is known."""
    effect = removed.abs()
    largest = effect.nan_to_num(0.0).amax(-1, keepdim=True)
    return (attention.nan_to_num(0.0) > HEAVY / lengths[:, None]) & (effect < LITTLE * largest)


@torch.no_grad()
def carried_by_differences(texts: WholeTexts, batch: Batch, removed: Tensor, idle: Tensor) -> Tensor:
    """F of every text, [text], by its words' effects in log-odds, [text, token]; NaN where no word does anything.

    Where some words only were asked about, the sum of squares is that of all words if they do as much as these.
    """
    flat = texts.opened.logits(flat_weights(texts, batch.words & ~idle)[:, None])[:, 0]
    moved = (texts.log_odds - explained_scales(flat, texts.label)[0]).abs()
    of_asked = batch.words.sum(-1) / (~removed.isnan()).sum(-1).clamp(min=1)
    effect = (removed.square().nansum(-1) * of_asked).sqrt()
    return (moved / effect.where(effect > 0, torch.nan)).clamp(max=1.0)


def flat_weights(texts: WholeTexts, words: Tensor) -> Tensor:
    """Weights [text, head, key] with all that lies on some words, [text, token], shared equally by their keys.

    A row shares it among the keys that it may look at: the words of its sentence, say.
    """
    weights, words_keys = texts.opened.weights, torch.zeros_like(texts.opened.mask)
    row, token = (words & (texts.key >= 0)).nonzero(as_tuple=True)
    words_keys[row, texts.key[row, token]] = True
    shared = (words_keys & texts.opened.removable)[:, None] & texts.opened.reach  # [text, head, key]
    total = weights.where(shared, 0.0).sum(-1, keepdim=True)
    return torch.where(shared, total / shared.sum(-1, keepdim=True).clamp(min=1), weights)
