"""ALTI: a word's part of the states that attention makes, followed down the layers (Ferrando et al. 2022, section 3).

With the deviation of its layer norm as a constant, the output of an attention block (attention, residual, norm) is a
sum over the words below, y_i = Σ_j T_i(x_j) + constants, where T_i(x_j) is Σ_h α_ij W_O v_j, with x_i itself for j = i,
through the norm. What is nearer to y_i is a larger part of it:

    C_ij ∝ max(0, ‖y_i‖₁ − ‖y_i − T_i(x_j)‖₁),  rows to shares of 1

The bias of values belongs to the words. Feed-forward layers work on each state alone and are left out. Where norms come
before attention, there is none after the residual (as in ALTI-Logit, Ferrando et al. 2023).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from exegete.importance.mixing import Mixing, Way, separate_layers
from exegete.importance.rollout import row_shares
from exegete.models.contract import Predictor
from exegete.models.separable import Copies
from exegete.tasks.batching import Batch


def nearness(copies: Copies) -> Tensor:
    """max(0, ‖y‖₁ − ‖y − T‖₁), [word, piece]: the copy without a word is y − T."""
    size, rest = (each.double().abs().sum(-1) for each in (copies.whole, copies.without))
    return (size - rest).clamp(min=0)


@dataclass(frozen=True)
class Alti(Mixing):
    """Parts of attention blocks, followed through all layers from what is read down to the words."""

    label: ClassVar[str] = "ALTI"
    way: ClassVar[Way] = Way("alti", "block", nearness)


def own_share(model: Predictor, batch: Batch) -> Tensor:
    """The share of the last state of every word that comes from the word itself, by ALTI: [batch, token].

    Weights of the last layer are weights on states. Where these have little of their own word, a reading of that layer
    points at mixtures: one reason why it may fail.
    """
    layers = [row_shares(layer) for layer in separate_layers(Alti.way, model, batch).graph.layers]
    whole = layers[0]
    for layer in layers[1:]:
        whole = layer @ whole  # [batch, word, word]
    return whole.diagonal(dim1=-2, dim2=-1).where(batch.words, torch.nan)
