"""Zeroing: what is predicted with a word's weight gone, and all else as it is."""

from collections.abc import Callable

import torch
from torch import Tensor

from exegete.base.places import places
from exegete.experiments.common.pooling import Pooled
from exegete.experiments.common.removal import decode_weights
from exegete.models.capabilities import SelfAttentive
from exegete.models.contract import Predictor
from exegete.models.openings import Opened, OpenedPooling, opened
from exegete.tasks.batching import Batch

# Logits of texts as they are, [base, class], and of every word asked about, [way, ask, class], without its weight or
# edges, in one or more ways: of a model, texts, and where the words stand in them, [base, token].
Zeroing = Callable[[Predictor, Batch, Tensor], tuple[Tensor, Tensor]]


def zero_at_readout(model: Predictor, left: Batch, asked: Tensor) -> tuple[Tensor, Tensor]:
    """A `Zeroing`: with the weight of every word asked about gone at the readout, and all states as they are."""
    assert model.readout is not None
    site = model.readout.sites[0]
    texts = opened(model, left, site=None if site == model.sites[-1] else site)
    pool = Pooled([], texts, texts.own)
    owner = keys_of_tokens(model, left, texts, site)
    count = asked.sum(-1)
    row, token = asked.nonzero(as_tuple=True)
    place = places(row) - (count.cumsum(0) - count)[row]  # of an ask among those of its base
    shape = (len(asked), max(1, int(count.max())), texts.mask.shape[-1])
    gone = torch.zeros(shape, dtype=torch.bool, device=asked.device)
    gone[row, place, owner[row, token]] = True  # [base, ask, key]
    logits = decode_weights(
        pool, lambda some: texts.weights[:, None].masked_fill(gone[:, some, None], 0), gone.shape[1]
    )
    return pool.logits, logits[row, place][None]


def keys_of_tokens(model: Predictor, left: Batch, texts: Opened, site: str) -> Tensor:
    """The key of every token, [base, token]: its own place where words are pooled or look at each other, else as a
    trace has it.
    """
    if isinstance(texts, OpenedPooling) or (isinstance(model, SelfAttentive) and site in model.self_attention):
        return places(left.tokens).expand(left.tokens.shape)
    return model.trace(left, keep=(site,)).owner[site]
